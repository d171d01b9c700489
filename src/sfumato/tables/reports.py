"""Write, read and count report files, which contain their survey's fingerprint.

A Parquet file has one column, ``report`` (unsigned 32-bit integers), and the fingerprint in its
metadata. A CSV file has one column with the header ``report@<fingerprint>#<identifier>``. The
identifier is random for each file, so a renamed copy is recognised and not counted twice. Files
written with a seed are marked ``simulated`` instead: in the metadata, or as ``simulated@…``.
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

from sfumato.batches import TallyExport, UploadRules, fresh_id, parse_tally, tally_to_json
from sfumato.batches.arrow_format import BATCH_KEY, SIMULATED_KEY, SURVEY_KEY
from sfumato.cells import TallyCells
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


class DuplicateGuard:
    """Records the identifiers of files and tallies, so that none is counted twice.

    >>> guard = DuplicateGuard()
    >>> guard.check({"a"}, "monday.csv")
    >>> guard.check({"b", "a"}, "copy.csv")
    Traceback (most recent call last):
    sfumato.errors.InvalidTable: copy.csv and monday.csv contain the same reports, which would be
    counted twice. Leave one out.
    """

    def __init__(self) -> None:
        self._file_by_id: dict[str, str] = {}

    def check(self, ids: Set[str], name: str) -> None:
        """Reject the file ``name`` if one of its identifiers is known. Otherwise, record them."""
        duplicates = ids & self._file_by_id.keys()
        if duplicates:
            earlier_name = self._file_by_id[min(duplicates)]
            raise InvalidTable(
                f"{name} and {earlier_name} contain the same reports, which would be counted "
                "twice. Leave one out."
            )
        for id_ in ids:
            self._file_by_id[id_] = name


# --- write ----------------------------------------------------------------------------------------


class ReportWriter:
    """Writes batches of reports to an open file, as Parquet or CSV."""

    def __init__(self, sink: BinaryIO, fingerprint: str, *, as_csv: bool) -> None:
        id_ = fresh_id().hex()
        column = f"report@{fingerprint}#{id_}" if as_csv else "report"
        metadata = {SURVEY_KEY: fingerprint, BATCH_KEY: id_}
        self._schema = pa.schema([(column, pa.uint32())], metadata=metadata)
        self._writer: Arrow
        if as_csv:
            options = pa.csv.WriteOptions(quoting_style="none")
            self._writer = pa.csv.CSVWriter(sink, self._schema, write_options=options)
        else:
            self._writer = pa.parquet.ParquetWriter(
                sink, self._schema, compression="zstd", use_dictionary=False
            )

    def write(self, reports: NDArray[Any]) -> None:
        """Write a batch of reports."""
        column = pa.array(reports, pa.uint32())
        self._writer.write(pa.record_batch([column], schema=self._schema))

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()


@contextmanager
def report_writer(path: str, fingerprint: str) -> Iterator[ReportWriter]:
    """Open a writer for a .csv or .parquet file. ``-`` means CSV on standard output.

    The output appears complete or not at all. For standard output, the reports are buffered in a
    temporary file. That is safe because reports, unlike answers, are private.
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
            "the output must end in .csv or .parquet (.json for a tally), or be - for standard "
            f"output; got {name}."
        )
    # Close the writer on failure too: otherwise, Arrow would close it after the file, which fails.
    with (
        atomic_file(path) as file,
        closing(ReportWriter(file, fingerprint, as_csv=name.endswith(".csv"))) as writer,
    ):
        yield writer


# --- read -----------------------------------------------------------------------------------------


