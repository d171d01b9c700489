"""Find the best known code for a number of points and an ε.

Its risk is usually within a few percent of the minimum. At uniform p, any ε-private response with
an unbiased estimate has a risk of at least (Ye and Barg, 2018)

    LB(k, ε) = min_w R(k, w, e),   R(k, w, e) = (k−1)²(we + k − w)²/(k(e−1)²w(k−w))

where e stands for e^ε. If the best w is 1, randomized response attains the bound. Otherwise there
are two kinds of candidates. Singer's difference sets exist only for some sizes and may leave points
unused. Base blocks found by search use every point and are nearly flat (see ``flatness``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, isfinite

import numpy as np

from sfumato.codes.code import Code, CodeFamily
from sfumato.codes.cyclic import CyclicDesign
from sfumato.codes.search import best_sizes, block_counts, flatness, search_blocks, ye_barg_risk
from sfumato.codes.singer import SingerDesign, singer_designs, singer_set
from sfumato.codes.singleton import RandomizedCode
from sfumato.errors import NothingToLearn
from sfumato.foundation.notebook import facts_html
from sfumato.randomness import Epsilon

__all__ = [
    "BestCode",
    "Candidate",
    "best_candidate",
    "cyclic_risk",
    "search_designs",
    "singer_risk",
]

EXTRA_BITS = 3
"""How many bits a report may have in addition to the ⌈log2(k+1)⌉ bits of a Hadamard report."""

_GOOD_RATIO = 1.01  # the search stops when the risk is at most this multiple of the bound
_FAST_SEARCH_POINTS = 1000  # up to this many, search unless a Singer design has a _GOOD_RATIO
_GOOD_SINGER_RATIO = 1.03  # with more points, search only above this ratio
_MAX_SEARCH_POINTS = 1 << 14  # with more points, never search
_SINGER_DESIGN_COUNT = 2  # designs with the smallest cyclic_risk, whose exact risk is computed


@dataclass(frozen=True)
class BestCode:
    """The family of the best known codes within a limit on the length of reports.

    A report is at most ``extra_bits`` bits longer than a Hadamard report.

    >>> code = BestCode()(20, Fraction(1))
    >>> code.kind, code.outputs
    ('cyclic', 21)
    """

    extra_bits: int = EXTRA_BITS

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """Return the best code for at least ``points`` points."""
        if points == 1 or not isinstance(epsilon, Fraction):
            return RandomizedCode(points, epsilon, word_bits)
        candidate = best_candidate(points, epsilon, max_outputs(points, self.extra_bits))
        return candidate.family(points, epsilon, word_bits)

    def _repr_html_(self) -> str:
        """Return the limit of the family as HTML, for notebooks."""
        return facts_html("BestCode", {"extra bits": str(self.extra_bits)})


@dataclass(frozen=True)
class Candidate:
    """A family of codes, and the ratio of its exact risk at uniform p to the lower bound.

    ``outputs`` is the number of outputs of its codes.
    """

    family: CodeFamily
    ratio: float
    outputs: int


def max_outputs(points: int, extra_bits: int) -> int:
    """Return how many distinct reports fit in ``⌈log2(points + 1)⌉ + extra_bits`` bits."""
    return 1 << (points.bit_length() + extra_bits)


@lru_cache(maxsize=1024)
def best_candidate(points: int, epsilon: Fraction, output_limit: int) -> Candidate:
    """Return the best candidate found, with at most ``output_limit`` outputs.

    Among equally good candidates, the one with the fewest outputs wins.

    >>> best_candidate(4, Fraction(3), 32).family
    <class 'sfumato.codes.singleton.RandomizedCode'>
    """
    k = points
    e = exp(epsilon)
    if e == 1:
        raise NothingToLearn(
            f"ε = {float(epsilon):g} is too close to 0 for floating point. Use a larger ε."
        )
    sizes = best_sizes(k, float(epsilon))
    bound = ye_barg_risk(k, sizes[0], float(epsilon))
    best = Candidate(RandomizedCode, ye_barg_risk(k, 1, float(epsilon)) / bound, k)
    if sizes[0] == 1:
        return best
    best = min([best, *_singer_candidates(k, e, output_limit, bound)], key=_rank)
    good_ratio = _GOOD_RATIO if k <= _FAST_SEARCH_POINTS else _GOOD_SINGER_RATIO
    if best.ratio <= good_ratio or k > _MAX_SEARCH_POINTS:
        return best
    for candidate in _search_candidates(k, float(epsilon), sizes, output_limit, bound):
        best = min(best, candidate, key=_rank)
        if best.ratio <= _GOOD_RATIO:
            break
    return best


def _rank(candidate: Candidate) -> tuple[float, int]:
    # Round, so floating-point noise never decides between equally good codes.
    return round(candidate.ratio, 9), candidate.outputs


def _singer_candidates(k: int, e: float, output_limit: int, bound: float) -> Iterator[Candidate]:
    def risk_without_correction(design: SingerDesign) -> float:
        return cyclic_risk(k, design.points, design.raised, design.shared, e)

    designs = sorted(singer_designs(k, output_limit), key=risk_without_correction)
    for design in designs[:_SINGER_DESIGN_COUNT]:
        family = CyclicDesign.from_base_blocks(design.points, singer_set(design))
        yield Candidate(family, singer_risk(k, design, e) / bound, design.points)


def _search_candidates(
    k: int, epsilon: float, sizes: list[int], output_limit: int, bound: float
) -> Iterator[Candidate]:
    """Yield candidates with fewer base blocks first, because they have shorter reports."""
    for design, F in search_designs(k, sizes, output_limit):
        risk = F * ye_barg_risk(k, len(design.base[0]), epsilon)
        yield Candidate(design, risk / bound, len(design.base) * k)


def search_designs(
    points: int, sizes: list[int], output_limit: int
) -> Iterator[tuple[CyclicDesign, float]]:
    """Yield designs with base blocks of these sizes, and their flatness; fewest blocks first.

    Designs with infinite flatness are omitted.
    """
    shapes = []
    for w in sizes:
        for t in block_counts(points, w, output_limit):
            if t * points <= output_limit:
                shapes.append((t, w))
    for t, w in sorted(shapes):
        base = search_blocks(points, w, t)
        F = flatness(base, points)
        if isfinite(F):
            yield CyclicDesign.from_base_blocks(points, base), F


def cyclic_risk(points: int, circle_size: int, raised: int, shared: float, e: float) -> float:
    """Return the risk at uniform p without total correction, ``k μ(1 − μ)/Δ²``.

    The code uses k = ``points`` of the K = ``circle_size`` points on the circle. For any x, μ is
    the probability that a report is in S_x, and Δ is the code's ``contrast``.
    """
    Z = raised * e + circle_size - raised
    q = (shared * e + raised - shared) / Z
    delta = (raised - shared) * (e - 1) / Z
    mu = q + delta / points
    return points * mu * (1 - mu) / delta**2


def singer_risk(points: int, design: SingerDesign, e: float) -> float:
    """Return the risk at uniform p with total correction, ``kμ(1 − μ)/Δ² − Var(w_T)/(kΔ²)``.

    w_T is the number of used points in a translate T of the design's set.
    """
    k = points
    K = design.points
    r = design.raised
    uncorrected_risk = cyclic_risk(k, K, r, design.shared, e)
    if k == K:
        return uncorrected_risk
    Z = r * e + K - r
    delta = (r - design.shared) * (e - 1) / Z
    in_set = np.zeros(K)
    in_set[singer_set(design)] = 1.0
    in_use = np.zeros(K)
    in_use[:k] = 1.0
    w = np.fft.irfft(np.fft.rfft(in_use) * np.fft.rfft(in_set).conj(), K)
    P = (1 + (e - 1) * w / k) / Z
    return uncorrected_risk - float(P @ w**2 - (P @ w) ** 2) / (k * delta**2)
