"""The least risk that any mechanism can have: a lower bound on every ``n · E‖p̂ − p‖²``.

The Fisher information of one report about p is ``J = Q diag(1/q) Qᵀ``, on vectors that add up to 0.
An unbiased estimate from n reports has ``n · E‖p̂ − p‖² ≥ tr J⁻¹`` (Cramér and Rao), and privacy
bounds J report by report. The bounds hold for every n, for every mechanism that keeps the context,
and for every estimate that is unbiased near the distribution in question. For biased estimates they
hold in the limit of many people, as local minimax bounds (Hájek and Le Cam). Derivations:
docs/bounds.md.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.codes import ye_barg_risk
from sfumato.contexts import Context, GroupedContext
from sfumato.designer.recognise import recognise
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["high_low_bound", "lower_bound_risk", "lower_bound_risk_at_uniform", "ye_barg_bound"]

# Larger matrices are not closed first: their bound is valid, but may be lower.
_MAX_CLOSED_SIZE = 512
_MAX_EXPONENT = 700.0  # e^700 is close to the largest float
_ROUNDS = 60  # of the search for the best mixture; the bound is valid after every round
_SHARES = [i / 32 for i in range(1, 32)]  # shares of sensitive people to try
_STARTS = 16  # symbols from which sets of close symbols grow

CloseSet = tuple[int, float]
"""The size of a set of symbols, and an ε that bounds the promises between all its pairs."""


def ye_barg_bound(size: int, epsilon: float) -> float:
    """Return the least risk at uniform p of any ε-LDP mechanism on ``size`` symbols.

        LB(k, ε) = min_w R(k, w, e^ε),   w = 1 … k − 1

    R is the risk of a design whose sets have w symbols (``codes.search.ye_barg_risk``). It falls
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
    """Return a bound below ``worst_risk()`` of every mechanism that keeps the context.

    Take disjoint sets T_j of k_j symbols, with all promises inside T_j at most ε_j, and let people
    be spread evenly over each set, with shares π_j. Even an observer who knows the set of each
    person cannot have a risk below

        Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]

    The result is this bound for the worst shares and the best known family of sets: all symbols, if
    the context is uniform; the blocks; groups, separate or together. High-low contexts and pairs of
    symbols have their own bounds, which count if they are higher. For uniform, block and high-low
    contexts, some channel attains the bound at the distribution in question. For other contexts,
    sets grow greedily, and a higher bound may exist; their matrix is written out, up to 4096
    symbols.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> lower_bound_risk(Uniform(7, 1)) == ye_barg_bound(7, 1.0)
    True
    >>> lower_bound_risk(HighLow(20, range(7), 1)) >= ye_barg_bound(7, 1.0)
    True
    """
    context = _simplify(context)
    bounds = [_worst_risk(family) for family in _families(context)]
    bounds.extend(_high_low_bounds(context, _SHARES))
    if context.parts:
        bounds.extend(lower_bound_risk(part) for part in context.parts)
    else:
        bounds.append(_pair_bound(context))
    return max(bounds)


def lower_bound_risk_at_uniform(context: Context) -> float:
    """Return a bound below ``risk(p)`` at uniform p of every mechanism that keeps the context.

    It is the bound of ``lower_bound_risk`` for sets that together contain every symbol, where the
    share of a set is its size over k.

    >>> from sfumato.contexts import Blocks
    >>> lower_bound_risk_at_uniform(Blocks([0, 0, 1, 1], 1)) == ye_barg_bound(2, 1.0) + 0.25
    True
    """
    context = _simplify(context)
    k = context.size
    bounds = []
    for family in _families(context):
        sizes = np.array([size for size, _ in family])
        if sizes.sum() == k:
            bounds.append(_risk_at(family, sizes / k))
    bounds.extend(_high_low_bounds(context))
    return max(bounds)


def _simplify(context: Context) -> Context:
    """Return the structured context that promises the same, if it is cheap to find."""
    is_matrix = context.groups is None and not context.parts
    if is_matrix and context.size > _MAX_CLOSED_SIZE:
        return context
    try:
        return recognise(context)
    except (NoClosedForm, NothingToLearn):
        return context


