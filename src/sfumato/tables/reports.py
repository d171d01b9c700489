"""Report files, which carry the fingerprint of their survey: write, read and count them.

Parquet: a column ``report`` (unsigned, 32 bits), with the fingerprint in the file's metadata.
CSV: one column with the header ``report@<fingerprint>#<identifier>``. The identifier is drawn when
the file is created, so a renamed copy is recognised and not counted twice. Files written under a
seed carry ``simulated`` instead: in the metadata, or as ``simulated@…``.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.batches import TallyExport, fresh_id, parse_tally, tally_to_json
from sfumato.errors import InvalidSetting, InvalidTable, InvalidTally, WrongSurvey
from sfumato.foundation.arrays import Arrow
from sfumato.foundation.files import atomic_file, write_atomically
from sfumato.survey import ReportBatch, Survey
from sfumato.tables.read import Table, open_table
from sfumato.tally import Tally

__all__ = [
    "DuplicateGuard",
    "ReportWriter",
    "count_files",
    "report_batches",
    "report_writer",
    "write_tally",
]

# Keys of a Parquet file's metadata.
_SURVEY = b"sfumato.survey"
_BATCH = b"sfumato.batch"
_SIMULATED = b"sfumato.simulated"


class DuplicateGuard:
    """Remembers the identifiers of files and tallies, so that none is counted twice.

    >>> guard = DuplicateGuard()
    >>> guard.check({"a"}, "monday.csv")
    >>> guard.check({"b", "a"}, "copy.csv")
    Traceback (most recent call last):
    sfumato.errors.InvalidTable: copy.csv and monday.csv contain the same reports, which would be
    counted twice. Leave one out.
    """

    def __init__(self) -> None:
        self._file_of: dict[str, str] = {}

    def check(self, ids: Set[str], name: str) -> None:
        """Reject the file ``name`` if one of its identifiers was counted before."""
        shared = ids & self._file_of.keys()
        if shared:
            other = self._file_of[min(shared)]
            raise InvalidTable(
                f"{name} and {other} contain the same reports, which would be counted twice. "
                "Leave one out."
            )
        for id_ in ids:
            self._file_of[id_] = name


# --- write ----------------------------------------------------------------------------------------


class ReportWriter:
    """Writes batches of reports to an open file, as Parquet or CSV."""

    def __init__(self, sink: BinaryIO, fingerprint: str, *, as_csv: bool) -> None:
        id_ = fresh_id().hex()
        column = f"report@{fingerprint}#{id_}" if as_csv else "report"
        metadata = {_SURVEY: fingerprint, _BATCH: id_}
        self._schema = pa.schema([(column, pa.uint32())], metadata=metadata)
        self._writer: Arrow
        if as_csv:
            options = pa.csv.WriteOptions(quoting_style="none")
            self._writer = pa.csv.CSVWriter(sink, self._schema, write_options=options)
        else:
            self._writer = pa.parquet.ParquetWriter(
                sink, self._schema, compression="zstd", use_dictionary=False
            )

    def write(self, numbers: NDArray[Any]) -> None:
        """Write a batch."""
        column = pa.array(numbers, pa.uint32())
        self._writer.write(pa.record_batch([column], schema=self._schema))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


@contextmanager
def report_writer(path: str, fingerprint: str) -> Iterator[ReportWriter]:
    """Open a writer of a .csv or .parquet file, by its ending; ``-`` writes CSV to standard output.

    The output appears complete or not at all. For standard output, the reports wait in a temporary
    file. That is safe because reports, unlike answers, are private.
    """
    if path == "-":
        with tempfile.TemporaryFile() as buffer:
            with closing(ReportWriter(buffer, fingerprint, as_csv=True)) as writer:
                yield writer
            buffer.seek(0)
            shutil.copyfileobj(buffer, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    name = Path(path).name
    if Path(path).suffix not in (".csv", ".parquet"):
        raise InvalidSetting(
            "the output must end in .csv or .parquet (.json for a tally), or be - for a pipe; "
            f"got {name}."
        )
    # Close on failure too, while the file is open: Arrow would do it later, and fail.
    with (
        atomic_file(path) as file,
        closing(ReportWriter(file, fingerprint, as_csv=name.endswith(".csv"))) as writer,
    ):
        yield writer


# --- read -----------------------------------------------------------------------------------------


def report_batches(
    path: str, fingerprint: str, guard: DuplicateGuard | None = None
) -> Iterator[ReportBatch]:
    """Yield the reports of a file, or of a folder that one job wrote, batch by batch.

    Reports of another survey, simulated reports, and reports that ``guard`` has seen are errors.
    """
    folder_ids: set[str] = set()
    for part in _parts(path):
        with open_table(part) as table:
            header = _header(table)
            if header.survey != fingerprint:
                raise WrongSurvey(
                    f"{table.name} contains reports of survey {header.survey[:12]}…; "
                    f"this one is {fingerprint[:12]}…."
                )
            if guard is not None and header.id and header.id not in folder_ids:
                guard.check({header.id}, table.name if part == path else Path(path).name)
            if header.column != "report":
                # A job writes its identifier into the column name of all its files.
                folder_ids.add(header.id)
            for batch in table.batches({header.column: pa.uint32()}):
                numbers = batch.column(0)
                if numbers.null_count:
                    raise InvalidTable(f"{table.name}: a report is missing. Get the file again.")
                yield ReportBatch(numbers.to_numpy(zero_copy_only=False), fingerprint)


def _parts(path: str) -> list[str]:
    """Return the file itself, or the Parquet files of a folder that a cluster job wrote."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    parts = sorted(str(part) for part in folder.glob("*.parquet"))
    if not parts or not (folder / "_SUCCESS").exists():
        raise InvalidTable(
            f"{folder.name} is not a complete folder of reports: it must contain Parquet files, "
            "and the file _SUCCESS that a job writes last."
        )
    return parts


