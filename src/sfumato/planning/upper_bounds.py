"""What the Hadamard code achieves, before anything is built: the paper's bounds on the error, and tight ones.

Both estimates of a mechanism meet them, the paper's own and the corrected one, for every distribution of people.
Derivations: docs/bounds.md.
"""

import math
from dataclasses import dataclass

from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.errors import InvalidContext, NoClosedForm
from sfumato.mechanisms.mechanism import people_count

__all__ = ["UpperBounds", "sample_complexity", "upper_bound_people", "upper_bounds"]


@dataclass(frozen=True)
class UpperBounds:
    """Bounds on the mean error of the Hadamard code, for every p.

    ``tight_l2`` and ``paper_l2`` bound ``E‖p̂ − p‖²``; ``tight_tv`` and ``paper_tv`` bound the mean total variation
    ``E ½ Σ_x |p̂_x − p_x|``. The paper's propositions print bounds on ``Σ_x |p̂_x − p_x|`` and call them total variation;
    ``paper_tv`` is half of what they print.
    """

    tight_l2: float
    tight_tv: float
    paper_l2: float
    paper_tv: float


def upper_bounds(context: Context, people: int) -> UpperBounds:
    """The bounds for n people, with ``c = (e + 1)/(e − 1)``.

        blocks:    E l2² ≤ max_j c² k_j/n,       E TV ≤ ½ sqrt(Σ_j c² k_j²/n);      the paper: 12 and √12 times as much
        high-low:  E l2² ≤ (s c² + c)/n,         E TV ≤ ½ (c s + sqrt(c k))/√n;     the paper: 3 s and √3 s for s

    A uniform context is a single block. Blocks may differ in ε: each then has its own c.
    Reference: Acharya et al. (2020), the propositions of sections 5 and 6.

    >>> bounds = upper_bounds(Blocks([0, 0, 0, 1, 1], 1), people=10_000)
    >>> round(bounds.tight_tv, 4), round(bounds.paper_tv, 4)
    (0.039, 0.1351)
    """
    n = people_count(people)
    if isinstance(context, HighLow):
        s, k, c = context.sensitive.size, context.size, _noise(float(context.exact_inside))
        return UpperBounds(
            tight_l2=(s * c**2 + c) / n,
            tight_tv=(c * s + math.sqrt(c * k)) / math.sqrt(n) / 2,
            paper_l2=(3 * s * c**2 + c) / n,
            paper_tv=(math.sqrt(3) * c * s + math.sqrt(c * k)) / math.sqrt(n) / 2,
        )
    blocks = [(size, _noise(epsilon)) for size, epsilon in _blocks(context)]
    l2 = max(c**2 * k for k, c in blocks) / n
    tv = math.sqrt(math.fsum((c * k) ** 2 for k, c in blocks) / n) / 2
    return UpperBounds(tight_l2=l2, tight_tv=tv, paper_l2=12 * l2, paper_tv=math.sqrt(12) * tv)


def upper_bound_people(context: Context, error: float) -> int:
    """So many people are enough for a mean total variation of at most ``error``, for every p, by the tight bound.

    >>> upper_bound_people(Blocks([0, 0, 0, 1, 1], 1), error=0.039)
    10006
    """
    n = (upper_bounds(context, 1).tight_tv / checked_error(error)) ** 2
    return max(1, math.ceil(n))


def sample_complexity(context: Context, error: float) -> float:
    """The paper's order of growth of the number of people for a total variation α: right up to a constant factor.

        uniform  k²/(α²ε²)        blocks  Σ_j k_j²/(α²ε²)        high-low  s²/(α²ε²) + k/(α²ε)

    Proved for ε of at most a constant, and for fewer than k/2 sensitive symbols. It is for comparing contexts; for
    numbers of people use ``upper_bound_people`` or a plan.

    >>> sample_complexity(Uniform(100, 1), 0.1) / sample_complexity(Blocks([x // 10 for x in range(100)], 1), 0.1)
    10.0
    """
    alpha = checked_error(error)
    if isinstance(context, HighLow):
        s, k, epsilon = context.sensitive.size, context.size, float(context.exact_inside)
        return (s / epsilon) ** 2 / alpha**2 + k / (alpha**2 * epsilon)
    return math.fsum((size / epsilon) ** 2 for size, epsilon in _blocks(context)) / alpha**2


def checked_error(error: float) -> float:
    """A goal for the total variation, above 0 and at most 1."""
    if not 0 < error <= 1:
        raise InvalidContext(
            f"error must be a total variation, above 0 and at most 1; found {error!r}."
        )
    return float(error)


def _blocks(context: Context) -> list[tuple[int, float]]:
    """Size and ε of every block; a uniform context is one."""
    if isinstance(context, Uniform):
        return [(context.size, float(context.exact_inside))]
    if isinstance(context, Blocks) and context.exact_across == math.inf:
        return list(zip(context.sizes.tolist(), map(float, context.exact_epsilons), strict=True))
    raise NoClosedForm(
        "these bounds are for Uniform and HighLow contexts, and for Blocks that promise nothing across; found "
        f"{context!r}. For a mechanism that you have, worst_risk() and variances(p, n) are exact."
    )


def _noise(epsilon: float) -> float:
    """``c = (e + 1)/(e − 1)``, 1 at ε = inf."""
    return 1 / math.tanh(epsilon / 2)
