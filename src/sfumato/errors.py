"""The errors that Sfumato raises.

The tree::

    SfumatoError
    ├── InvalidArgument     (ValueError)  an argument is out of range or of the wrong type
    ├── InvalidSetting      (ValueError)  a port, host, URL, database or output cannot be used
    ├── InvalidContext      (ValueError)  a domain, an ε or a privacy matrix is invalid
    ├── InvalidSurvey       (ValueError)  a survey file is invalid; names the field
    ├── InvalidSymbols      (ValueError)  symbols or words have the wrong type, shape or range
    ├── InvalidTable        (ValueError)  a data file cannot be read
    ├── UnknownValue        (ValueError)  a value is not in the domain
    ├── ContextMismatch     (ValueError)  two objects have different domains
    ├── NoClosedForm        (ValueError)  no closed-form mechanism fits the context
    ├── NothingToLearn      (ValueError)  the context or the word length leaves nothing to learn
    ├── WrongSurvey         (ValueError)  reports or tallies of another mechanism or survey
    ├── InvalidTally        (ValueError)  counts that cannot be a tally, or a damaged tally file
    ├── InvalidBatch        (ValueError)  a body is not a batch of reports
    ├── ReportRejected      (ValueError)  a report that the mechanism cannot send; has its index
    ├── NotEnoughReports    (ValueError)  too few reports
    ├── PrivacyViolation                  a channel breaks its context
    ├── ExamFailed                        a mechanism fails a check of its own claims
    ├── EntropyUnavailable                the operating system provides no randomness
    ├── DamagedState                      a file that Sfumato wrote is damaged; nothing was changed
    ├── BudgetExceeded                    a device has spent the budget of its ledger
    ├── NotDelivered                      reports are kept for a retry; none is lost or duplicated
    ├── EngineStopped                     workers ended before their work was done; nothing was kept
    ├── StoreUnavailable                  the aggregator's store is unavailable; nothing was changed
    │   └── StoreFull                     … because it is full
    └── MissingExtra        (ImportError) an optional dependency is not installed

Messages say what was expected, what was found and what to do. No message, attribute or chained
exception ever contains a person's value.
"""

from typing import Any

__all__ = [
    "BudgetExceeded",
    "ContextMismatch",
    "DamagedState",
    "EngineStopped",
    "EntropyUnavailable",
    "ExamFailed",
    "InvalidArgument",
    "InvalidBatch",
    "InvalidContext",
    "InvalidSetting",
    "InvalidSurvey",
    "InvalidSymbols",
    "InvalidTable",
    "InvalidTally",
    "MissingExtra",
    "NoClosedForm",
    "NotDelivered",
    "NotEnoughReports",
    "NothingToLearn",
    "PrivacyViolation",
    "ReportRejected",
    "SfumatoError",
    "StoreFull",
    "StoreUnavailable",
    "UnknownValue",
    "WrongSurvey",
]


class SfumatoError(Exception):
    """The root: catch this to catch everything Sfumato raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the state, not the arguments: errors of workers must reach their parent complete.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[SfumatoError], args: tuple[object, ...], state: dict[str, object]
) -> SfumatoError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidArgument(SfumatoError, ValueError):
    """An argument is out of range or of the wrong type."""


class InvalidSetting(SfumatoError, ValueError):
    """A port, host, database URL, output folder or aggregator URL cannot be used."""


class InvalidContext(SfumatoError, ValueError):
    """A domain, an ε or a privacy matrix is invalid."""


class InvalidSurvey(SfumatoError, ValueError):
    """A survey file is invalid. The message names the field and says how to fix it."""


class InvalidSymbols(SfumatoError, ValueError):
    """Symbols or words have the wrong type, shape or range."""


class InvalidTable(SfumatoError, ValueError):
    """A data file cannot be read. Names the file and the column, never a value."""


class UnknownValue(SfumatoError, ValueError):
    """A value is not in the domain.

    ``first`` is the position of the first unknown value, ``count`` how many there are. The values
    themselves are never kept.
    """

    def __init__(self, message: str, *, first: int = 0, count: int = 1) -> None:
        super().__init__(message)
        self.first = first
        self.count = count


class ContextMismatch(SfumatoError, ValueError):
    """Two objects have different domains."""


class NoClosedForm(SfumatoError, ValueError):
    """No closed-form mechanism fits the context."""


class NothingToLearn(SfumatoError, ValueError):
    """The context, or the length of the word, leaves nothing to learn."""


class WrongSurvey(SfumatoError, ValueError):
    """Reports or tallies belong to another mechanism or survey."""


class InvalidTally(SfumatoError, ValueError):
    """Counts that cannot be a tally, or a damaged tally file."""


class InvalidBatch(SfumatoError, ValueError):
    """A body is not a batch of reports. Never contains a value."""


class ReportRejected(SfumatoError, ValueError):
    """A report cannot come from the mechanism. ``index`` is its position in the batch."""

    def __init__(self, message: str, *, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class NotEnoughReports(SfumatoError, ValueError):
    """There are too few reports."""


class PrivacyViolation(SfumatoError):
    """A channel breaks its context: ``x`` against ``x2``, on this ``output``."""

    def __init__(self, message: str, *, x: int, x2: int, output: int) -> None:
        super().__init__(message)
        self.x = x
        self.x2 = x2
        self.output = output


class ExamFailed(SfumatoError):
    """A mechanism fails a check of its own claims. ``check`` is the name of that check."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check = check


class EntropyUnavailable(SfumatoError):
    """The operating system provides no randomness. Nothing was privatised."""


class DamagedState(SfumatoError):
    """A file that Sfumato wrote, such as a ledger or an outbox, is damaged.

    Nothing was changed or sent.
    """


class BudgetExceeded(SfumatoError):
    """A device has spent the budget of its ledger. Nothing was sent."""


class EngineStopped(SfumatoError):
    """Workers ended before their work was done. Nothing was kept; you can try again."""


class NotDelivered(SfumatoError):
    """Reports were not delivered. They are kept for a retry, and will be counted once."""


class StoreUnavailable(SfumatoError):
    """The aggregator's store is locked, read-only or unreachable. Nothing was changed."""


class StoreFull(StoreUnavailable):
    """The aggregator's store is full. Nothing was changed."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed. The message says how to install it."""
