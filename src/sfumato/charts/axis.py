"""Axes: where a number lies on a chart, which numbers are marked, and how they are written."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sfumato.foundation.formatting import shorten

__all__ = ["Axis", "label_axis", "linear_axis", "log_axis", "time_axis"]

_DAY = 86_400.0
_TIME_STEPS = (
    3600.0,
    3 * 3600.0,
    6 * 3600.0,
    12 * 3600.0,
    _DAY,
    2 * _DAY,
    4 * _DAY,
    7 * _DAY,
    14 * _DAY,
)
_LONG_TIME_STEP = 30 * _DAY
_MAX_LABEL_LENGTH = 20


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high``.

    ``kind``: linear, log, time or label. Times are seconds since 1970, UTC. On an axis of labels,
    numbers are positions in a list of labels. ``write`` formats a number.
    """

    low: float
    high: float
    kind: str
    write: Callable[[float], str]
    title: str = ""

    def position(self, number: float) -> float:
        """Return where a number lies, from 0 at ``low`` to 1 at ``high``; others are clipped."""
        return min(max(self.raw_position(number), 0.0), 1.0)

    def raw_position(self, number: float) -> float:
        """Return where a number lies; below 0 or above 1 if it is not on the axis."""
        if self.kind != "log":
            return (number - self.low) / (self.high - self.low)
        if number <= 0:
            return -math.inf
        return math.log(number / self.low) / math.log(self.high / self.low)

    def tick_text(self, tick: float) -> str:
        """Format a tick, without needless zeros after the decimal point."""
        if self.kind == "label":
            return self.write(tick)
        text = self.write(tick)
        number = text.rstrip("%")
        unit = text[len(number) :]
        if "." in number:
            number = number.rstrip("0").rstrip(".")
        return number + unit

    def ticks(self, count: int) -> list[float]:
        """Return about ``count`` round numbers on the axis."""
        if self.kind == "log":
            return _log_ticks(self.low, self.high, count)
        if self.kind == "time":
            return _time_ticks(self.low, self.high, count)
        if self.kind == "label":
            ticks = _linear_ticks(self.low, self.high, count)
            return [tick for tick in ticks if tick == round(tick)]
        return _linear_ticks(self.low, self.high, count)


def linear_axis(low: float, high: float, write: Callable[[float], str], title: str = "") -> Axis:
    """Return a linear axis; one without extent is given some."""
    if not high > low:
        high = low + 1
    return Axis(low, high, "linear", write, title)


def log_axis(low: float, high: float, write: Callable[[float], str], title: str = "") -> Axis:
    """Return a logarithmic axis. ``low`` must be positive."""
    if not high > low:
        high = 10 * low
    return Axis(low, high, "log", write, title)


def time_axis(low: float, high: float, title: str = "") -> Axis:
    """Return an axis of times, in seconds since 1970."""
    if not high > low:
        high = low + _DAY

    def write(seconds: float) -> str:
        moment = datetime.fromtimestamp(seconds, UTC)
        if moment.hour:
            return f"{moment:%H:%M}"
        return f"{moment.day} {moment:%b}"

    return Axis(low, high, "time", write, title)


def label_axis(labels: Sequence[object], title: str = "") -> Axis:
    """Return an axis for labels in order: the first is at 0, the next at 1, and so on."""

    def write(position: float) -> str:
        return shorten(" ".join(str(labels[round(position)]).split()), _MAX_LABEL_LENGTH)

    return Axis(0, max(len(labels) - 1, 1), "label", write, title)


def _linear_ticks(low: float, high: float, count: int) -> list[float]:
    rough_step = (high - low) / max(count, 1)
    unit = 10.0 ** math.floor(math.log10(rough_step))
    # No steps of 2.5: they would need one more decimal place than the numbers on the chart.
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= 0.999 * rough_step)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _log_ticks(low: float, high: float, count: int) -> list[float]:
    first = math.ceil(math.log10(low) - 1e-9)
    last = math.floor(math.log10(high) + 1e-9)
    decades = max(last - first, 1)
    if decades < 3:
        candidates = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
        return [number for number in candidates if low <= number * 1.000001 and number <= high]
    stride = math.ceil(decades / max(count, 1))
    return [10.0**exponent for exponent in range(first, last + 1, stride)]


def _time_ticks(low: float, high: float, count: int) -> list[float]:
    rough_step = (high - low) / max(count, 1)
    step = next((step for step in _TIME_STEPS if step >= rough_step), None)
    if step is None:
        step = _LONG_TIME_STEP * math.ceil(rough_step / _LONG_TIME_STEP)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]
