"""Everything Sfumato raises on purpose.

The tree::

    SfumatoError
    ├── InvalidArgument     (ValueError)  an argument out of range or of the wrong type
    ├── InvalidSetting      (ValueError)  a port, host, database URL, folder or URL that cannot be used
    ├── InvalidContext      (ValueError)  an invalid domain, ε or privacy matrix
    ├── InvalidSurvey       (ValueError)  an invalid survey file; names the field
    ├── InvalidSymbols      (ValueError)  symbols or words of the wrong type, shape or range
    ├── InvalidTable        (ValueError)  a data file that cannot be read; never holds a value
    ├── UnknownValue        (ValueError)  a value outside the domain; never holds the value
    ├── ContextMismatch     (ValueError)  two things that speak of different domains
    ├── NoClosedForm        (ValueError)  no mechanism on the shelf for this context
    ├── NothingToLearn      (ValueError)  the context (or the word) leaves nothing to be learned
    ├── WrongSurvey         (ValueError)  reports or tallies of another mechanism or survey
    ├── InvalidTally        (ValueError)  counts that cannot be a tally, or a damaged tally file
    ├── InvalidBatch        (ValueError)  a body that is no batch of reports; never holds a value
    ├── ReportRejected      (ValueError)  a report that the mechanism cannot have sent; its index, not its value
    ├── NotEnoughReports    (ValueError)  too few reports to answer
    ├── PrivacyViolation                  a channel that breaks its context
    ├── ExamFailed                        a mechanism that does not do what it says
    ├── EntropyUnavailable                the operating system gives no randomness
    ├── DamagedState                      a file that Sfumato wrote itself is damaged; nothing was changed
    ├── BudgetExceeded                    a device has promised all that its ledger allows
    ├── NotDelivered                      reports wait on this side; nothing is lost, nothing counted twice
    ├── EngineStopped                     workers ended before their work was done; nothing was kept
    ├── StoreUnavailable                  the aggregator's store cannot take anything in just now
    │   └── StoreFull                     … because there is no room left
    └── MissingExtra        (ImportError) an optional dependency is not installed

Messages say what was expected, what was found and what to do. No message, attribute or chained
exception ever holds a person's value.
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
        # By its state, not by its arguments: an error must reach the parent of a worker whole.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
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
    """A survey file is invalid: the message names the field and says what would be right."""


class InvalidSymbols(SfumatoError, ValueError):
    """Symbols or words of the wrong type, shape or range."""


class InvalidTable(SfumatoError, ValueError):
    """A data file that cannot be read: names the file and the column, never a value."""


class UnknownValue(SfumatoError, ValueError):
    """A value outside the domain. Holds the position of the first and the number of them, never values."""

    def __init__(self, message: str, *, first: int = 0, count: int = 1) -> None:
        super().__init__(message)
        self.first = first
        self.count = count


class ContextMismatch(SfumatoError, ValueError):
    """Two things that speak of different domains."""


class NoClosedForm(SfumatoError, ValueError):
    """There is no mechanism on the shelf for this context."""


class NothingToLearn(SfumatoError, ValueError):
    """The context, or the length of the word, leaves nothing to be learned."""


class WrongSurvey(SfumatoError, ValueError):
    """Reports or tallies that belong to another mechanism or survey."""


class InvalidTally(SfumatoError, ValueError):
    """Counts that cannot be a tally, or a damaged tally file."""


class InvalidBatch(SfumatoError, ValueError):
    """A body that is no batch of reports. Never holds a value."""


class ReportRejected(SfumatoError, ValueError):
    """A report that the mechanism cannot have sent: carries its index in the batch, never its value."""

    def __init__(self, message: str, *, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class NotEnoughReports(SfumatoError, ValueError):
    """Too few reports to answer."""


class PrivacyViolation(SfumatoError):
    """A channel that breaks its context: carries the pair of symbols and the output that show it."""

    def __init__(self, message: str, *, x: int, x2: int, output: int) -> None:
        super().__init__(message)
        self.x = x
        self.x2 = x2
        self.output = output


class ExamFailed(SfumatoError):
    """A mechanism that does not do what it says: carries the name of the check."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check = check


class EntropyUnavailable(SfumatoError):
    """The operating system gives no randomness; nothing was privatised."""


class DamagedState(SfumatoError):
    """A file that Sfumato wrote itself (a ledger, an outbox) is damaged. Nothing was changed or sent."""


class BudgetExceeded(SfumatoError):
    """A device has promised all that its ledger allows; nothing was sent."""


class EngineStopped(SfumatoError):
    """Workers ended before their work was done. Nothing was kept, and the work can be begun again."""


class NotDelivered(SfumatoError):
    """Reports wait on this side: they will be sent again, and counted once."""


class StoreUnavailable(SfumatoError):
    """The aggregator's store cannot take anything in just now: locked, read-only or out of reach. Nothing changed."""


class StoreFull(StoreUnavailable):
    """The aggregator's store has no room left. Nothing changed."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""
