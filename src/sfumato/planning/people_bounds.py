"""Bounds on the number of people needed to reach a given total variation error.

They depend only on the context; no mechanism is built. Below, "the paper" is Acharya et al. (2020).

*Upper bounds* follow from bounds on the error of the Hadamard code: the paper's bounds and tighter
ones. They hold for every distribution p, both for the paper's estimate and for the corrected
estimate that Sfumato uses.

*Lower bounds* hold for every mechanism. They are based on hard families: distributions

    p_z = p_0 + Σ_i z_i γ_i (1_{plus_i} − 1_{minus_i}),    z ∈ {−1, +1}^d

that are hard to distinguish through a private channel. Let the signs z be fair coin flips. If an
estimate has a small mean total variation error for every member of the family, it reveals at least
``I`` bits about the signs. Each report reveals at most χ² bits about them. So ``n ≥ I/χ²``: this is
Lemma 13 of Acharya, Canonne and Tyagi (2019) with explicit constants.

Derivations: docs/bounds.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.contexts import Context, GroupedContext
from sfumato.errors import InvalidArgument, NoClosedForm
from sfumato.mechanisms import require_people
from sfumato.planning.predict import argmax_concave
from sfumato.randomness import Epsilon, exp_bounds

__all__ = [
    "HardFamily",
    "UpperBounds",
    "hard_families",
    "people_lower_bound",
    "people_upper_bound",
    "sample_complexity",
    "upper_bounds",
]

_ALPHA_MULTIPLES = (2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 12, 16)
"""The values of α to try for a hard family, as multiples of the error."""

Block = tuple[int, Epsilon]
"""A set of symbols with the same promise for every pair: its size and its ε."""


# --- upper bounds --------------------------------------------------------------------------------


@dataclass(frozen=True)
class UpperBounds:
    """Bounds on the mean error of the Hadamard code that hold for every distribution p.

    ``tight_l2_squared`` and ``paper_l2_squared`` bound ``E‖p̂ − p‖²``. ``tight_tv`` and ``paper_tv``
    bound the mean total variation ``E ½ Σ_x |p̂_x − p_x|``. The paper's propositions bound
    ``Σ_x |p̂_x − p_x|`` and call it total variation; ``paper_tv`` is half of their bound.
    """

    tight_l2_squared: float
    tight_tv: float
    paper_l2_squared: float
    paper_tv: float


def upper_bounds(context: Context, people: int) -> UpperBounds:
    """Return bounds on the mean error for n people, with ``c = (e^ε + 1)/(e^ε − 1)``.

        blocks:    E l2² ≤ max_j c² k_j/n,    E TV ≤ ½ sqrt(Σ_j c² k_j²/n)
        high-low:  E l2² ≤ (s c² + c)/n,      E TV ≤ ½ (c s + sqrt(c k))/√n

    Block j has k_j symbols, and s of the k symbols are sensitive. For blocks, the paper's bounds
    are 12 times (l2²) and √12 times (TV) as large. For high-low, they have 3 s (l2²) and √3 s (TV)
    in place of s. A uniform context is a single block. If blocks differ in ε, each has its own c.
    Reference: Acharya et al. (2020), the propositions of sections 5 and 6.

    >>> from sfumato.contexts import Blocks
    >>> bounds = upper_bounds(Blocks([0, 0, 0, 1, 1], 1), people=10_000)
    >>> round(bounds.tight_tv, 4), round(bounds.paper_tv, 4)
    (0.039, 0.1351)
    """
    n = require_people(people)
    sensitive = _sensitive_block(context.groups)
    if sensitive is not None:
        s, epsilon = sensitive
        c = _noise_factor(epsilon)
        free_term = math.sqrt(c * context.size)
        return UpperBounds(
            tight_l2_squared=(s * c**2 + c) / n,
            tight_tv=(c * s + free_term) / math.sqrt(n) / 2,
            paper_l2_squared=(3 * s * c**2 + c) / n,
            paper_tv=(math.sqrt(3) * c * s + free_term) / math.sqrt(n) / 2,
        )
    l2_squared = 0.0
    tv_terms = []
    for size, epsilon in _blocks(context):
        c = _noise_factor(epsilon)
        l2_squared = max(l2_squared, c**2 * size / n)
        tv_terms.append((c * size) ** 2)
    tv = math.sqrt(math.fsum(tv_terms) / n) / 2
    return UpperBounds(
        tight_l2_squared=l2_squared,
        tight_tv=tv,
        paper_l2_squared=12 * l2_squared,
        paper_tv=math.sqrt(12) * tv,
    )


def people_upper_bound(context: Context, error: float) -> int:
    """Return a number of people that guarantees a mean total variation error of at most ``error``.

    The guarantee holds for every distribution p.

    >>> from sfumato.contexts import Blocks
    >>> people_upper_bound(Blocks([0, 0, 0, 1, 1], 1), error=0.039)
    10006
    """
    n = (upper_bounds(context, 1).tight_tv / _check_error(error)) ** 2
    return max(1, math.ceil(n))


def sample_complexity(context: Context, error: float) -> float:
    """Return the asymptotic number of people that the paper gives for a total variation error of α.

        uniform  k²/(α²ε²)        blocks  Σ_j k_j²/(α²ε²)        high-low  s²/(α²ε²) + k/(α²ε)

    α is ``error``. The number is correct up to a constant factor, for bounded ε and fewer than k/2
    sensitive symbols. Use it to compare contexts; for an actual number of people, use
    ``people_upper_bound`` or a plan.

    >>> from sfumato.contexts import Blocks, Uniform
    >>> tens = Blocks([x // 10 for x in range(100)], 1)
    >>> sample_complexity(Uniform(100, 1), 0.1) / sample_complexity(tens, 0.1)
    10.0
    """
    alpha = _check_error(error)
    sensitive = _sensitive_block(context.groups)
    if sensitive is not None:
        s, epsilon = sensitive
        return (s / float(epsilon)) ** 2 / alpha**2 + context.size / (alpha**2 * float(epsilon))
    squares = [(size / float(epsilon)) ** 2 for size, epsilon in _blocks(context)]
    return math.fsum(squares) / alpha**2


# --- lower bounds --------------------------------------------------------------------------------


def people_lower_bound(context: Context, error: float) -> int:
    """Return a lower bound on the number of people needed for this mean total variation error.

    With fewer people, no mechanism and no estimate achieves a mean error of at most ``error`` for
    every p. The function tries every hard family of the context at several values of α, with the
    largest χ² that the context allows. The bound grows like the paper's sample complexity, but its
    constant factor is far from optimal: actual mechanisms need hundreds of times as many people.

    >>> from sfumato.contexts import Uniform
    >>> people_lower_bound(Uniform(1000, 1), 0.05)
    1380824
    """
    max_error = _check_error(error)
    lower_bound = 1
    for family in hard_families(context):
        max_alpha = float(family.max_alpha)
        for multiple in _ALPHA_MULTIPLES:
            ratio = min(multiple * max_error / max_alpha, 1.0)
            lower_bound = max(lower_bound, family.people_needed(max_error, ratio))
            if ratio == 1:
                break
    return lower_bound


@dataclass(frozen=True)
class HardFamily:
    """The properties of a family of distributions that determine a lower bound.

    ``max_alpha``: the largest α for which no member of the family has a negative entry.
    ``separations``: a mapping from each separation w to the number of signs i with ``w_i = w``.
    Every estimate p̂ determines signs ẑ with ``TV(p̂, p_z) ≥ Σ_i w_i [ẑ_i ≠ z_i]``.
    ``max_chi_square``: an upper bound on χ² for every mechanism that satisfies the context.

    If you scale the family towards its centre by a ratio, the separations are multiplied by that
    ratio, and ``max_chi_square`` by its square.
    """

    max_alpha: Fraction
    separations: Mapping[Fraction, int]
    max_chi_square: Fraction

    def people_needed(self, error: float, ratio: float = 1.0) -> int:
        """Return ``I/χ²``, rounded up, for the family scaled by ``ratio``.

        With fewer people, the mean error exceeds ``error`` for at least one member of the family.
        """
        chi_square = float(self.max_chi_square) * ratio**2
        if chi_square == 0:
            return 1
        people = self.min_bits(error, ratio) / chi_square
        # Subtract a little before rounding up, so that float error alone never adds a person.
        return max(1, math.ceil(people * (1 - 1e-9)))

    def min_bits(self, error: float, ratio: float = 1.0) -> float:
        """Return a lower bound on the number of bits about the signs that an estimate must reveal.

        ``error``: the mean total variation error of the estimate.

        Let a be the error, w_i the separations, r_i the probability that sign i is wrong, and h the
        binary entropy. Then ``Σ_i w_i r_i ≤ a``, and the number of bits is at least the minimum of
        ``Σ_i (1 − h(r_i))`` under this constraint. By duality, that minimum is

            max over λ ≥ 0 of   Σ_i (1 − log₂(1 + 2^{−λ w_i})) − λ a.

        For d equal separations w, it is ``d (1 − h(a/(d w)))``. Every λ gives a valid bound.

        >>> from sfumato.contexts import Uniform
        >>> (family,) = hard_families(Uniform(8, 1))
        >>> round(family.min_bits(0.1, ratio=0.8), 4)  # 4 (1 − h(1/4))
        0.7549
        """
        counts = {float(w) * ratio: count for w, count in self.separations.items()}
        if 2 * error >= math.fsum(w * count for w, count in counts.items()):
            return 0.0

        def bound_at(multiplier: float) -> float:
            terms = []
            for w, count in counts.items():
                terms.append(count * (1 - math.log2(1 + 2 ** (-multiplier * w))))
            return math.fsum(terms) - multiplier * error

        # Each of the d signs adds at most 1 bit, so the bound is negative for every λ above d/a.
        best_multiplier = argmax_concave(bound_at, 0.0, sum(counts.values()) / error)
        return max(0.0, bound_at(best_multiplier))


def hard_families(context: Context) -> list[HardFamily]:
    """Return the widest hard families for a context.

    The list is empty if every group has only one symbol.

    For a high-low context, the paper's family comes first. Then come a family on the sensitive
    symbols alone, which form a block with plain ε-LDP, and a family on the free symbols alone,
    which is not in the paper and exists for every α up to ½.

    >>> from sfumato.contexts import HighLow
    >>> [len(family.separations) for family in hard_families(HighLow(10, [0, 1, 2, 3], 1))]
    [1, 1, 1]
    """
    groups = context.groups
    if groups is None:
        raise NoClosedForm(
            "lower bounds on the number of people are known only for contexts with groups; got "
            f"{context!r}."
        )
    sensitive = _sensitive_block(groups)
    if sensitive is None:
        blocks = list(zip(groups.sizes.tolist(), groups.inside, strict=True))
        return [block_family(blocks)] if max(groups.sizes) > 1 else []
    s, epsilon = sensitive
    t = context.size - s
    families = [high_low_family(s, t, epsilon)]
    if s > 1:
        families.append(block_family([sensitive]))
    if t > 1:
        families.append(free_family(t, epsilon))
    return families


def high_low_family(s: int, t: int, epsilon: Epsilon) -> HardFamily:
    """Return the paper's family: each of the t free symbols moves against the first sensitive one.

        p_z(first sensitive) = 1/k − α Σ_i z_i/t,     p_z(free i) = 1/k + α z_i/t

    (The paper has a plus in the first formula, but then the shares would not add up to 1.) The
    bound on χ² is Claim 1 of the paper with the best constant for one sensitive symbol, which
    Mangat's response attains:

        χ² ≤ (k α²/t) (η + η²/(1 + t/e^ε)),     η = 1 − 1/e^ε
    """
    k = s + t
    max_alpha = Fraction(1, k)
    inverse_exp = _inverse_exp(epsilon)
    eta = 1 - inverse_exp
    max_chi_square = k * max_alpha**2 / t * (eta + eta**2 / (1 + t * inverse_exp))
    return HardFamily(max_alpha, {max_alpha / (2 * t): t}, max_chi_square)


def block_family(blocks: Sequence[Block]) -> HardFamily:
    """Return the paper's family for blocks: within each block, symbols move up and down in pairs.

        p_z = 1/k ± z_i 2 m_j α/Σ m_j²      on the i-th pair of block j

    Of the k_j symbols in block j, m_j move: all of them or, if k_j is odd, all but the last. Let
    V_j be the sum of ``Q(y|x)`` over the symbols x in block j. Each report y contributes at most
    ``k Σ_j γ_j² gain_j V_j`` to χ². Over all reports, V_j adds up to k_j, so
    ``χ² ≤ k Σ_j γ_j² gain_j k_j``. For even sizes and e^ε ≤ 3, this bound is ``8kα²/(c² Σ k_j²)``.
    """
    k = sum(size for size, _ in blocks)
    moving_counts = [size // 2 * 2 for size, _ in blocks]
    square_sum = sum(m * m for m in moving_counts)
    max_alpha = Fraction(square_sum, 2 * k * max(moving_counts))
    separations: dict[Fraction, int] = {}
    weighted_gain = Fraction(0)
    for (size, epsilon), m in zip(blocks, moving_counts, strict=True):
        step = 2 * m * max_alpha / square_sum
        if m > 0:
            separations[step] = separations.get(step, 0) + m // 2
        weighted_gain += step**2 * _gain(size, epsilon) * size
    return HardFamily(max_alpha, separations, k * weighted_gain)


def free_family(t: int, epsilon: Epsilon) -> HardFamily:
    """Return the family that pairs up the t free symbols, assuming nobody has a sensitive symbol.

    In the channel, the row of every free symbol is at least the row of a sensitive symbol divided
    by e^ε. Only the remainder of the row, which adds up to ``η = 1 − 1/e^ε``, can distinguish free
    symbols. So ``χ² ≤ 4α²η`` for even t.
    """
    family = block_family([(t, math.inf)])
    ((step, pair_count),) = family.separations.items()
    eta = 1 - _inverse_exp(epsilon)
    return HardFamily(family.max_alpha, family.separations, step**2 * t * 2 * pair_count * eta)


# --- helpers -------------------------------------------------------------------------------------


def _sensitive_block(groups: GroupedContext | None) -> Block | None:
    """Return the number of sensitive symbols and their ε, or ``None`` if this is not high-low."""
    if groups is None or len(groups.inside) != 2:
        return None
    for sensitive, free in ((0, 1), (1, 0)):
        epsilon = groups.outward[sensitive]
        is_protected = groups.sizes[sensitive] == 1 or groups.inside[sensitive] == epsilon
        is_free = groups.sizes[free] == 1 or groups.inside[free] == math.inf
        if epsilon < math.inf == groups.outward[free] and is_protected and is_free:
            return int(groups.sizes[sensitive]), epsilon
    return None


def _blocks(context: Context) -> list[Block]:
    """Return the size and ε of every block; there must be no promise between blocks."""
    groups = context.groups
    if groups is None or (len(groups.inside) > 1 and min(groups.outward) < math.inf):
        raise NoClosedForm(
            "these bounds require a uniform or high-low context, or blocks with no promise between "
            f"them; got {context!r}. If you have a mechanism, scores.worst_risk() and "
            "scores.variances(p, n) are exact."
        )
    return list(zip(groups.sizes.tolist(), groups.inside, strict=True))


def _check_error(error: float) -> float:
    if not 0 < error <= 1:
        raise InvalidArgument(
            f"error must be a total variation error, above 0 and at most 1; got {error!r}."
        )
    return float(error)


def _noise_factor(epsilon: Epsilon) -> float:
    """Return ``c = (e^ε + 1)/(e^ε − 1)``, which is 1 if ε is infinite."""
    return 1 / math.tanh(float(epsilon) / 2)


def _inverse_exp(epsilon: Epsilon) -> Fraction:
    """Return ``1/e^ε``, or 0 if ε is infinite.

    The result is rounded down, which can only raise the upper bounds on χ².
    """
    return 1 / exp_bounds(epsilon)[1] if isinstance(epsilon, Fraction) else Fraction(0)


def _gain(size: int, epsilon: Epsilon) -> Fraction:
    """Return the largest ``Σ_i (v_up − v_down)²/(Σ_x v_x)²`` over v with ratios up to e^ε.

    The maximum is attained by a vector v that has m pairs ``(e^ε, 1)`` and is 1 elsewhere. The
    expression is then ``m r²/(k_j + m r)²`` with ``r = e^ε − 1``, which is largest near
    ``m = k_j/r``.
    """
    pair_count = size // 2
    inverse_exp = _inverse_exp(epsilon)
    if pair_count == 0:
        return Fraction(0)
    if inverse_exp == 0:
        return Fraction(1)
    r = 1 / inverse_exp - 1
    largest_gain = Fraction(0)
    floor_m = math.floor(size / r)
    for m in (floor_m, floor_m + 1):
        m = min(max(m, 1), pair_count)
        largest_gain = max(largest_gain, m * r**2 / (size + m * r) ** 2)
    return largest_gain
