"""The risk of groups that take cover in each other's reports, in closed form, for any designs inside.

A design with b outputs, r of them in each set and λ in each two, enters by ``f = r/b`` and ``l = λ/b`` alone, so a
frame can be weighed before any code is built. The estimate is the one without total correction, which is what the
software uses up to the correction of unused points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

__all__ = ["FrameGroup", "frame_risks"]


@dataclass(frozen=True)
class FrameGroup:
    """A group of k symbols with its promises and the design (f, l) of its code; ``count`` groups are alike.

    >>> FrameGroup(8, inside=1.0, outward=2.0, f=0.25, l=0.25 * 1 / 7).gain > 0
    True
    """

    size: int
    inside: float
    outward: float
    f: float
    l: float  # noqa: E741 - λ/b
    count: int = 1

    @property
    def A(self) -> float:
        """``e^ε_out``."""
        return exp(self.outward)

    @property
    def B(self) -> float:
        """``e^{ε_out − ε_in}``."""
        return exp(self.outward - self.inside)

    @property
    def gain(self) -> float:
        """``g = f A + (1 − f) B − 1``."""
        return self.f * self.A + (1 - self.f) * self.B - 1


def frame_risks(groups: Sequence[FrameGroup]) -> tuple[list[float], float]:
    """``R_i`` of each group and ``R_F`` of symbols that owe nothing: ``risk(p) = Σ p_i R_i + p_F R_F − ‖p‖²``.

    >>> high_low = FrameGroup(1, inside=1.0, outward=1.0, f=1.0, l=0.0)
    >>> [round(R, 3) for R in (*frame_risks([high_low])[0], frame_risks([high_low])[1])]
    [1.0, 2.164]
    """
    beta = 1 / (1 + sum(group.count / group.gain for group in groups))
    parts = [_parts(group, beta) for group in groups]
    constants = sum(group.count * part.constant for group, part in zip(groups, parts, strict=True))
    # What reports of group j cost when sent by a stranger, with the constants of all other groups.
    strangers = [part.v * (part.other + constants - part.constant) for part in parts]
    by_strangers = sum(group.count * cost for group, cost in zip(groups, strangers, strict=True))
    risks = [
        (part.v + beta) * (part.own + constants - part.constant) + by_strangers - stranger
        for part, stranger in zip(parts, strangers, strict=True)
    ]
    return risks, by_strangers + beta * constants + 1 / beta


@dataclass(frozen=True)
class _Parts:
    """Squared scores of a group's symbols, summed: for its own reports, a stranger's, and reports elsewhere."""

    v: float
    own: float
    other: float
    constant: float


def _parts(group: FrameGroup, beta: float) -> _Parts:
    A, B, f, l, k = group.A, group.B, group.f, group.l, group.size  # noqa: E741
    v = beta / group.gain
    if k == 1:
        return _Parts(v, ((1 - v) / beta) ** 2, ((1 - v) / beta) ** 2, (v / beta) ** 2)
    h = v * (l * A + (f - l) * B - f)
    G = 1 / (v * (f - l) * (A - B))
    u = v * f + (1 - v) * h / beta
    sets_of_own = (f * A + (k - 1) * (l * A + (f - l) * B)) / (f * A + (1 - f) * B)
    own, other = (G**2 * (sets * (1 - 2 * u) + k * u**2) for sets in (sets_of_own, k * f))
    return _Parts(v, own, other, k * G**2 * (v * f - v * h / beta) ** 2)
