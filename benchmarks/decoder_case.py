"""A crowd, a context and a number of people: what a decoder is measured on."""

from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np

import sfumato as sf
from sfumato.designer.choose import CodeName
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["DecoderCase", "draw_tally"]


@dataclass(frozen=True)
class DecoderCase:
    """One case. ``shares`` is the truth, and ``people`` is the number of reports.

    ``group``: the name of the table that the case belongs to.
    ``code``: the code to use; "best" lets ``mechanism_for`` choose.
    """

    group: str
    name: str
    context: sf.Context
    shares: Floats
    people: int
    code: CodeName = "best"

    @cached_property
    def mechanism(self) -> Mechanism:
        return sf.mechanism_for(self.context, code=self.code)

    def tally(self, number: int) -> Tally:
        """Return tally ``number``, which depends only on the case's name and on ``number``."""
        seed = [crc32(f"{self.group}/{self.name}".encode()), number]
        return draw_tally(self.mechanism, self.shares, self.people, np.random.default_rng(seed))

    def error(self, frequencies: Floats) -> float:
        """Return the total variation between ``frequencies`` and the truth."""
        return float(np.abs(frequencies - self.shares).sum() / 2)


def draw_tally(mechanism: Mechanism, p: Floats, n: int, rng: np.random.Generator) -> Tally:
    """Draw a tally from the multinomial distribution of the reports."""
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(rng.multinomial(n, q / q.sum()), mechanism.fingerprint)