def _worst_risk(family: Sequence[CloseSet]) -> float:
    return _risk_at(family, _worst_shares(family))


def _risk_at(family: Sequence[CloseSet], shares: Floats) -> float:
    """Return ``Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]``."""
    total = 0.0
    for (size, epsilon), share in zip(family, shares.tolist(), strict=True):
        if share > 0:
            total += share * ye_barg_bound(size, epsilon) + share * (1 - share) / size
    return total


def _worst_shares(family: Sequence[CloseSet]) -> Floats:
    """Return the shares π for which ``_risk_at`` is largest.

    The risk is ``Σ_j a_j π_j − π_j²/k_j`` with ``a_j = LB_j + 1/k_j``, concave in π. So
    ``π_j = k_j max(a_j − θ, 0)/2``, where θ makes the shares add up to 1.
    """
    k = np.array([size for size, _ in family], dtype=np.float64)
    a = np.array([ye_barg_bound(size, epsilon) + 1 / size for size, epsilon in family])
    if np.isinf(a).any():
        return np.eye(a.size)[int(np.argmax(a))]
    a = a - a.max()  # only differences matter, and a large a would swallow 1/k
    order = np.argsort(-a, kind="stable")
    # θ if exactly the sets up to this one have a share. The last θ below its own a is the right one.
    theta = (np.cumsum(k[order] * a[order]) - 2) / np.cumsum(k[order])
    last = np.flatnonzero(theta < a[order])[-1]
    shares = k * np.maximum(a - theta[last], 0.0)
    return shares / shares.sum()