def report_batches(
    path: str, fingerprint: str, guard: DuplicateGuard | None = None
) -> Iterator[ReportBatch]:
    """Yield the reports in a file, or in a folder written by one job, batch by batch.

    Raise an error for reports from another survey, simulated reports, and reports that ``guard``
    has already seen.
    """
    folder_ids: set[str] = set()
    for file in _list_files(path):
        with open_table(file) as table:
            header = _read_header(table)
            if header.fingerprint != fingerprint:
                raise WrongSurvey(
                    f"{table.name} contains reports for survey {header.fingerprint[:12]}…, "
                    f"not for this one ({fingerprint[:12]}…)."
                )
            if guard is not None and header.id and header.id not in folder_ids:
                guard.check({header.id}, table.name if file == path else Path(path).name)
            if header.column != "report":
                # The files written by a cluster job share an identifier, in the column's name.
                folder_ids.add(header.id)
            for batch in table.batches({header.column: pa.uint32()}):
                reports = batch.column(0)
                if reports.null_count:
                    raise InvalidTable(
                        f"{table.name}: a report is missing. Get a new copy of the file."
                    )
                yield ReportBatch(reports.to_numpy(zero_copy_only=False), fingerprint)


def _list_files(path: str) -> list[str]:
    """Return the file itself, or the Parquet files in a folder written by a cluster job."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    files = sorted(str(file) for file in folder.glob("*.parquet"))
    if not files or not (folder / "_SUCCESS").exists():
        raise InvalidTable(
            f"{folder.name} is not a complete folder of reports: it must contain Parquet files, "
            "and the _SUCCESS file that a job writes last."
        )
    return files


class _Header(NamedTuple):
    """The name of the report column, the survey's fingerprint, and the file's identifier.

    In files written by older versions, ``id`` is empty.
    """

    column: str
    fingerprint: str
    id: str


def _read_header(table: Table) -> _Header:
    prefixes = {column.partition("@")[0] for column in table.columns if "@" in column}
    if SIMULATED_KEY in table.metadata or "simulated" in prefixes:
        raise WrongSurvey(
            f"{table.name} was written with a seed, so it contains simulated reports, "
            "not private ones."
        )
    if SURVEY_KEY in table.metadata and "report" in table.columns:
        fingerprint = table.metadata[SURVEY_KEY].decode("ascii", "replace")
        id_ = table.metadata.get(BATCH_KEY, b"").decode("ascii", "replace")
        return _Header("report", fingerprint, id_)
    for column in table.columns:
        if column.startswith("report@"):
            fingerprint, _, id_ = column.removeprefix("report@").partition("#")
            return _Header(column, fingerprint, id_)
    raise InvalidTable(
        f"{table.name} is not a report file: it has no report column that identifies its survey. "
        "Write one with sfumato privatize."
    )


# --- count ----------------------------------------------------------------------------------------


def count_files(paths: Sequence[str], survey: Survey) -> Tally:
    """Return the combined tally of report files (CSV, Parquet) and exported tallies (JSON).

    Raise an error if two inputs contain the same reports, even under different names.
    """
    guard = DuplicateGuard()
    tally_paths = [path for path in paths if path.endswith(".json")]
    report_paths = [path for path in paths if path not in tally_paths]
    total = survey.tally(_read_batches(report_paths, survey, guard))
    for path in tally_paths:
        export = _read_tally(path)
        export.tally.require(survey.fingerprint, survey.mechanism.outputs)
        UploadRules.from_survey(survey).require_export(export)
        ids = {id_.hex() for id_ in (export.id, *export.covers)}
        guard.check(ids, Path(path).name)
        total += export.tally
    return total


def write_tally(path: str, tally: Tally, survey: Survey) -> None:
    """Write a tally under a new identifier, for ``sfumato estimate`` or an aggregator.

    Its reports come from a table, so their periods are unknown: the tally is one cell without a
    key.
    """
    export = TallyExport(fresh_id(), TallyCells.single(tally), edition=survey.edition)
    write_atomically(path, tally_to_json(export) + b"\n")


def _read_batches(
    paths: Sequence[str], survey: Survey, guard: DuplicateGuard
) -> Iterator[ReportBatch]:
    for path in paths:
        yield from report_batches(path, survey.fingerprint, guard)


def _read_tally(path: str) -> TallyExport:
    name = Path(path).name
    try:
        return parse_tally(Path(path).read_bytes())
    except OSError as error:
        raise InvalidTable(f"cannot open {name}: {error.strerror}.") from None
    except InvalidTally as error:
        raise InvalidTally(f"{name}: {error}") from None
