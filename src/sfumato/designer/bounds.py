"""Lower bounds on the risk ``n · E‖p̂ − p‖²`` of any mechanism.

Let q be the distribution of reports. The Fisher information that one report carries about p is
``J = Q diag(1/q) Qᵀ``, restricted to vectors whose entries add up to 0. An unbiased estimate from n
reports satisfies ``n · E‖p̂ − p‖² ≥ tr J⁻¹`` (Cramér–Rao), and privacy bounds the contribution of
each report to J. The bounds hold for every n, for every mechanism that satisfies the context,
and for every estimate that is unbiased near p. For biased estimates, they hold asymptotically, as
local minimax bounds (Hájek and Le Cam). The derivations are in docs/bounds.md.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.codes import ye_barg_risk
from sfumato.contexts import Context, GroupedContext
from sfumato.designer.recognise import recognise
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Floats, Symbols

__all__ = [
    "clear_share_limit",
    "high_low_bound",
    "lower_bound_risk",
    "lower_bound_risk_at_uniform",
    "ye_barg_bound",
]

# For more symbols, the closure is not computed. The bound is then still valid, but may be lower.
_MAX_CLOSURE_SIZE = 512
_MAX_EXPONENT = 700.0  # exp() overflows a float just above e^709
_ROUND_COUNT = 60  # rounds of improving the mixture; the bound is valid after each of them
_SENSITIVE_SHARES = [i / 32 for i in range(1, 32)]  # shares of people with a sensitive symbol
_START_COUNT = 16  # the number of symbols from which sets of close symbols are grown

CloseSet = tuple[int, float]
"""The size of a set of symbols, and an upper bound on ε for all its pairs."""


def ye_barg_bound(size: int, epsilon: float) -> float:
    """Return a lower bound on the risk at uniform p of any ε-LDP mechanism on ``size`` symbols.

        LB(k, ε) = min_w R(k, w, e^ε),   w = 1 … k − 1

    R is the risk of a design whose sets have w symbols (``codes.search.ye_barg_risk``). R
    decreases up to w = k/(e^ε + 1) and increases from there. The bound holds for every unbiased
    estimate. Reference: Ye and Barg (2018), "Optimal schemes for discrete distribution estimation
    under locally differential privacy"; docs/bounds.md has a non-asymptotic proof.

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
    optimum = k / (1 + math.exp(min(epsilon, _MAX_EXPONENT)))
    w_below = min(max(math.floor(optimum), 1), k - 1)
    w_above = min(max(math.ceil(optimum), 1), k - 1)
    return min(ye_barg_risk(k, w_below, epsilon), ye_barg_risk(k, w_above, epsilon))


def clear_share_limit(sensitive_count: int, epsilon: float, risk: float) -> float:
    """Return the largest share of people with a free symbol who can report it in clear.

    It holds for every mechanism for a high-low context with an unbiased estimate and a risk of at
    most ``risk`` if everybody has a sensitive symbol, each of the s equally often. With a clear
    share β, that risk is at least ``(s − 1)²/(s β (e − 1 − e β))``. Whatever the decoder, reports
    then say no more about free symbols than the answers of this share of the people would.
    For the proof, see docs/bounds.md.

    >>> round(clear_share_limit(10, 1.0, 33.0), 3), clear_share_limit(1, 1.0, 1.0)
    (0.414, 0.6321205588285577)
    """
    s = sensitive_count
    e = math.exp(epsilon)
    # The larger root of e β² − (e − 1) β + (s − 1)²/(s risk).
    discriminant = (e - 1) ** 2 - 4 * e * (s - 1) ** 2 / (s * risk)
    if discriminant < 0:
        raise InvalidArgument(f"no mechanism has a risk of at most {risk:g}. Use a larger risk.")
    return (e - 1 + math.sqrt(discriminant)) / (2 * e)


