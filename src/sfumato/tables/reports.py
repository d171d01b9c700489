"""Report files: one column of integers that carries the fingerprint of its survey.

Parquet: a column ``report`` (unsigned, 32 bits), the fingerprint in the file's metadata. CSV: one column whose header
is ``report@<fingerprint>#<identifier>``. The identifier is made with the file: a copy under another name is known
again, and not counted twice. Files written under a seed carry ``simulated``: in the metadata, or as ``simulated@…``.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.batches import fresh_id
from sfumato.errors import InvalidTable, WrongSurvey
from sfumato.foundation.files import atomic_file
from sfumato.survey.report_batch import Reports
from sfumato.tables.duplicates import Once
from sfumato.tables.read import Table, opened_table

__all__ = ["ReportWriter", "report_batches", "report_writer"]

_SURVEY, _BATCH, _SIMULATED = b"sfumato.survey", b"sfumato.batch", b"sfumato.simulated"


class ReportWriter:
    """Writes batches of reports to an open file, as Parquet or CSV."""

    def __init__(self, sink: BinaryIO, fingerprint: str, *, as_csv: bool) -> None:
        self._fingerprint = fingerprint
        id_ = fresh_id().hex()
        name = f"report@{fingerprint}#{id_}" if as_csv else "report"
        self._schema = pa.schema(
            [(name, pa.uint32())], metadata={_SURVEY: fingerprint, _BATCH: id_}
        )
        self._writer: Any
        if as_csv:
            self._writer = pa.csv.CSVWriter(
                sink, self._schema, write_options=pa.csv.WriteOptions(quoting_style="none")
            )
        else:
            self._writer = pa.parquet.ParquetWriter(
                sink, self._schema, compression="zstd", use_dictionary=False
            )

    def write(self, numbers: NDArray[Any]) -> None:
        """Add a batch."""
        self._writer.write(pa.record_batch([pa.array(numbers, pa.uint32())], schema=self._schema))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


@contextmanager
def report_writer(path: str, fingerprint: str) -> Iterator[ReportWriter]:
    """A writer to a file that appears whole or not at all, by its ending (.csv or .parquet); ``-`` is CSV to a pipe.

    A pipe too gets all or nothing: reports wait in a temporary file, for they are private and answers are not.
    """
    if path == "-":
        with tempfile.TemporaryFile() as waiting:
            with closing(ReportWriter(waiting, fingerprint, as_csv=True)) as writer:
                yield writer
            waiting.seek(0)
            shutil.copyfileobj(waiting, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    if Path(path).suffix not in (".csv", ".parquet"):
        raise InvalidTable(
            f"the output must end in .csv or .parquet (a tally: .json), or be - for a pipe; found {Path(path).name}."
        )
    # Closed on failure too, while there is a file to close: Arrow would do it later and complain.
    with (
        atomic_file(path) as file,
        closing(ReportWriter(file, fingerprint, as_csv=path.endswith(".csv"))) as writer,
    ):
        yield writer


def report_batches(path: str, fingerprint: str, once: Once | None = None) -> Iterator[Reports]:
    """The reports of a file, or of a folder that one job wrote, batch by batch.

    What is of another survey, or simulated, is refused. So is what ``once`` has seen, under whatever name.
    """
    own: set[str] = (
        set()
    )  # all files of a folder carry the identifier of their job, in the name of the column
    for part in _parts(path):
        with opened_table(part) as table:
            column, found, id_ = _named(table)
            if found != fingerprint:
                raise WrongSurvey(
                    f"{table.name} holds reports of survey {found[:12]}…; this one is {fingerprint[:12]}…."
                )
            if once is not None and id_ and id_ not in own:
                once.demand({id_}, table.name if part == path else Path(path).name)
            if column != "report":
                own.add(id_)
            for batch in table.batches({column: pa.uint32()}):
                numbers = batch.column(0)
                if numbers.null_count:
                    raise InvalidTable(
                        f"{table.name}: a report is missing. Ask for the file again."
                    )
                yield Reports(numbers.to_numpy(zero_copy_only=False), fingerprint)


def _parts(path: str) -> list[str]:
    """A file by itself; of a folder, which a job on a cluster writes, the Parquet files."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    parts = sorted(str(part) for part in folder.glob("*.parquet"))
    if not parts or not (folder / "_SUCCESS").exists():
        raise InvalidTable(
            f"{folder.name} is a folder, but not one of reports that is complete: it needs Parquet files, and the file "
            "_SUCCESS that a job leaves at its end."
        )
    return parts


def _named(table: Table) -> tuple[str, str, str]:
    """The report column, the fingerprint that the file carries, and its identifier (older files have none)."""
    kinds = {column.partition("@")[0] for column in table.columns if "@" in column}
    if _SIMULATED in table.metadata or "simulated" in kinds:
        raise WrongSurvey(
            f"{table.name} was made under a seed: it is a simulation, not private reports."
        )
    if _SURVEY in table.metadata and "report" in table.columns:
        survey, id_ = (
            table.metadata.get(name, b"").decode("ascii", "replace") for name in (_SURVEY, _BATCH)
        )
        return "report", survey, id_
    for column in table.columns:
        kind, at, found = column.partition("@")
        if at and kind == "report":
            survey, _, id_ = found.partition("#")
            return column, survey, id_
    raise InvalidTable(
        f"{table.name} is no report file: it has no column of reports that names its survey. "
        "Make one with sfumato privatize."
    )