class _Header(NamedTuple):
    """The column of reports, the survey and the identifier; older files have an empty ``id``."""

    column: str
    survey: str
    id: str


def _header(table: Table) -> _Header:
    prefixes = {column.partition("@")[0] for column in table.columns if "@" in column}
    if _SIMULATED in table.metadata or "simulated" in prefixes:
        raise WrongSurvey(
            f"{table.name} was written under a seed: it is a simulation, not private reports."
        )
    if _SURVEY in table.metadata and "report" in table.columns:
        survey = table.metadata[_SURVEY].decode("ascii", "replace")
        id_ = table.metadata.get(_BATCH, b"").decode("ascii", "replace")
        return _Header("report", survey, id_)
    for column in table.columns:
        if column.startswith("report@"):
            survey, _, id_ = column.removeprefix("report@").partition("#")
            return _Header(column, survey, id_)
    raise InvalidTable(
        f"{table.name} is not a report file: it has no report column that names its survey. "
        "Write one with sfumato privatize."
    )


# --- count ----------------------------------------------------------------------------------------


def count_files(paths: Sequence[str], survey: Survey) -> Tally:
    """Tally report files (CSV, Parquet) and exported tallies (JSON).

    It is an error if two inputs share reports, even under different names.
    """
    guard = DuplicateGuard()
    tally_paths = [path for path in paths if path.endswith(".json")]
    report_paths = [path for path in paths if path not in tally_paths]
    total = survey.tally(_batches(report_paths, survey, guard))
    for path in tally_paths:
        export = _read_tally(path)
        export.tally.require(survey.fingerprint, survey.mechanism.outputs)
        ids = {id_.hex() for id_ in (export.id, *export.covers)}
        guard.check(ids, Path(path).name)
        total += export.tally
    return total


def write_tally(path: str, tally: Tally) -> None:
    """Write a tally under a new identifier, for ``estimate`` and for aggregators."""
    write_atomically(path, tally_to_json(TallyExport(fresh_id(), tally)) + b"\n")


def _batches(paths: Sequence[str], survey: Survey, guard: DuplicateGuard) -> Iterator[ReportBatch]:
    for path in paths:
        yield from report_batches(path, survey.fingerprint, guard)


def _read_tally(path: str) -> TallyExport:
    name = Path(path).name
    try:
        return parse_tally(Path(path).read_bytes())
    except OSError as problem:
        raise InvalidTable(f"cannot open {name}: {problem.strerror}.") from None
    except InvalidTally as problem:
        raise InvalidTally(f"{name}: {problem}") from None
