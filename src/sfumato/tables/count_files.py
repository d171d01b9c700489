"""Count report files, and tallies that an aggregator exported, each once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sfumato.batches import TallyExport, fresh_id, parse_tally, tally_to_json
from sfumato.errors import InvalidTable, InvalidTally
from sfumato.foundation.files import write_atomically
from sfumato.survey import ReportBatch, Survey
from sfumato.tables.reports import DuplicateGuard, report_batches
from sfumato.tally import Tally

__all__ = ["count_files", "write_tally"]


def count_files(paths: Sequence[str], survey: Survey) -> Tally:
    """Tally report files (CSV, Parquet) and exported tallies (JSON).

    Reports that two of the inputs share are an error, whatever the files are called.
    """
    guard = DuplicateGuard()
    tally_paths = [path for path in paths if path.endswith(".json")]
    report_paths = [path for path in paths if path not in tally_paths]
    total = survey.tally(_batches(report_paths, survey, guard))
    for path in tally_paths:
        sent = _read_tally(path)
        sent.tally.require(survey.fingerprint, survey.mechanism.outputs)
        ids = {id_.hex() for id_ in (sent.id, *sent.covers)}
        guard.check(ids, Path(path).name)
        total += sent.tally
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