def _pair_bound(context: Context) -> float:
    """Return the highest bound from two symbols, whose optimum is known (Theorem 2).

    It is ``2 m (1 − m)/Δ²``, where m is as near to ½ as the optimum's chances of report 1, P(1|0)
    and P(1|1) = P(1|0) + Δ, allow.
    """
    E = _closure_matrix(context) if context.groups is None else _between_groups(context.groups)
    if len(E) < 2:
        return 0.0
    pairs = np.triu_indices(len(E), 1)
    a = E[pairs]
    b = E.T[pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.exp(-b) * np.expm1(-a) / np.expm1(-(a + b))
        most = np.expm1(-a) / np.expm1(-(a + b))
        m = np.clip(0.5, least, most)
        bounds = 2 * m * (1 - m) / (most - least) ** 2
    return float(np.where(np.minimum(a, b) > 0, bounds, np.inf).max())


def _between_groups(groups: GroupedContext) -> Floats:
    """Return E for one symbol of each kind of group; inside groups, sets give better bounds."""
    outward = np.array([float(epsilon) for epsilon in dict.fromkeys(groups.outward)])
    E = np.broadcast_to(outward[:, None], (outward.size, outward.size)).copy()
    np.fill_diagonal(E, 0.0)
    return E


def _closure_matrix(context: Context) -> Floats:
    """Return E with shortest paths, or as it is if that would take too long."""
    if context.size <= _MAX_CLOSED_SIZE:
        context = context.closure()
    return context.matrix()


# --- high-low contexts ----------------------------------------------------------------------------


def _high_low_bounds(context: Context, shares: Sequence[float] = ()) -> list[float]:
    """Return the bounds of a high-low context at these shares; empty for other contexts.

    By default, the share of sensitive people is the share of sensitive symbols.
    """
    groups = context.groups
    if groups is None or groups.inside != groups.outward or len(groups.protected_groups) != 1:
        return []
    (g,) = groups.protected_groups
    sensitive = int(groups.sizes[g])
    free = context.size - sensitive
    if free == 0:
        return []
    epsilon = float(groups.outward[g])
    bounds = []
    for share in shares or [sensitive / context.size]:
        bounds.append(high_low_bound(sensitive, free, epsilon, share))
    return bounds


def high_low_bound(sensitive: int, free: int, epsilon: float, share: float) -> float:
    """Return the least risk of any high-low mechanism, at a share π of sensitive people.

    It is sharper than the bound from the sensitive symbols alone. People are spread evenly over the
    s sensitive symbols, with share π, and evenly over the t free ones. Then one of the best
    mechanisms treats all sensitive symbols alike, and all free ones. Its information has three
    numbers: j_A about directions among sensitive symbols, j_B among free ones, j_AB about π. They
    are a mixture of s triples, one for each number w of sensitive symbols that a report can favour
    (docs/bounds.md):

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
        # Cauchy and Schwarz: (Σ D/j)² ≤ (Σ D/J)(Σ D J/j²) for every mixture J and any j.
        slopes = (D * J / j**2).sum(axis=0)
        bound = max(bound, float((D / j).sum() ** 2 / slopes.max()))
        steepest = int(np.argmax(slopes))
        j = j + 2 / (done + 3) * (J[:, [steepest]] - j)
    return bound


def _informations(s: int, t: int, epsilon: float, share: float) -> Floats:
    """Return the triples (j_A, j_B, j_AB) for w = 1 … s, as columns.

    A report that favours w symbols has chances in the ratio 1 on these to e^−ε on all others, and
    total weight μ. What is left for a free symbol, ν, is sent as is.
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
    # w = s gives no information about sensitive symbols; a tiny number keeps the results finite.
    return np.maximum(np.array([among_sensitive, among_free, between]), 1e-300)


# --- sets of symbols that are close to each other -------------------------------------------------


def _families(context: Context) -> Iterator[list[CloseSet]]:
    """Yield families of disjoint close sets; the first contains all symbols."""
    if context.parts:
        whole: list[CloseSet] = []
        best: list[CloseSet] = []
        for part in context.parts:
            families = list(_families(part))
            whole.extend(families[0])
            best_family = max(families, key=_worst_risk)
            best.extend(best_family)
        yield whole
        yield best
    elif context.groups is not None:
        yield from _group_families(context.groups.closure())
    else:
        yield from _grown_families(context)


def _group_families(groups: GroupedContext) -> Iterator[list[CloseSet]]:
    """Yield each group by itself; then all groups that promise at most ε outward as one set."""
    sizes = groups.sizes.tolist()
    inside = [float(epsilon) for epsilon in groups.inside]
    outward = [float(epsilon) for epsilon in groups.outward]
    yield list(zip(sizes, inside, strict=True))
    for largest in sorted(set(outward) - {math.inf}):
        size = 0
        epsilon = largest
        others: list[CloseSet] = []
        for g in range(len(sizes)):
            if outward[g] > largest:
                others.append((sizes[g], inside[g]))
                continue
            size += sizes[g]
            if sizes[g] > 1:
                epsilon = max(epsilon, inside[g])
        yield [(size, epsilon), *others]


def _grown_families(context: Context) -> Iterator[list[CloseSet]]:
    """Yield the sets with finite promises both ways, then the best sets grown inside them."""
    E = _closure_matrix(context)
    mutual = np.maximum(E, E.T)
    whole: list[CloseSet] = []
    grown: list[CloseSet] = []
    for members in _mutually_finite(mutual):
        inner = mutual[np.ix_(members, members)]
        whole.append((members.size, float(inner.max())))
        grown.append(max(_grow_sets(inner), key=lambda close: ye_barg_bound(*close)))
    yield whole
    yield grown


def _mutually_finite(mutual: Floats) -> Iterator[Symbols]:
    """Yield disjoint sets of symbols with finite promises both ways."""
    left = np.ones(len(mutual), dtype=np.bool_)
    while left.any():
        first = int(np.argmax(left))
        members = np.flatnonzero(left & np.isfinite(mutual[first]))
        left[members] = False
        yield members


def _grow_sets(mutual: Floats) -> Iterator[CloseSet]:
    """Yield sets that grow by the nearest symbol, from several starts."""
    k = len(mutual)
    for start in sorted({i * k // _STARTS for i in range(_STARTS)}):
        epsilon = 0.0
        farthest = mutual[start].copy()
        farthest[start] = math.inf
        yield 1, 0.0
        for size in range(2, k + 1):
            nearest = int(np.argmin(farthest))
            epsilon = max(epsilon, float(farthest[nearest]))
            farthest = np.maximum(farthest, mutual[nearest])
            farthest[nearest] = math.inf
            yield size, epsilon
