"""Choose the codes of a frame: a mechanism in which groups send cover reports for each other.

The best code for a group on its own is not the best one in a frame, because its sets also determine
how often all other groups must send cover reports. So set sizes are chosen by the risk of the
entire frame, one kind of group after another, as if a flat design existed for every size. Then each
kind gets an actual design with nearly the same risk.

The risk has a closed form. For a design with b outputs, where each symbol favours r of them and
each pair of symbols shares λ, the risk depends only on ``f = r/b`` and ``l = λ/b``. So a frame can
be evaluated before any code is built. The formula is for the estimate without total correction,
which differs from Sfumato's estimate only in the correction for unused points.
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

__all__ = [
    "MAX_SEARCHED_SIZE",
    "FrameGroup",
    "flattest_design",
    "frame_families",
    "frame_risks",
    "sizes_to_try",
]

MAX_SEARCHED_SIZE = 1000
"""The number of symbols in the largest group for which designs are searched."""

_MAX_SWEEPS = 4  # over the kinds of groups
_SPACED_SIZE_COUNT = 96  # geometrically spaced set sizes to try for each kind of group
_MAX_FLATNESS = 1.01  # the search for designs ends once one is this flat
_MIN_GAIN = 1e-9  # of a design worth considering


# --- the risk of a frame --------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameGroup:
    """A group of ``size`` symbols, its promises, and the ratios f and l of its code's design.

    ``count`` is the number of identical groups in the frame.

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
    """Return ``R_i`` for each group, and ``R_F`` for the free symbols, which have no promise.

    If a share p_i of people is in group i and a share p_F has a free symbol, then

        risk(p) = Σ p_i R_i + p_F R_F − ‖p‖²

    >>> high_low = FrameGroup(1, inside=1.0, outward=1.0, f=1.0, l=0.0)
    >>> sensitive, free = frame_risks([high_low])
    >>> round(sensitive[0], 3), round(free, 3)
    (1.0, 2.164)
    """
    beta = 1 / (1 + sum(group.count / group.gain for group in groups))
    squared_scores = [_score_squares(group, beta) for group in groups]
    total_constant = 0.0
    for group, squares in zip(groups, squared_scores, strict=True):
        total_constant += group.count * squares.constant
    # What each group's reports add to the risk when another group sends them.
    cover_risks = []
    for squares in squared_scores:
        cover_squares = squares.sent_by_others + total_constant - squares.constant
        cover_risks.append(squares.v * cover_squares)
    total_cover_risk = 0.0
    for group, cover_risk in zip(groups, cover_risks, strict=True):
        total_cover_risk += group.count * cover_risk
    risks = []
    for squares, cover_risk in zip(squared_scores, cover_risks, strict=True):
        member_squares = squares.sent_by_members + total_constant - squares.constant
        member_risk = (squares.v + beta) * member_squares
        risks.append(member_risk + total_cover_risk - cover_risk)
    return risks, total_cover_risk + beta * total_constant + 1 / beta


@dataclass(frozen=True)
class _SquaredScores:
    """Sums of the squared scores of a group's symbols, by report and sender.

    ``sent_by_members`` is for the group's reports sent by people in the group, ``sent_by_others``
    for the group's reports sent by people in other groups, and ``constant`` for the reports of
    other groups; ``v = β/g``.
    """

    v: float
    sent_by_members: float
    sent_by_others: float
    constant: float


def _score_squares(group: FrameGroup, beta: float) -> _SquaredScores:
    A = group.A
    B = group.B
    f = group.f
    l = group.l  # noqa: E741
    k = group.size
    v = beta / group.gain
    if k == 1:
        square = ((1 - v) / beta) ** 2
        return _SquaredScores(v, square, square, (v / beta) ** 2)
    h = v * (l * A + (f - l) * B - f)
    G = 1 / (v * (f - l) * (A - B))
    u = v * f + (1 - v) * h / beta
    # The expected number of symbols in the set of a report sent by a member of the group.
    mean_set_size = (f * A + (k - 1) * (l * A + (f - l) * B)) / (f * A + (1 - f) * B)
    sent_by_members = G**2 * (mean_set_size * (1 - 2 * u) + k * u**2)
    sent_by_others = G**2 * (k * f * (1 - 2 * u) + k * u**2)
    constant = k * G**2 * (v * f - v * h / beta) ** 2
    return _SquaredScores(v, sent_by_members, sent_by_others, constant)


# --- the choice of codes --------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupKind:
    """A kind of group: the size and the promises that all its groups have in common."""

    size: int
    inside: Fraction
    outward: Fraction

    def with_flat_design(self, w: int, count: int = 1) -> FrameGroup:
        """Return a group of this kind with a flat design of set size w, assuming one exists."""
        k = self.size
        l = w * (w - 1) / (k * (k - 1)) if k > 1 else 0.0  # noqa: E741
        return FrameGroup(k, float(self.inside), float(self.outward), w / k, l, count)


def frame_families(
    groups: GroupedContext, extra_bits: int, sensitive_share: float | None = None
) -> list[CodeFamily]:
    """Return a code family for each protected group, in group order.

    They are chosen to minimise the worst-case risk: the largest risk of any group or of the free
    symbols. With ``sensitive_share``, they are chosen to minimise the risk at a distribution that
    gives this share to the protected groups, in proportion to their sizes.
    """
    kinds = []
    for g in groups.protected_groups:
        kinds.append(_GroupKind(int(groups.sizes[g]), *groups.effective_promises(g)))
    has_free_symbols = len(kinds) < len(groups.outward)
    frame = _Frame(Counter(kinds), has_free_symbols, sensitive_share)
    frame.choose_set_sizes()
    family_by_kind = {kind: frame.family_for(kind, extra_bits) for kind in frame.counts}
    return [family_by_kind[kind] for kind in kinds]


