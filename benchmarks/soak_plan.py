"""How long a soak takes, what it runs, and how much traffic there is."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["SoakPlan"]


@dataclass(frozen=True)
class SoakPlan:
    """The settings of a soak.

    ``interval``: the seconds between two checks of the counts. ``pause``: the mean seconds between
    two actions of each client that does not send single reports. ``change_seconds``: the mean
    seconds between two changes of a survey. ``folder``: where the SQLite file goes, on a disk.
    ``command``: what runs ``sfumato``.
    """

    seconds: float
    workers: int = 1
    store: str = ""
    folder: str = "."
    interval: float = 60.0
    reports_per_second: float = 100.0
    pause: float = 1.0
    change_seconds: float = 15.0
    seed: int = 1
    command: Sequence[str] = (sys.executable, "-m", "sfumato")
