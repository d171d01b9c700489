"""Codes for groups that take cover in each other's reports: the designs inside are chosen for the frame, not alone.

What is best for a group by itself is not best in a frame: a group's sets also decide how often everybody else must
take cover. So the set sizes are chosen by the closed-form risk of the whole frame, one kind of group after another,
as if every size had a flat design; then each kind gets the real design that comes closest.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.codes import CodeFamily, CyclicDesign, RandomizedCode
from sfumato.codes.best import largest_outputs, searched_designs
from sfumato.codes.search import wanted_sizes
from sfumato.codes.singer import SingerDesign, singer_designs, singer_set
from sfumato.contexts import GroupedContext
from sfumato.designer.shelf.frame_risk import FrameGroup, frame_risks
from sfumato.errors import InvalidContext

__all__ = ["frame_families"]

_SWEEPS = 4
_MOST_SIZES = 96  # set sizes that are tried for a kind of group
_LARGEST_SEARCHED = 1000
_FLAT_ENOUGH = 1.01

Weigh = Callable[[Sequence[FrameGroup]], float]


@dataclass(frozen=True)
class _Kind:
    """GroupedContext of equal size and promises."""

    size: int
    inside: Fraction
    outward: Fraction


def frame_families(
    groups: GroupedContext, extra_bits: int, sensitive_share: float | None = None
) -> list[CodeFamily]:
    """A code family for each group that owes something, in the order of groups.

    The largest risk over groups and free symbols is made small (the worst distribution's); with ``sensitive_share``,
    the risk for a distribution that gives this much to all groups that owe something, by their sizes.
    """
    owing = groups.owing_groups
    kinds = [_kind(groups, g) for g in owing]
    counts = Counter(kinds)
    weigh = _weighing(
        counts, free=len(owing) < len(groups.outward), sensitive_share=sensitive_share
    )
    sizes = _set_sizes(counts, weigh)
    family_of = {kind: _realised(kind, counts, sizes, weigh, extra_bits) for kind in counts}
    return [family_of[kind] for kind in kinds]


def _kind(groups: GroupedContext, g: int) -> _Kind:
    return _Kind(int(groups.sizes[g]), *groups.effective_promises(g))


def _weighing(counts: Counter[_Kind], *, free: bool, sensitive_share: float | None) -> Weigh:
    if sensitive_share is None:
        return lambda frame: max(
            [*frame_risks(frame)[0], *([frame_risks(frame)[1]] if free else [])]
        )
    if not 0 <= sensitive_share <= 1:
        raise InvalidContext(f"sensitive_share must lie between 0 and 1; found {sensitive_share}.")
    owing = sum(kind.size * count for kind, count in counts.items())

    def at_share(frame: Sequence[FrameGroup]) -> float:
        risks, free_risk = frame_risks(frame)
        inside = (
            sum(group.count * group.size * R for group, R in zip(frame, risks, strict=True)) / owing
        )
        return sensitive_share * inside + (1 - sensitive_share) * free_risk

    return at_share


def _set_sizes(counts: Counter[_Kind], weigh: Weigh) -> dict[_Kind, int]:
    """The best set size of each kind, by coordinate descent from what is best for each kind alone."""
    sizes = {
        kind: wanted_sizes(kind.size, float(kind.inside))[0] if kind.size > 1 else 1
        for kind in counts
    }
    for _ in range(_SWEEPS):
        before = dict(sizes)
        for kind in counts:
            if kind.size > 1:
                tried = {
                    w: weigh(_frame(counts, {**sizes, kind: w}))
                    for w in _tried_sizes(kind)
                    if _gains(kind, w)
                }
                sizes[kind] = min(tried, key=lambda w: (round(tried[w], 9), w), default=sizes[kind])
        if sizes == before:
            break
    return sizes


def _tried_sizes(kind: _Kind) -> list[int]:
    """All set sizes up to half of the group, or so many of them that the ratio of neighbours stays small."""
    half = max(kind.size // 2, 1)
    step = max(half, 2) ** (1 / _MOST_SIZES)
    return sorted(
        {w for i in range(_MOST_SIZES + 1) if (w := round(step**i)) <= half}
        | set(range(1, min(half, 32) + 1))
    )


def _gains(kind: _Kind, w: int) -> bool:
    return _flat(kind, w).gain > 1e-9


def _flat(kind: _Kind, w: int, count: int = 1) -> FrameGroup:
    """The kind with a flat design of set size w, as if there were one for every w."""
    k = kind.size
    pairs = w * (w - 1) / (k * (k - 1)) if k > 1 else 0.0
    return FrameGroup(k, float(kind.inside), float(kind.outward), w / k, pairs, count)


def _frame(counts: Counter[_Kind], sizes: dict[_Kind, int]) -> list[FrameGroup]:
    return [_flat(kind, sizes[kind], count) for kind, count in counts.items()]


def _realised(
    kind: _Kind, counts: Counter[_Kind], sizes: dict[_Kind, int], weigh: Weigh, extra_bits: int
) -> CodeFamily:
    """A real design for a kind, the others as if flat: randomized response, searched base blocks or Singer's set."""
    if sizes[kind] == 1:
        return RandomizedCode
    outputs, position = largest_outputs(kind.size, extra_bits), list(counts).index(kind)
    flat = _frame(counts, sizes)
    singer = _best_singer(kind, flat, position, outputs, weigh)
    searched: tuple[float, CodeFamily] | None = None
    if kind.size <= _LARGEST_SEARCHED:
        for design, F in searched_designs(kind.size, [sizes[kind]], outputs):
            searched = min(searched or (F, design), (F, design), key=lambda found: found[0])
            if F <= _FLAT_ENOUGH:
                break
    if searched is not None and (singer is None or searched[0] * weigh(flat) <= singer[0]):
        return searched[1]
    if singer is None:
        return RandomizedCode
    return CyclicDesign.of_arrays(singer[1].points, singer_set(singer[1]))


def _best_singer(
    kind: _Kind, flat: list[FrameGroup], position: int, outputs: int, weigh: Weigh
) -> tuple[float, SingerDesign] | None:
    found: tuple[float, SingerDesign] | None = None
    for design in singer_designs(kind.size, outputs):
        f, l = design.raised / design.points, design.shared / design.points  # noqa: E741
        group = replace(flat[position], f=f, l=l)
        if group.gain <= 0:
            continue
        risk = weigh([*flat[:position], group, *flat[position + 1 :]])
        if found is None or risk < found[0]:
            found = (risk, design)
    return found
