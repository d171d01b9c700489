"""`sfumato conformance`: whether a client in any language answers as it must."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import Json

if TYPE_CHECKING:
    from sfumato.conformance.examine import FileResult

__all__ = ["conformance"]

_SHOWN = 3  # failures of a file: the first ones say most


def conformance(
    client: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLIENT",
            help="The command that starts the client; after -- it may have options.",
        ),
    ] = None,
    write_vectors: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Write the test vectors, always the same to the byte."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Ask the cases of this file alone, e.g. canonical.json."),
    ] = None,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Feed the test vectors to a client, in the line protocol of the client specification. Exit code 1 if it is wrong.

    Examples:
      sfumato conformance ./my-client

      sfumato conformance -- node conformance.js --quiet

      sfumato conformance --write-vectors test-vectors

    """
    if (client is None) == (write_vectors is None):
        raise typer.BadParameter("Name a client, or a folder for --write-vectors.")
    if write_vectors is not None:
        _write(Path(write_vectors))
        return
    results = _examined(client or [], patience, file)
    failed = any(result.passed < result.cases for result in results)
    say(json.dumps(_in_json(results, failed)) if as_json else _in_text(results, failed))
    if failed:
        raise typer.Exit(1)


def _write(folder: Path) -> None:
    from sfumato.conformance.vectors import write_vectors

    folder.mkdir(parents=True, exist_ok=True)
    for path in write_vectors(folder):
        say(str(path))


def _examined(client: list[str], patience: float, wanted: list[str] | None) -> "list[FileResult]":
    from sfumato.cli.progress import line_shown
    from sfumato.conformance.examine import examine
    from sfumato.conformance.vectors import FILES

    files = list(wanted or FILES)
    unknown = [file for file in files if file not in FILES]
    if unknown:
        raise typer.BadParameter(f"There is no file {unknown[0]}; there are {', '.join(FILES)}.")
    results = []
    with line_shown("Asking the client") as show:
        for result in examine(client, patience, files):
            show(f"{result.file}: {result.passed} of {result.cases}")
            results.append(result)
    return results


def _in_json(results: "list[FileResult]", failed: bool) -> dict[str, object]:
    files = [
        {
            "file": result.file,
            "cases": result.cases,
            "passed": result.passed,
            "ended": result.ended or None,
            "failures": [vars(failure) for failure in result.failures],
        }
        for result in results
    ]
    return {"conforms": not failed, "files": files}


def _in_text(results: "list[FileResult]", failed: bool) -> str:
    lines = [f"{'file':<18} {'cases':>6} {'passed':>7}"]
    lines += [f"{result.file:<18} {result.cases:>6} {result.passed:>7}" for result in results]
    for result in results:
        lines += _failures(result)
    verdict = (
        "The client does not conform." if failed else "The client conforms: every answer is right."
    )
    return "\n".join([*lines, "", verdict])


def _failures(result: "FileResult") -> list[str]:
    lines = []
    for failure in result.failures[:_SHOWN]:
        place = f" at {failure.place}" if failure.place else ""
        lines += ["", f"{result.file}, case {failure.number} ({failure.about}){place}"]
        lines += [f"  expected  {failure.expected}", f"  found     {failure.found}"]
    more = len(result.failures) - _SHOWN
    if more > 0:
        lines += ["", f"{result.file}: {more} more"]
    if result.ended:
        lines += ["", f"{result.file}: {result.ended}. The rest was not asked."]
    return lines
