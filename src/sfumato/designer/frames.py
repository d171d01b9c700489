"""Codes for groups that cover for each other, chosen for the frame as a whole.

The best code for a group alone is not the best one in a frame: its sets also determine how often
all other groups must send cover reports. So set sizes are chosen by the risk of the whole frame,
one kind of group after another, as if every size had a flat design. Then each kind gets the real
design that comes closest.

The risk has a closed form. It depends on a design with b outputs, r of them in each set and λ in
every two, only through ``f = r/b`` and ``l = λ/b``, so a frame can be evaluated before any code is
built. The formula is for the estimate without total correction, which is the package's own up to
the correction for unused points.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp

from sfumato.codes import (
    CodeFamily,
    CyclicDesign,
    RandomizedCode,
    SingerDesign,
    best_sizes,
    max_outputs,
    search_designs,
    singer_designs,
    singer_set,
)
from sfumato.contexts import GroupedContext

__all__ = ["FrameGroup", "frame_families", "frame_risks"]

_SWEEPS = 4
_MAX_SIZES = 96  # set sizes to try for each kind of group
_MAX_SEARCHED_SIZE = 1000
_FLAT_ENOUGH = 1.01
_MIN_GAIN = 1e-9


# --- the risk of a frame --------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameGroup:
    """A group of k symbols with its promises and the design (f, l) of its code.

    ``count`` groups are alike.

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
    """Return ``R_i`` of each group, and ``R_F`` of the symbols that promise nothing.

        risk(p) = Σ p_i R_i + p_F R_F − ‖p‖²

    >>> high_low = FrameGroup(1, inside=1.0, outward=1.0, f=1.0, l=0.0)
    >>> sensitive, free = frame_risks([high_low])
    >>> round(sensitive[0], 3), round(free, 3)
    (1.0, 2.164)
    """
    beta = 1 / (1 + sum(group.count / group.gain for group in groups))
    squares = [_square_scores(group, beta) for group in groups]
    constants = 0.0
    for group, part in zip(groups, squares, strict=True):
        constants += group.count * part.constant
    # What the reports of each group cost when another group sends them.
    covers = [part.v * (part.other + constants - part.constant) for part in squares]
    all_covers = 0.0
    for group, cover in zip(groups, covers, strict=True):
        all_covers += group.count * cover
    risks = []
    for part, cover in zip(squares, covers, strict=True):
        own = (part.v + beta) * (part.own + constants - part.constant)
        risks.append(own + all_covers - cover)
    return risks, all_covers + beta * constants + 1 / beta


@dataclass(frozen=True)
class _SquaredScores:
    """Sums of the squared scores of a group's symbols.

    ``own`` is for the group's reports sent by a member, ``other`` for the group's reports sent by
    another group, and ``constant`` for the reports of other groups; ``v = β/g``.
    """

    v: float
    own: float
    other: float
    constant: float


def _square_scores(group: FrameGroup, beta: float) -> _SquaredScores:
    A = group.A
    B = group.B
    f = group.f
    l = group.l  # noqa: E741
    k = group.size
    v = beta / group.gain
    if k == 1:
        own = ((1 - v) / beta) ** 2
        return _SquaredScores(v, own, own, (v / beta) ** 2)
    h = v * (l * A + (f - l) * B - f)
    G = 1 / (v * (f - l) * (A - B))
    u = v * f + (1 - v) * h / beta
    sets_of_own = (f * A + (k - 1) * (l * A + (f - l) * B)) / (f * A + (1 - f) * B)
    own = G**2 * (sets_of_own * (1 - 2 * u) + k * u**2)
    other = G**2 * (k * f * (1 - 2 * u) + k * u**2)
    return _SquaredScores(v, own, other, k * G**2 * (v * f - v * h / beta) ** 2)


# --- the choice of codes --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """Groups of equal size and promises."""

    size: int
    inside: Fraction
    outward: Fraction

    def with_flat_design(self, w: int, count: int = 1) -> FrameGroup:
        """Return a group with a flat design of set size w, as if there were one for every w."""
        k = self.size
        pairs = w * (w - 1) / (k * (k - 1)) if k > 1 else 0.0
        return FrameGroup(k, float(self.inside), float(self.outward), w / k, pairs, count)


def frame_families(
    groups: GroupedContext, extra_bits: int, sensitive_share: float | None = None
) -> list[CodeFamily]:
    """Return a code family for each group that promises something, in the order of groups.

    They minimise the largest risk over groups and free symbols, that of the worst distribution.
    With ``sensitive_share``, they minimise the risk at a distribution that gives this share to all
    groups that promise something, in proportion to their sizes.
    """
    kinds = []
    for g in groups.protected_groups:
        kinds.append(_Kind(int(groups.sizes[g]), *groups.effective_promises(g)))
    has_free_symbols = len(kinds) < len(groups.outward)
    frame = _Frame(Counter(kinds), has_free_symbols, sensitive_share)
    frame.choose_sizes()
    family_of = {kind: frame.family_for(kind, extra_bits) for kind in frame.counts}
    return [family_of[kind] for kind in kinds]


