"""The exceptions that Sfumato raises.

The hierarchy::

    SfumatoError
    ├── InvalidArgument     (ValueError)  an argument is out of range or of the wrong type
    ├── InvalidSetting      (ValueError)  a port, host, URL, database or output folder is unusable
    ├── InvalidContext      (ValueError)  a domain, an ε or a privacy matrix is invalid
    ├── InvalidSurvey       (ValueError)  a survey file is invalid; the message names the field
    ├── InvalidSymbols      (ValueError)  symbols or words have the wrong type, shape or range
    │   └── UnknownLabel    (ValueError)  the domain has no such label; also a KeyError
    ├── InvalidTable        (ValueError)  a data file cannot be read
    ├── UnknownValue        (ValueError)  a value is not in the domain
    ├── ContextMismatch     (ValueError)  two objects have different domains
    ├── NoClosedForm        (ValueError)  no closed-form mechanism fits the context
    ├── NothingToLearn      (ValueError)  the context or the word length leaves nothing to learn
    ├── WrongSurvey         (ValueError)  reports or tallies belong to a different survey
    ├── InvalidTally        (ValueError)  the counts are invalid, or a tally file is damaged
    ├── InvalidBatch        (ValueError)  a request body is not a valid batch of reports
    ├── ReportRejected      (ValueError)  a report is not a possible output of the mechanism
    ├── NotEnoughReports    (ValueError)  there are too few reports
    ├── PrivacyViolation                  a channel violates its context
    ├── ExamFailed                        a mechanism fails one of the exam's checks
    ├── EntropyUnavailable                the operating system provides no randomness
    ├── DamagedState                      a file that Sfumato wrote is damaged; nothing was changed
    ├── BudgetExceeded                    a device has spent its budget
    ├── NotDelivered                      reports were not delivered; they are kept for a retry
    ├── EngineStopped                     workers exited before finishing; nothing was kept
    ├── StoreUnavailable                  the aggregator's store is unavailable; nothing was changed
    │   └── StoreFull                     the store is full
    ├── UnknownSender       (LookupError)
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
    "UnknownLabel",
    "UnknownSender",
    "UnknownValue",
    "WrongSurvey",
]


class SfumatoError(Exception):
    """The base class of all errors that Sfumato raises deliberately."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the attributes too, so that an error in a worker reaches the parent process intact.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    error_type: type[SfumatoError], args: tuple[object, ...], state: dict[str, object]
) -> SfumatoError:
    error = error_type.__new__(error_type, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidArgument(SfumatoError, ValueError):
    """An argument is out of range or of the wrong type."""


class InvalidSetting(SfumatoError, ValueError):
    """A port, host, URL, database or output folder is unusable."""


class InvalidContext(SfumatoError, ValueError):
    """A domain, an ε or a privacy matrix is invalid."""


class InvalidSurvey(SfumatoError, ValueError):
    """A survey file is invalid. The message names the field and says how to fix it."""


class InvalidSymbols(SfumatoError, ValueError):
    """Symbols or words have the wrong type, shape or range."""


class UnknownLabel(InvalidSymbols, KeyError):
    """The domain has no such label. The message names the label that is closest to it."""

    def __str__(self) -> str:
        # KeyError would show the message in quotation marks, with its own quotes escaped.
        return str(self.args[0])


class InvalidTable(SfumatoError, ValueError):
    """A data file cannot be read. The message names the file and the column, never a value."""


class UnknownValue(SfumatoError, ValueError):
    """A value is not in the domain.

    ``first``: the position of the first unknown value.
    ``count``: the number of unknown values.

    The error never contains the values themselves.
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
    """The context or the word length leaves nothing to learn."""


class WrongSurvey(SfumatoError, ValueError):
    """Reports or tallies belong to a different mechanism or survey."""


class InvalidTally(SfumatoError, ValueError):
    """The counts are not a valid tally, or a tally file is damaged."""


class InvalidBatch(SfumatoError, ValueError):
    """A request body is not a valid batch of reports. The message never contains a value."""


class ReportRejected(SfumatoError, ValueError):
    """A report is not a possible output of the mechanism.

    ``index`` is the position of the report in its batch.
    """

    def __init__(self, message: str, *, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class NotEnoughReports(SfumatoError, ValueError):
    """There are too few reports."""


class PrivacyViolation(SfumatoError):
    """A channel violates its context for the pair ``x``, ``x2`` at ``output``."""

    def __init__(self, message: str, *, x: int, x2: int, output: int) -> None:
        super().__init__(message)
        self.x = x
        self.x2 = x2
        self.output = output


class ExamFailed(SfumatoError):
    """A mechanism fails one of the exam's checks. ``check`` is the name of that check."""

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
    """A device has spent its budget. Nothing was sent."""


class EngineStopped(SfumatoError):
    """Workers exited before finishing. Nothing was saved; you can try again."""


class NotDelivered(SfumatoError):
    """Reports were not delivered. They are kept for a retry, and will be counted only once."""


class StoreUnavailable(SfumatoError):
    """The aggregator's store is locked, read-only or unreachable. Nothing was changed."""


class StoreFull(StoreUnavailable):
    """The aggregator's store is full. Nothing was changed."""


class UnknownSender(SfumatoError, LookupError):
    """The survey has no bulk sender with this name."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is not installed. The message says how to install it."""
