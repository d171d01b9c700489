"""Whether a server's memory and its open files grow, judged from samples over time."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

__all__ = ["Growth", "ProcessSample"]

MAX_MEMORY_PER_HOUR = 0.05
"""The largest slope of the memory, as a share of it per hour."""

MEMORY_NOISE = 0.02
"""A share of the memory that may come and go in any time, because of caches and the allocator."""

FILE_NOISE = 16
"""How many open files may come and go: pooled connections to the store, and silent clients."""

MIN_HOURS = 2 / 60
"""The shortest time over which growth can be judged."""


@dataclass(frozen=True)
class ProcessSample:
    """The memory and the open files of a process and its children at one time."""

    hours: float
    memory_mib: float
    open_files: int
    pids: tuple[int, ...]

    @classmethod
    def take(cls, pid: int, hours: float) -> Self:
        """Take a sample now. ``hours``: the time since the start."""
        pids = (pid, *_children(pid))
        memory_mib = sum(map(_resident_mib, pids))
        open_files = sum(len(os.listdir(f"/proc/{each}/fd")) for each in pids)  # noqa: PTH208
        return cls(hours, memory_mib, open_files, pids)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return list(map(int, text.split()))


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Growth:
    """The growth over the second half of the samples, by least squares.

    The first half does not count, because caches fill and the allocator finds its size.
    """

    hours: float
    mean_memory_mib: float
    memory_mib_per_hour: float
    files_per_hour: float

    @classmethod
    def from_samples(cls, samples: Sequence[ProcessSample]) -> Self:
        """Fit straight lines to the second half of the samples."""
        middle = (samples[0].hours + samples[-1].hours) / 2
        late = [sample for sample in samples if sample.hours >= middle]
        hours = np.array([sample.hours for sample in late])
        memory = np.array([sample.memory_mib for sample in late])
        files = np.array([sample.open_files for sample in late])
        return cls(hours[-1] - hours[0], memory.mean(), _slope(hours, memory), _slope(hours, files))

    @property
    def is_judged(self) -> bool:
        """Whether the time is long enough."""
        return self.hours >= MIN_HOURS

    @property
    def max_memory_mib(self) -> float:
        """The largest growth of the memory in this time that passes."""
        return self.mean_memory_mib * max(MEMORY_NOISE, MAX_MEMORY_PER_HOUR * self.hours)

    @property
    def problems(self) -> list[str]:
        """What grows too much."""
        problems: list[str] = []
        if not self.is_judged:
            return problems
        memory_mib = self.memory_mib_per_hour * self.hours
        if memory_mib > self.max_memory_mib:
            problems.append(
                f"the memory grew by {memory_mib:.1f} MiB, more than {self.max_memory_mib:.1f}"
            )
        files = self.files_per_hour * self.hours
        if files > FILE_NOISE:
            problems.append(f"the number of open files grew by {files:.0f}")
        return problems

    def summary(self) -> str:
        """Describe the growth in a line."""
        if not self.is_judged:
            return "memory and open files: too short to judge"
        return (
            f"second half: memory {self.memory_mib_per_hour:+.1f} MiB per hour "
            f"({self.memory_mib_per_hour * self.hours:+.1f} of at most "
            f"{self.max_memory_mib:+.1f} MiB), open files {self.files_per_hour:+.1f} per hour"
        )


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope of the least-squares line."""
    deviations = x - x.mean()
    spread = float(deviations @ deviations)
    return float(deviations @ (y - y.mean())) / spread if spread else 0.0