class _Frame:
    """Kinds of groups, and the set size chosen for each."""

    def __init__(
        self, counts: Counter[_Kind], has_free_symbols: bool, sensitive_share: float | None
    ) -> None:
        self.counts = counts
        self._has_free_symbols = has_free_symbols
        self._sensitive_share = sensitive_share
        self._sizes = {}
        for kind in counts:
            best_alone = best_sizes(kind.size, float(kind.inside))[0] if kind.size > 1 else 1
            self._sizes[kind] = best_alone

    def choose_sizes(self) -> None:
        """Improve the set size of one kind after another, starting from the best for each alone."""
        for _ in range(_SWEEPS):
            before = dict(self._sizes)
            for kind in self.counts:
                if kind.size > 1:
                    self._sizes[kind] = self._best_size(kind)
            if self._sizes == before:
                break

    def _best_size(self, kind: _Kind) -> int:
        best = self._sizes[kind]
        least = None
        for w in _sizes_to_try(kind.size // 2):
            if kind.with_flat_design(w).gain > _MIN_GAIN:
                # Round, so that the last digits do not decide; then the smallest size wins.
                risk = round(self._risk(self._flat_groups({**self._sizes, kind: w})), 9)
                if least is None or risk < least:
                    least = risk
                    best = w
        return best

    def _risk(self, groups: Sequence[FrameGroup]) -> float:
        """Return the risk to minimise: the worst, or that at a share of sensitive people."""
        risks, free_risk = frame_risks(groups)
        if self._sensitive_share is None:
            return max([*risks, free_risk]) if self._has_free_symbols else max(risks)
        people = 0
        total = 0.0
        for group, risk in zip(groups, risks, strict=True):
            people += group.count * group.size
            total += group.count * group.size * risk
        return self._sensitive_share * (total / people) + (1 - self._sensitive_share) * free_risk

    def _flat_groups(self, sizes: dict[_Kind, int]) -> list[FrameGroup]:
        return [kind.with_flat_design(sizes[kind], count) for kind, count in self.counts.items()]

    def family_for(self, kind: _Kind, extra_bits: int) -> CodeFamily:
        """Return a real design for one kind, as if the others were flat.

        It is randomized response, searched base blocks or a Singer set.
        """
        size = self._sizes[kind]
        if size == 1:
            return RandomizedCode
        outputs = max_outputs(kind.size, extra_bits)
        flat = self._flat_groups(self._sizes)
        singer = self._best_singer(kind, flat, outputs)
        searched: tuple[float, CodeFamily] | None = None
        if kind.size <= _MAX_SEARCHED_SIZE:
            searched = _flattest_design(kind.size, size, outputs)
        if searched is not None and (singer is None or searched[0] * self._risk(flat) <= singer[0]):
            return searched[1]
        if singer is None:
            return RandomizedCode
        return CyclicDesign.from_arrays(singer[1].points, singer_set(singer[1]))

    def _best_singer(
        self, kind: _Kind, flat: list[FrameGroup], outputs: int
    ) -> tuple[float, SingerDesign] | None:
        position = list(self.counts).index(kind)
        best: tuple[float, SingerDesign] | None = None
        for design in singer_designs(kind.size, outputs):
            f = design.raised / design.points
            l = design.shared / design.points  # noqa: E741
            group = replace(flat[position], f=f, l=l)
            if group.gain <= 0:
                continue
            risk = self._risk([*flat[:position], group, *flat[position + 1 :]])
            if best is None or risk < best[0]:
                best = (risk, design)
        return best


def _flattest_design(size: int, set_size: int, outputs: int) -> tuple[float, CodeFamily] | None:
    """Return the flatness and the design of the flattest searched base blocks, if any."""
    best: tuple[float, CodeFamily] | None = None
    for design, flatness in search_designs(size, [set_size], outputs):
        if best is None or flatness < best[0]:
            best = (flatness, design)
        if flatness <= _FLAT_ENOUGH:
            break
    return best


def _sizes_to_try(half: int) -> list[int]:
    """Return all sizes up to ``half``, or enough of them that neighbours have a small ratio."""
    largest = max(half, 1)
    step = max(largest, 2) ** (1 / _MAX_SIZES)
    sizes = set(range(1, min(largest, 32) + 1))
    for i in range(_MAX_SIZES + 1):
        size = round(step**i)
        if size <= largest:
            sizes.add(size)
    return sorted(sizes)
