"""Counting files: reports, and tallies that an aggregator handed out, each once."""

from collections.abc import Sequence
from pathlib import Path

from sfumato.batches import fresh_id
from sfumato.batches.tally_form import SentTally, sent_tally_of, tally_bytes
from sfumato.errors import InvalidTable, InvalidTally
from sfumato.foundation.files import write_atomically
from sfumato.survey import Survey
from sfumato.tables.duplicates import Once
from sfumato.tables.reports import report_batches
from sfumato.tally import Tally

__all__ = ["counted", "write_tally"]


def counted(paths: Sequence[str], survey: Survey) -> Tally:
    """The tally of report files (CSV, Parquet) and of exported tallies (JSON); what is in two of them is refused."""
    once = Once()
    tallies = [path for path in paths if path.endswith(".json")]
    total = survey.tally(
        batch
        for path in paths
        if path not in tallies
        for batch in report_batches(path, survey.fingerprint, once)
    )
    for path in tallies:
        sent = _sent(path)
        sent.tally.require(survey.fingerprint, survey.mechanism.outputs)
        once.demand({id_.hex() for id_ in (sent.id, *sent.covers)}, Path(path).name)
        total += sent.tally
    return total


def write_tally(path: str, tally: Tally) -> None:
    """Write a tally under a new identifier, whole or not at all, for ``estimate`` and for aggregators."""
    write_atomically(path, tally_bytes(SentTally(fresh_id(), tally)) + b"\n")


def _sent(path: str) -> SentTally:
    name = Path(path).name
    try:
        return sent_tally_of(Path(path).read_bytes())
    except OSError as problem:
        raise InvalidTable(f"{name} cannot be opened: {problem.strerror}.") from None
    except InvalidTally as problem:
        raise InvalidTally(f"{name}: {problem}") from None
