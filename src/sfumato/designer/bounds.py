"""The least risk that any mechanism can have: a floor under every ``n · E‖p̂ − p‖²``.

One report says of p what its Fisher information says: ``J = Q diag(1/q) Qᵀ``, on vectors that add up to 0. An
unbiased estimate from n reports has ``n · E‖p̂ − p‖² ≥ tr J⁻¹`` (Cramér and Rao), and privacy bounds J report by
report. What is claimed: the bounds hold for every n, for every mechanism that keeps the context, and for every
estimate that is unbiased near the distribution they are taken at. For estimates with a bias they hold in the limit of
many people, as local minimax bounds (Hájek and Le Cam). Derivations: docs/bounds.md.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.codes.search import ye_barg_risk
from sfumato.contexts import Context, ContextUnion, GroupedContext, HighLow
from sfumato.designer.shelf.recognise import recognise
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Floats

__all__ = ["lower_bound_risk", "lower_bound_risk_at_uniform", "ye_barg_bound"]

_LARGEST_CLOSED = 512  # symbols of a matrix that is closed first; an open one gives a bound that is valid but lower
_SHARES = [
    i / 32 for i in range(1, 32)
]  # of sensitive people, at which a high-low context is looked at
_MAX_EXPONENT = 700.0  # e^700 is among the last that a float holds
_ROUNDS = 60  # of the search for the best mixture; a bound is valid after every round
_STARTS = 16  # symbols from which sets of close symbols are grown

Group = tuple[int, float]
"""A set of symbols all of whose pairs are promised at most ε: how many there are, and ε."""


def ye_barg_bound(size: int, epsilon: float) -> float:
    """Return the least risk at uniform p of any ε-LDP mechanism on ``size`` symbols.

        LB(k, ε) = min_w R(k, w, e^ε),   w = 1 … k − 1

    R is the risk of a design whose sets have w symbols (``codes.search.ye_barg_risk``); it falls
    until w = k/(e^ε + 1) and rises from there. The bound holds for every unbiased estimate.
    Reference: Ye and Barg (2018), "Optimal schemes for discrete distribution estimation under
    locally differential privacy"; docs/bounds.md has an argument that needs no asymptotics.

    >>> round(ye_barg_bound(2, 1.0), 4), ye_barg_bound(1, 1.0), ye_barg_bound(5, math.inf)
    (2.3413, 0.0, 0.8)
    """
    if isinstance(size, bool) or size != int(size) or size < 1:
        raise InvalidArgument(f"size must be a positive integer; got {size!r}.")
    if not epsilon >= 0:
        raise InvalidContext(f"epsilon must be a non-negative number or inf; got {epsilon!r}.")
    k = int(size)
    if k == 1:
        return 0.0
    if epsilon == 0:
        return math.inf
    best_size = k / (1 + math.exp(min(epsilon, _MAX_EXPONENT)))
    below = min(max(math.floor(best_size), 1), k - 1)
    above = min(max(math.ceil(best_size), 1), k - 1)
    return min(ye_barg_risk(k, below, epsilon), ye_barg_risk(k, above, epsilon))


def lower_bound_risk(context: Context) -> float:
    """A floor under ``worst_risk()`` of every mechanism that keeps the context, whatever its unbiased estimate.

    Take disjoint sets T_j of k_j symbols, with all promises inside T_j at most ε_j, and let people be spread evenly
    over each, with shares π_j. Even somebody who is told the set of each person cannot have a risk below

        Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]

    and the answer is this for the worst shares, and the best family of sets that was found: all symbols, if the
    context is uniform; the blocks; groups, apart or together. High-low contexts and pairs of symbols have floors of
    their own, which count if they are higher. For uniform, block and high-low contexts there is a channel that
    meets it at the distribution it is taken at. For other contexts sets are found greedily, and a higher floor may
    exist; those that are no groups of symbols are written out for it, up to 4096 symbols.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> lower_bound_risk(Uniform(7, 1)) == ye_barg_bound(7, 1.0)
    True
    >>> lower_bound_risk(HighLow(20, range(7), 1)) >= ye_barg_bound(7, 1.0)
    True
    """
    context = _simplest(context)
    parts = map(lower_bound_risk, context.parts) if isinstance(context, ContextUnion) else ()
    floors = [*map(_worst_risk, _families(context)), *_high_low_floors(context, _SHARES), *parts]
    return max(*floors, _pair_floor(context))


def lower_bound_risk_at_uniform(context: Context) -> float:
    """A floor under ``risk(p)`` at uniform p of every mechanism that keeps the context; see ``lower_bound_risk``.

    Here every symbol must be in one of the sets, and the share of a set is its size over k.

    >>> from sfumato.contexts import Blocks
    >>> lower_bound_risk_at_uniform(Blocks([0, 0, 1, 1], 1)) == ye_barg_bound(2, 1.0) + 0.25
    True
    """
    context, k = _simplest(context), context.size
    whole = [family for family in _families(context) if sum(size for size, _ in family) == k]
    risks = (_risk_at(family, np.array([size / k for size, _ in family])) for family in whole)
    share = context.sensitive.size / k if isinstance(context, HighLow) else 0.0
    return max([*risks, *_high_low_floors(context, [share])])


def _simplest(context: Context) -> Context:
    """The structured context that promises the same, if there is one and it is quickly found."""
    if (
        context.groups is None
        and not isinstance(context, ContextUnion)
        and context.size > _LARGEST_CLOSED
    ):
        return context
    try:
        return recognise(context)
    except (NoClosedForm, NothingToLearn):
        return context


def _worst_risk(family: Sequence[Group]) -> float:
    return _risk_at(family, _worst_shares(family))


def _risk_at(family: Sequence[Group], shares: Floats) -> float:
    """``Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]``."""
    total = 0.0
    for (size, epsilon), share in zip(family, shares.tolist(), strict=True):
        if share > 0:
            total += share * ye_barg_bound(size, epsilon) + share * (1 - share) / size
    return total


def _worst_shares(family: Sequence[Group]) -> Floats:
    """The shares π for which ``_risk_at`` is largest: ``π_j = k_j max(a_j − θ, 0)/2`` with ``a_j = LB_j + 1/k_j``.

    The risk is ``Σ_j a_j π_j − π_j²/k_j``, concave in π; θ makes the shares add up to 1.
    """
    k = np.array([size for size, _ in family], dtype=np.float64)
    a = np.array([ye_barg_bound(size, epsilon) + 1 / size for size, epsilon in family])
    if np.isinf(a).any():
        return np.eye(a.size)[int(np.argmax(a))]
    a = a - a.max()  # only differences matter, and a may be so large that 1/k would be lost in it
    order = np.argsort(-a, kind="stable")
    # θ if exactly the sets up to this one have a share; the right one is the last that is below its own a.
    theta = (np.cumsum(k[order] * a[order]) - 2) / np.cumsum(k[order])
    shares = k * np.maximum(a - theta[np.flatnonzero(theta < a[order])[-1]], 0.0)
    return shares / shares.sum()


def _high_low_floors(context: Context, shares: Sequence[float]) -> Iterator[float]:
    """The floors of a high-low context for these shares of sensitive people; none for other contexts."""
    if isinstance(context, HighLow) and 0 < context.sensitive.size < context.size:
        s, epsilon = context.sensitive.size, float(context.exact_inside)
        yield from (high_low_bound(s, context.size - s, epsilon, share) for share in shares)


def _pair_floor(context: Context) -> float:
    """The highest floor of two symbols: the worst risk of their binary optimum, which nothing surpasses (Theorem 2).

    ``2 m (1 − m)/Δ²``, with m as near to ½ as the optimum's chances of report 1, P(1|0) and P(1|1) = P(1|0) + Δ, allow.
    """
    if isinstance(context, ContextUnion):
        return 0.0  # its parts have been asked
    E = _closed_matrix(context) if context.groups is None else _between_groups(context.groups)
    if len(E) < 2:
        return 0.0
    a, b = (matrix[np.triu_indices(len(E), 1)] for matrix in (E, E.T))
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.exp(-b) * np.expm1(-a) / np.expm1(-(a + b))
        most = np.expm1(-a) / np.expm1(-(a + b))
        m = np.clip(0.5, least, most)
        floors = 2 * m * (1 - m) / (most - least) ** 2
    return float(np.where(np.minimum(a, b) > 0, floors, np.inf).max())


def _between_groups(groups: GroupedContext) -> Floats:
    """E of one symbol from each kind of group; inside groups, sets of symbols say more than pairs do."""
    outward = np.array([float(epsilon) for epsilon in dict.fromkeys(groups.outward)])
    E = np.broadcast_to(outward[:, None], (outward.size, outward.size)).copy()
    np.fill_diagonal(E, 0.0)
    return E


def _closed_matrix(context: Context) -> Floats:
    return (context.closure() if context.size <= _LARGEST_CLOSED else context).matrix()


# --- high-low contexts ------------------------------------------------------------------------


def high_low_bound(sensitive: int, free: int, epsilon: float, share: float) -> float:
    """Return the least risk of any high-low mechanism, at a share π of sensitive people.

    It is sharper than what the sensitive symbols alone imply. People are spread evenly over the s
    sensitive symbols, with share π, and evenly over the t free ones. Among the best mechanisms
    there is then one that treats all sensitive symbols alike, and all free ones. Its information
    has three numbers: j_A about directions among sensitive symbols, j_B among free ones, j_AB about
    π. They are a mixture of s triples, one for each number w of sensitive symbols that a report can
    favour (docs/bounds.md):

        risk ≥ min over mixtures of   (s − 1)/j_A + (t − 1)/j_B + 1/j_AB

    For a single sensitive symbol Mangat's response attains it.

    >>> round(high_low_bound(1, 1, 1.0, 0.5), 4)
    1.082
    """
    D = np.array([sensitive - 1, free - 1, 1])  # dimensions
    J = _informations(sensitive, free, epsilon, share)[D > 0]
    D = D[D > 0][:, None]
    best = int(np.argmin((D / J).sum(axis=0)))
    j = J[:, [best]]
    bound = 0.0
    for done in range(_ROUNDS):
        # Cauchy and Schwarz: (Σ D/j)² ≤ (Σ D/J)(Σ D J/j²) for every mixture J, whatever j is.
        slopes = (D * J / j**2).sum(axis=0)
        bound = max(bound, float((D / j).sum() ** 2 / slopes.max()))
        steepest = int(np.argmax(slopes))
        j = j + 2 / (done + 3) * (J[:, [steepest]] - j)
    return bound


def _informations(s: int, t: int, epsilon: float, share: float) -> Floats:
    """Return the triples (j_A, j_B, j_AB) for w = 1 … s, a column each.

    A report that favours w symbols has chances in the ratio 1 on these to e^−ε on all others, and
    total weight μ. What is left to a free symbol, ν, is sent in clear.
    """
    w = np.arange(1, s + 1)
    shrink = math.exp(-epsilon)
    favoured = w + (s - w) * shrink
    mu = s / favoured
    nu = w * (1 - shrink) / favoured
    q = share * favoured / s + (1 - share) * shrink  # of a report, over μ
    among_sensitive = mu * w * (s - w) * (1 - shrink) ** 2 / (s * max(s - 1, 1) * q)
    among_free = t * nu / (1 - share)
    between = (mu * (w * (1 - shrink) / s) ** 2 / q + nu / (1 - share)) / (1 / s + 1 / t)
    # w = s says nothing about sensitive symbols; next to nothing keeps the arithmetic finite.
    return np.maximum(np.array([among_sensitive, among_free, between]), 1e-300)


# --- sets of symbols that are close to one another --------------------------------------------------------------------


def _families(context: Context) -> Iterator[list[Group]]:
    """Families of disjoint sets of symbols, each with an ε that no promise inside it exceeds; the first has all k."""
    if isinstance(context, ContextUnion):
        parts = [list(_families(part)) for part in context.parts]
        yield [group for families in parts for group in families[0]]
        yield [group for families in parts for group in max(families, key=_worst_risk)]
    elif (groups := context.closure().groups if context.groups else None) is not None:
        yield from _group_families(groups)
    else:
        yield from _grown_families(context)


def _group_families(groups: GroupedContext) -> Iterator[list[Group]]:
    """Each group by itself; and those that promise at most ε outward taken together, for every such ε."""
    apart = list(
        zip(
            groups.sizes.tolist(),
            map(float, groups.inside),
            map(float, groups.outward),
            strict=True,
        )
    )
    yield [(size, inside) for size, inside, _ in apart]
    for most in sorted({outward for _, _, outward in apart if outward < math.inf}):
        together = [group for group in apart if group[2] <= most]
        epsilon = max([most, *(inside for size, inside, _ in together if size > 1)])
        others = [(size, inside) for size, inside, outward in apart if outward > most]
        yield [(sum(size for size, _, _ in together), epsilon), *others]


def _grown_families(context: Context) -> Iterator[list[Group]]:
    """Of any matrix: the sets that hold finite promises both ways; and the best set grown from single symbols."""
    E = _closed_matrix(context)
    mutual = np.maximum(E, E.T)
    whole, grown = [], []
    for members in _mutually_finite(mutual):
        inner = mutual[np.ix_(members, members)]
        whole.append((members.size, float(inner.max())))
        grown.append(max(_grown_sets(inner), key=lambda group: ye_barg_bound(*group)))
    yield whole
    yield grown


def _mutually_finite(mutual: Floats) -> Iterator[np.typing.NDArray[np.intp]]:
    """Symbols with finite promises both ways, set by set; where shortest ways are not taken, still disjoint sets."""
    left = np.ones(len(mutual), dtype=np.bool_)
    while left.any():
        members = np.flatnonzero(left & np.isfinite(mutual[int(np.argmax(left))]))
        left[members] = False
        yield members


def _grown_sets(mutual: Floats) -> Iterator[Group]:
    """From some symbols, add the nearest symbol again and again: every stage is a set with its largest promise."""
    k = len(mutual)
    for start in sorted({i * k // _STARTS for i in range(_STARTS)}):
        farthest, epsilon = mutual[start].copy(), 0.0
        farthest[start] = math.inf
        yield 1, 0.0
        for size in range(2, k + 1):
            nearest = int(np.argmin(farthest))
            epsilon = max(epsilon, float(farthest[nearest]))
            farthest = np.maximum(farthest, mutual[nearest])
            farthest[nearest] = math.inf
            yield size, epsilon