def lower_bound_risk(context: Context) -> float:
    """Return a lower bound on ``worst_risk()`` of every mechanism that satisfies the context.

    Take disjoint sets T_j of k_j symbols, with all promises inside T_j at most ε_j. Let a share π_j
    of all people have a symbol in T_j, spread evenly over the set. Even an observer who knows each
    person's set cannot achieve a risk below

        Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]

    The result is this bound for the worst shares and the best known family of sets: all symbols of
    a uniform context, the blocks, or the groups, separate or combined. High-low contexts, pairs of
    symbols, and the parts of a union have bounds of their own, which are used if they are higher.
    For uniform, block and high-low contexts, some channel attains the bound at the worst shares.
    For other contexts, the sets are grown greedily, and a higher bound may exist. Such contexts may
    have at most 4096 symbols, because their full matrix is computed.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> lower_bound_risk(Uniform(7, 1)) == ye_barg_bound(7, 1.0)
    True
    >>> lower_bound_risk(HighLow(20, range(7), 1)) >= ye_barg_bound(7, 1.0)
    True
    """
    context = _simplify(context)
    bounds = [_bound_at_worst_shares(family) for family in _families(context)]
    bounds.extend(_high_low_bounds(context, _SENSITIVE_SHARES))
    if context.parts:
        bounds.extend(lower_bound_risk(part) for part in context.parts)
    else:
        bounds.append(_pair_bound(context))
    return max(bounds)


