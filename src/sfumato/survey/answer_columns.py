"""Which columns of a table contain the answers, and how to read them.

Only someone who holds the whole table needs this. A device never sees it: on a device, a missing
answer is a label, and nothing is counted, skipped or refused because of its value.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain, Label
from sfumato.errors import InvalidArgument, InvalidContext
from sfumato.foundation.delimiter import parse_delimiter
from sfumato.survey.cell_date import DATE_PARTS, DatePart, require_date_format

__all__ = ["DATE_PARTS", "REFUSE", "SKIP", "AnswerColumns", "DatePart"]

REFUSE = "refuse"
"""The value of ``missing`` that rejects a table with empty cells."""

SKIP = "skip"
"""The value of ``missing`` that leaves out people without an answer."""

_LABELS_OF_PART = {"weekday": 7, "hour": 24}


@dataclass(frozen=True)
class AnswerColumns:
    """The columns that contain the answers, one for values or two for positions.

    ``missing``: what to do with rows without an answer: "refuse", "skip", or a label to count them
    as. By default, they count as the domain's ``other``; without one, the table is refused.
    ``missing_codes``: texts that mean that there is no answer, such as "NA" or "-99".
    ``bins``: increasing numbers that divide a column of numbers into ``len(bins) + 1`` intervals,
    each closed below. The domain's first labels are the intervals, in order.
    ``date``: the part of a date that is the answer. For "weekday" and "hour", the domain's first
    7 or 24 labels are the parts, from Monday or midnight. For "day" and "month", labels look like
    2026-11-18 or 2026-11.
    ``date_format``: the format of dates in text, as for ``strptime``; the default is ISO 8601.
    ``delimiter``: the character between the cells of a CSV file; the default is a comma.
    ``sheet``: the sheet of an Excel workbook; the default is the first one.
    ``allow_other``: whether most answers may count as the domain's ``other``. Otherwise, such a
    table is refused, because its labels probably belong to another column.
    """

    value: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    missing: Label | None = None
    missing_codes: tuple[str, ...] = ()
    bins: tuple[float, ...] = ()
    date: DatePart | None = None
    date_format: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    allow_other: bool = False

    def check(self, domain: Domain) -> None:
        """Reject columns that are missing or contradictory, or that do not fit the domain."""
        self._check_names(domain)
        self.check_rules(domain)

    def check_rules(self, domain: Domain) -> None:
        """Reject rules for reading cells that do not fit the domain; columns may be missing."""
        self.missing_symbol(domain)
        self.check_formats()
        if isinstance(domain, GridDomain | H3Domain) and (self.bins or self.date is not None):
            raise InvalidArgument(
                "bins and date are for a domain of labels, not for positions. Remove them."
            )
        self._check_label_count(domain)

    def check_formats(self) -> None:
        """Reject bins, dates and delimiters that are invalid for any domain."""
        parse_delimiter(self.delimiter, "delimiter")
        if self.bins:
            self._check_bins()
        if self.date is not None and self.date not in DATE_PARTS:
            raise InvalidArgument(
                f"date must be one of {', '.join(DATE_PARTS)}; got {self.date!r}."
            )
        if self.date_format is None:
            return
        if self.date is None:
            raise InvalidArgument(
                "date_format (--date-format) requires date (--date): day, weekday, hour or month."
            )
        require_date_format(self.date_format, self.date)

    def _check_names(self, domain: Domain) -> None:
        has_value = self.value is not None
        is_consistent = (self.latitude is None) == (self.longitude is None) == has_value
        if not is_consistent:
            raise InvalidArgument("pass either --column, or both --latitude and --longitude.")
        if has_value:
            if isinstance(domain, GridDomain):
                raise InvalidArgument(
                    "a grid survey needs positions: pass --latitude and --longitude."
                )
        elif self.latitude == self.longitude:
            raise InvalidArgument("--latitude and --longitude must be two different columns.")
        elif not isinstance(domain, GridDomain | H3Domain):
            raise InvalidArgument(
                "--latitude and --longitude are for surveys with a grid or H3 domain; "
                "pass --column."
            )

    def _check_bins(self) -> None:
        is_increasing = all(low < high for low, high in pairwise(self.bins))
        if not is_increasing or not all(map(math.isfinite, self.bins)):
            raise InvalidArgument("bins must be increasing numbers, such as 18,30,45,60.")
        if self.date is not None:
            raise InvalidArgument("choose either bins, for numbers, or date, for dates.")

    def _check_label_count(self, domain: Domain) -> None:
        """Reject a domain with too few labels for the bins, or for the parts of a date."""
        label_count = len(self.bins) + 1 if self.bins else _LABELS_OF_PART.get(self.date or "", 0)
        if label_count == 0:
            return
        field = "bins" if self.bins else "date"
        if isinstance(domain, IntegerDomain):
            is_hours = self.date == "hour" and domain.labels == range(24)
            if not is_hours:
                raise InvalidArgument(
                    f"{field} needs a list of labels; the domain is a range of integers. List its "
                    f"labels, or remove {field}."
                )
        elif domain.size < label_count:
            unit = "interval" if self.bins else f"{self.date} of a date"
            raise InvalidArgument(
                f"the domain must start with {label_count} labels, one for each {unit}; it has "
                f"{domain.size}. Change the labels or {field}."
            )

    def missing_symbol(self, domain: Domain) -> int | None:
        """Return the symbol for rows without an answer, or ``None`` to skip or refuse them."""
        if self.missing is None:
            return None if domain.other is None else domain.other_symbol
        if self.missing in (REFUSE, SKIP):
            self._require_unambiguous(domain)
            return None
        try:
            return int(domain.label_symbols([self.missing], "missing")[0])
        except InvalidContext:
            raise InvalidArgument(
                f"missing must be {REFUSE}, {SKIP} or a label of the domain; got "
                f"{self.missing!r}, which is not one of its labels."
            ) from None

    def _require_unambiguous(self, domain: Domain) -> None:
        """Reject ``missing = "skip"`` if "skip" is also a label, and the same for "refuse"."""
        if not isinstance(self.missing, str) or domain.find_label(self.missing) < 0:
            return
        raise InvalidArgument(
            f"missing = {self.missing!r} is ambiguous, because {self.missing!r} is also a label. "
            f"Give the label another name, such as {self.missing.capitalize()!r}."
        )
