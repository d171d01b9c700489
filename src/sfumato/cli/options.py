"""Options that several commands share, spelt and explained once."""

from typing import Annotated

import typer

__all__ = ["AnswersFile", "Column", "Decoder", "Json", "Latitude", "Longitude", "SurveyFile"]

SurveyFile = Annotated[str, typer.Argument(metavar="SURVEY", help="The survey: a TOML file, or a resolved one (JSON).")]
AnswersFile = Annotated[str, typer.Argument(metavar="ANSWERS", help="CSV (gzip too) or Parquet; - for a pipe.")]
Column = Annotated[str | None, typer.Option(help="The column that holds the answers.")]
Latitude = Annotated[str | None, typer.Option(help="The column of latitudes, for grids and H3 cells.")]
Longitude = Annotated[str | None, typer.Option(help="The column of longitudes.")]
Decoder = Annotated[str, typer.Option(help="How to read the tally: projection or unbiased.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