def lower_bound_risk_at_uniform(context: Context) -> float:
    """Return a lower bound on the risk at uniform p of every mechanism that satisfies the context.

    This is the bound from ``lower_bound_risk`` for sets that together contain every symbol. The
    share of each set is its size divided by k. For a high-low context, the bound for high-low
    contexts is used if it is higher.

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
            bounds.append(_bound_at(family, sizes / k))
    bounds.extend(_high_low_bounds(context))
    return max(bounds)


def _simplify(context: Context) -> Context:
    """Return an equivalent structured context if one is cheap to find, else the context itself."""
    is_matrix = context.groups is None and not context.parts
    if is_matrix and context.size > _MAX_CLOSURE_SIZE:
        return context
    try:
        return recognise(context)
    except (NoClosedForm, NothingToLearn):
        return context


def _bound_at_worst_shares(family: Sequence[CloseSet]) -> float:
    return _bound_at(family, _worst_shares(family))


def _bound_at(family: Sequence[CloseSet], shares: Floats) -> float:
    """Return ``Σ_j [π_j LB(k_j, ε_j) + π_j (1 − π_j)/k_j]``."""
    total = 0.0
    for (size, epsilon), share in zip(family, shares.tolist(), strict=True):
        if share > 0:
            total += share * ye_barg_bound(size, epsilon) + share * (1 - share) / size
    return total


def _worst_shares(family: Sequence[CloseSet]) -> Floats:
    """Return the shares π that maximise ``_bound_at``.

    The bound ``Σ_j a_j π_j − π_j²/k_j``, with ``a_j = LB_j + 1/k_j``, is concave in π. So
    ``π_j = k_j max(a_j − θ, 0)/2``, where θ makes the shares add up to 1.
    """
    k = np.array([size for size, _ in family], dtype=np.float64)
    a = np.array([ye_barg_bound(size, epsilon) + 1 / size for size, epsilon in family])
    if np.isinf(a).any():
        return np.eye(a.size)[int(np.argmax(a))]
    a = a - a.max()  # only differences matter; next to a large a, 1/k would be lost to rounding
    order = np.argsort(-a, kind="stable")
    # Entry i is θ if only the first i + 1 sets have a positive share. The true θ is the last entry
    # that is below the a of its set.
    thetas = (np.cumsum(k[order] * a[order]) - 2) / np.cumsum(k[order])
    last_index = np.flatnonzero(thetas < a[order])[-1]
    shares = k * np.maximum(a - thetas[last_index], 0.0)
    return shares / shares.sum()


def _pair_bound(context: Context) -> float:
    """Return the highest lower bound from a pair of symbols.

    If the context has groups, only pairs between groups are considered. The optimal mechanism for
    two symbols is known (Acharya et al. 2020, Theorem 2). It produces report 1 with probabilities
    P(1|0) and P(1|1) = P(1|0) + Δ. The bound is ``2 m (1 − m)/Δ²``, where m is the number between
    these probabilities that is closest to ½.
    """
    if context.groups is None:
        E = _closure_matrix(context)
    else:
        E = _matrix_between_groups(context.groups)
    if len(E) < 2:
        return 0.0
    pairs = np.triu_indices(len(E), 1)
    a = E[pairs]
    b = E.T[pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        p_low = np.exp(-b) * np.expm1(-a) / np.expm1(-(a + b))
        p_high = np.expm1(-a) / np.expm1(-(a + b))
        m = np.clip(0.5, p_low, p_high)
        bounds = 2 * m * (1 - m) / (p_high - p_low) ** 2
    return float(np.where(np.minimum(a, b) > 0, bounds, np.inf).max())


def _matrix_between_groups(groups: GroupedContext) -> Floats:
    """Return E for one symbol from each of several groups, one group per distinct outward ε.

    All other pairs are left out, because sets of close symbols give better bounds for them.
    """
    outward = np.array([float(epsilon) for epsilon in dict.fromkeys(groups.outward)])
    E = np.broadcast_to(outward[:, None], (outward.size, outward.size)).copy()
    np.fill_diagonal(E, 0.0)
    return E


def _closure_matrix(context: Context) -> Floats:
    """Return the closure of E, or E itself if the closure would take too long."""
    if context.size <= _MAX_CLOSURE_SIZE:
        context = context.closure()
    return context.matrix()


# --- high-low contexts ----------------------------------------------------------------------------


def _high_low_bounds(context: Context, shares: Sequence[float] = ()) -> list[float]:
    """Return the bound for a high-low context at each share of people with a sensitive symbol.

    By default, the only share is the fraction of symbols that are sensitive. Return an empty list
    for any other context.
    """
    groups = context.groups
    if groups is None or groups.inside != groups.outward or len(groups.protected_groups) != 1:
        return []
    (g,) = groups.protected_groups
    sensitive_count = int(groups.sizes[g])
    free_count = context.size - sensitive_count
    if free_count == 0:
        return []
    epsilon = float(groups.outward[g])
    bounds = []
    for share in shares or [sensitive_count / context.size]:
        bounds.append(high_low_bound(sensitive_count, free_count, epsilon, share))
    return bounds


def high_low_bound(sensitive_count: int, free_count: int, epsilon: float, share: float) -> float:
    """Return a lower bound on the risk of any high-low mechanism, at π = ``share``.

    The bound is sharper than the one from the sensitive symbols alone. A share π of all people is
    spread evenly over the s sensitive symbols, and the others evenly over the t free ones. Then one
    of the best mechanisms treats all sensitive symbols alike, and all free ones alike. Its Fisher
    information is given by three numbers: j_A for directions among sensitive symbols, j_B for those
    among free symbols, and j_AB for π. This triple is a mixture of s triples, one for each number w
    of sensitive symbols that a report can favour (docs/bounds.md):

        risk ≥ min over mixtures of   (s − 1)/j_A + (t − 1)/j_B + 1/j_AB

    For a single sensitive symbol, Mangat's response attains the bound.

    >>> round(high_low_bound(1, 1, 1.0, 0.5), 4)
    1.082
    """
    # The number of dimensions for each of the three kinds of directions.
    D = np.array([sensitive_count - 1, free_count - 1, 1])
    J = _information_triples(sensitive_count, free_count, epsilon, share)[D > 0]
    D = D[D > 0][:, None]
    best_column = int(np.argmin((D / J).sum(axis=0)))
    j = J[:, [best_column]]
    bound = 0.0
    for round_index in range(_ROUND_COUNT):
        # Cauchy–Schwarz: (Σ D/j)² ≤ (Σ D/J)(Σ D J/j²) for every mixture J and any j.
        slopes = (D * J / j**2).sum(axis=0)
        bound = max(bound, float((D / j).sum() ** 2 / slopes.max()))
        steepest = int(np.argmax(slopes))
        j = j + 2 / (round_index + 3) * (J[:, [steepest]] - j)
    return bound


def _information_triples(s: int, t: int, epsilon: float, share: float) -> Floats:
    """Return the triples (j_A, j_B, j_AB) for w = 1 … s, as columns.

    A report that favours w symbols has relative probability 1 for those symbols and e^−ε for all
    others; μ is the total weight of these reports. With the remaining probability ν, a free symbol
    is sent unchanged.
    """
    w = np.arange(1, s + 1)
    shrink_factor = math.exp(-epsilon)
    # The sum of the relative probabilities of a report for all sensitive symbols.
    sensitive_total = w + (s - w) * shrink_factor
    mu = s / sensitive_total
    nu = w * (1 - shrink_factor) / sensitive_total
    # The probability of a report, divided by μ.
    q = share * sensitive_total / s + (1 - share) * shrink_factor
    j_A = mu * w * (s - w) * (1 - shrink_factor) ** 2 / (s * max(s - 1, 1) * q)
    j_B = t * nu / (1 - share)
    j_AB = (mu * (w * (1 - shrink_factor) / s) ** 2 / q + nu / (1 - share)) / (1 / s + 1 / t)
    # For w = s, reports do not tell sensitive symbols apart; avoid dividing by zero.
    return np.maximum(np.array([j_A, j_B, j_AB]), 1e-300)


# --- sets of symbols that are close to each other -------------------------------------------------


def _families(context: Context) -> Iterator[list[CloseSet]]:
    """Yield families of disjoint close sets; the sets of the first family contain all symbols."""
    if context.parts:
        complete_family: list[CloseSet] = []
        best_family: list[CloseSet] = []
        for part in context.parts:
            part_families = list(_families(part))
            complete_family.extend(part_families[0])
            best_part_family = max(part_families, key=_bound_at_worst_shares)
            best_family.extend(best_part_family)
        yield complete_family
        yield best_family
    elif context.groups is not None:
        yield from _group_families(context.groups.closure())
    else:
        yield from _grown_families(context)


def _group_families(groups: GroupedContext) -> Iterator[list[CloseSet]]:
    """Yield the family of all groups, then one family for each finite outward ε.

    In the latter, all groups with at most that outward ε are merged into one set.
    """
    sizes = groups.sizes.tolist()
    inside = [float(epsilon) for epsilon in groups.inside]
    outward = [float(epsilon) for epsilon in groups.outward]
    yield list(zip(sizes, inside, strict=True))
    for max_outward in sorted(set(outward) - {math.inf}):
        merged_size = 0
        merged_epsilon = max_outward
        other_sets: list[CloseSet] = []
        for g in range(len(sizes)):
            if outward[g] > max_outward:
                other_sets.append((sizes[g], inside[g]))
                continue
            merged_size += sizes[g]
            if sizes[g] > 1:
                merged_epsilon = max(merged_epsilon, inside[g])
        yield [(merged_size, merged_epsilon), *other_sets]


def _grown_families(context: Context) -> Iterator[list[CloseSet]]:
    """Yield a family of sets that contain all symbols, and a family of the best sets in them."""
    E = _closure_matrix(context)
    mutual_epsilons = np.maximum(E, E.T)
    complete_family: list[CloseSet] = []
    grown_family: list[CloseSet] = []
    for members in _mutually_finite_sets(mutual_epsilons):
        inner_epsilons = mutual_epsilons[np.ix_(members, members)]
        complete_family.append((members.size, float(inner_epsilons.max())))
        grown_sets = _grow_sets(inner_epsilons)
        grown_family.append(max(grown_sets, key=lambda close_set: ye_barg_bound(*close_set)))
    yield complete_family
    yield grown_family


def _mutually_finite_sets(mutual_epsilons: Floats) -> Iterator[Symbols]:
    """Yield disjoint sets that together contain all symbols.

    In each set, the promises between the first symbol and the others are finite both ways.
    """
    is_unassigned = np.ones(len(mutual_epsilons), dtype=np.bool_)
    while is_unassigned.any():
        first = int(np.argmax(is_unassigned))
        members = np.flatnonzero(is_unassigned & np.isfinite(mutual_epsilons[first]))
        is_unassigned[members] = False
        yield members


def _grow_sets(mutual_epsilons: Floats) -> Iterator[CloseSet]:
    """Yield every set reached from one of several symbols by repeatedly adding the nearest one."""
    k = len(mutual_epsilons)
    for start in sorted({i * k // _START_COUNT for i in range(_START_COUNT)}):
        epsilon = 0.0
        # From each symbol to the farthest member of the set.
        distances = mutual_epsilons[start].copy()
        distances[start] = math.inf
        yield 1, 0.0
        for size in range(2, k + 1):
            nearest = int(np.argmin(distances))
            epsilon = max(epsilon, float(distances[nearest]))
            distances = np.maximum(distances, mutual_epsilons[nearest])
            distances[nearest] = math.inf
            yield size, epsilon
