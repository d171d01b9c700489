"""Choose the codes for groups that cover for each other, based on the risk of the entire frame.

The best code for a group alone is not the best one in a frame: the sets of its code also determine
how often all other groups must send cover reports. So set sizes are chosen by the risk of the
entire frame, one kind of group after another, as if a flat design existed for every size. Then each
kind gets the actual design that comes closest.

The risk has a closed form. For a design with b outputs, where each symbol has r of them and each
pair of symbols shares λ, the risk depends only on ``f = r/b`` and ``l = λ/b``. So a frame can be
evaluated before any code is built. The formula is for the estimate without total correction, which
differs from Sfumato's estimate only in the correction for unused points.
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

_MAX_SWEEPS = 4
_MAX_SIZE_COUNT = 96  # geometrically spaced set sizes to try for each kind of group
_MAX_SEARCHED_SIZE = 1000  # symbols in the largest group for which designs are searched
_MAX_FLATNESS = 1.01  # the search for designs ends once one is this flat
_MIN_GAIN = 1e-9


# --- the risk of a frame --------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameGroup:
    """A group of k symbols, its promises, and f and l of its code's design.

    ``count`` is the number of identical groups.

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
    """Return ``R_i`` for each group, and ``R_F`` for the symbols that have no promise.

    With shares p_i of people in the groups and p_F of people with a free symbol:

        risk(p) = Σ p_i R_i + p_F R_F − ‖p‖²

    >>> high_low = FrameGroup(1, inside=1.0, outward=1.0, f=1.0, l=0.0)
    >>> sensitive, free = frame_risks([high_low])
    >>> round(sensitive[0], 3), round(free, 3)
    (1.0, 2.164)
    """
    beta = 1 / (1 + sum(group.count / group.gain for group in groups))
    squares = [_square_scores(group, beta) for group in groups]
    total_constant = 0.0
    for group, square in zip(groups, squares, strict=True):
        total_constant += group.count * square.constant
    # What each group's reports add to the risk when another group sends them.
    covers = [square.v * (square.other + total_constant - square.constant) for square in squares]
    total_cover = 0.0
    for group, cover in zip(groups, covers, strict=True):
        total_cover += group.count * cover
    risks = []
    for square, cover in zip(squares, covers, strict=True):
        own_risk = (square.v + beta) * (square.own + total_constant - square.constant)
        risks.append(own_risk + total_cover - cover)
    return risks, total_cover + beta * total_constant + 1 / beta


@dataclass(frozen=True)
class _SquaredScores:
    """Sums of the squared scores of a group's symbols, by report and sender.

    ``own`` is for the group's reports sent by one of its symbols, ``other`` for the group's reports
    sent by another group, and ``constant`` for the reports of other groups; ``v = β/g``.
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
    # The expected number of symbols in the set of a report sent by one of the group's symbols.
    mean_set_size = (f * A + (k - 1) * (l * A + (f - l) * B)) / (f * A + (1 - f) * B)
    own = G**2 * (mean_set_size * (1 - 2 * u) + k * u**2)
    other = G**2 * (k * f * (1 - 2 * u) + k * u**2)
    return _SquaredScores(v, own, other, k * G**2 * (v * f - v * h / beta) ** 2)


# --- the choice of codes --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """A kind of group: the size and the promises that all its groups have in common."""

    size: int
    inside: Fraction
    outward: Fraction

    def with_flat_design(self, w: int, count: int = 1) -> FrameGroup:
        """Return a group with a flat design of set size w, assuming that one exists."""
        k = self.size
        l = w * (w - 1) / (k * (k - 1)) if k > 1 else 0.0  # noqa: E741
        return FrameGroup(k, float(self.inside), float(self.outward), w / k, l, count)


def frame_families(
    groups: GroupedContext, extra_bits: int, sensitive_share: float | None = None
) -> list[CodeFamily]:
    """Return a code family for each protected group, in the order of groups.

    The families minimise the worst-case risk: the largest risk of any group or of free symbols.
    With ``sensitive_share``, they minimise the risk at a distribution that gives this share to the
    protected groups, in proportion to their sizes.
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
        """Improve one kind's set size after another, starting from the best for each kind alone."""
        for _ in range(_MAX_SWEEPS):
            previous_sizes = dict(self._sizes)
            for kind in self.counts:
                if kind.size > 1:
                    self._sizes[kind] = self._best_size(kind)
            if self._sizes == previous_sizes:
                break

    def _best_size(self, kind: _Kind) -> int:
        best = self._sizes[kind]
        min_risk = None
        for w in _sizes_to_try(kind.size // 2):
            if kind.with_flat_design(w).gain > _MIN_GAIN:
                # Round, so floating-point noise does not decide. The smallest size wins ties.
                risk = round(self._risk(self._flat_groups({**self._sizes, kind: w})), 9)
                if min_risk is None or risk < min_risk:
                    min_risk = risk
                    best = w
        return best

    def _risk(self, groups: Sequence[FrameGroup]) -> float:
        """Return the risk to minimise: the worst risk, or the risk at ``sensitive_share``."""
        risks, free_risk = frame_risks(groups)
        if self._sensitive_share is None:
            return max([*risks, free_risk]) if self._has_free_symbols else max(risks)
        symbol_count = 0
        total = 0.0
        for group, risk in zip(groups, risks, strict=True):
            symbol_count += group.count * group.size
            total += group.count * group.size * risk
        mean_risk = total / symbol_count
        return self._sensitive_share * mean_risk + (1 - self._sensitive_share) * free_risk

    def _flat_groups(self, sizes: dict[_Kind, int]) -> list[FrameGroup]:
        return [kind.with_flat_design(sizes[kind], count) for kind, count in self.counts.items()]

    def family_for(self, kind: _Kind, extra_bits: int) -> CodeFamily:
        """Return an actual design for one kind, assuming flat designs for the others.

        The design is randomized response, a design from searched base blocks or a Singer design.
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
        if searched is not None:
            flatness, design = searched
            if singer is None or flatness * self._risk(flat) <= singer[0]:
                return design
        if singer is None:
            return RandomizedCode
        _, singer_design = singer
        return CyclicDesign.from_base_blocks(singer_design.points, singer_set(singer_design))

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
    """Return the flattest design found by searching base blocks, with its flatness, or ``None``."""
    best: tuple[float, CodeFamily] | None = None
    for design, flatness in search_designs(size, [set_size], outputs):
        if best is None or flatness < best[0]:
            best = (flatness, design)
        if flatness <= _MAX_FLATNESS:
            break
    return best


def _sizes_to_try(max_size: int) -> list[int]:
    """Return all sizes up to 32, and geometrically spaced sizes from there to ``max_size``."""
    largest = max(max_size, 1)
    ratio = max(largest, 2) ** (1 / _MAX_SIZE_COUNT)
    sizes = set(range(1, min(largest, 32) + 1))
    for i in range(_MAX_SIZE_COUNT + 1):
        size = round(ratio**i)
        if size <= largest:
            sizes.add(size)
    return sorted(sizes)