class _Frame:
    """The kinds of groups in a frame, with the set size chosen for each."""

    def __init__(
        self, counts: Counter[_GroupKind], has_free_symbols: bool, sensitive_share: float | None
    ) -> None:
        self.counts = counts
        self._has_free_symbols = has_free_symbols
        self._sensitive_share = sensitive_share
        self._set_sizes = {}
        for kind in counts:
            if kind.size > 1:
                self._set_sizes[kind] = best_sizes(kind.size, float(kind.inside))[0]
            else:
                self._set_sizes[kind] = 1

    def choose_set_sizes(self) -> None:
        """Improve the set size of one kind after another.

        Start from the size that is best for each kind alone.
        """
        for _ in range(_MAX_SWEEPS):
            previous_sizes = dict(self._set_sizes)
            for kind in self.counts:
                if kind.size > 1:
                    self._set_sizes[kind] = self._best_set_size(kind)
            if self._set_sizes == previous_sizes:
                break

    def _best_set_size(self, kind: _GroupKind) -> int:
        best_size = self._set_sizes[kind]
        min_risk = None
        for w in sizes_to_try(kind.size // 2):
            if kind.with_flat_design(w).gain > _MIN_GAIN:
                # Round, so floating-point noise does not decide. The smallest size wins ties.
                risk = round(self._risk(self._flat_groups({**self._set_sizes, kind: w})), 9)
                if min_risk is None or risk < min_risk:
                    min_risk = risk
                    best_size = w
        return best_size

    def _risk(self, groups: Sequence[FrameGroup]) -> float:
        """Return the risk to minimise: the worst risk, or the risk at ``sensitive_share``."""
        risks, free_risk = frame_risks(groups)
        if self._sensitive_share is None:
            return max([*risks, free_risk]) if self._has_free_symbols else max(risks)
        symbol_count = 0
        total_risk = 0.0
        for group, risk in zip(groups, risks, strict=True):
            symbol_count += group.count * group.size
            total_risk += group.count * group.size * risk
        mean_risk = total_risk / symbol_count
        return self._sensitive_share * mean_risk + (1 - self._sensitive_share) * free_risk

    def _flat_groups(self, set_sizes: dict[_GroupKind, int]) -> list[FrameGroup]:
        groups = []
        for kind, count in self.counts.items():
            groups.append(kind.with_flat_design(set_sizes[kind], count))
        return groups

    def family_for(self, kind: _GroupKind, extra_bits: int) -> CodeFamily:
        """Return an actual design for one kind, assuming flat designs for the others.

        It is randomized response, a design with base blocks found by search, or a Singer design.
        """
        set_size = self._set_sizes[kind]
        if set_size == 1:
            return RandomizedCode
        output_limit = max_outputs(kind.size, extra_bits)
        flat_groups = self._flat_groups(self._set_sizes)
        singer_result = self._best_singer_design(kind, flat_groups, output_limit)
        search_result: tuple[float, CodeFamily] | None = None
        if kind.size <= MAX_SEARCHED_SIZE:
            search_result = flattest_design(kind.size, set_size, output_limit)
        if search_result is not None:
            flatness, design = search_result
            if singer_result is None or flatness * self._risk(flat_groups) <= singer_result[0]:
                return design
        if singer_result is None:
            return RandomizedCode
        _, singer_design = singer_result
        return CyclicDesign.from_base_blocks(singer_design.points, singer_set(singer_design))

    def _best_singer_design(
        self, kind: _GroupKind, flat_groups: list[FrameGroup], output_limit: int
    ) -> tuple[float, SingerDesign] | None:
        """Return the smallest risk and its Singer design, or ``None`` if no design fits."""
        kind_index = list(self.counts).index(kind)
        best: tuple[float, SingerDesign] | None = None
        for design in singer_designs(kind.size, output_limit):
            f = design.raised / design.points
            l = design.shared / design.points  # noqa: E741
            group = replace(flat_groups[kind_index], f=f, l=l)
            if group.gain <= 0:
                continue
            risk = self._risk([*flat_groups[:kind_index], group, *flat_groups[kind_index + 1 :]])
            if best is None or risk < best[0]:
                best = (risk, design)
        return best


def flattest_design(size: int, set_size: int, output_limit: int) -> tuple[float, CodeFamily] | None:
    """Return the smallest flatness and its design, or ``None`` if the search finds no design."""
    best: tuple[float, CodeFamily] | None = None
    for design, flatness in search_designs(size, [set_size], output_limit):
        if best is None or flatness < best[0]:
            best = (flatness, design)
        if flatness <= _MAX_FLATNESS:
            break
    return best


def sizes_to_try(max_size: int) -> list[int]:
    """Return all sizes up to 32, and geometrically spaced sizes from there to ``max_size``."""
    largest = max(max_size, 1)
    ratio = max(largest, 2) ** (1 / _SPACED_SIZE_COUNT)
    sizes = set(range(1, min(largest, 32) + 1))
    for i in range(_SPACED_SIZE_COUNT + 1):
        size = round(ratio**i)
        if size <= largest:
            sizes.add(size)
    return sorted(sizes)
