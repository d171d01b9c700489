"""Singer's difference sets: the hyperplanes of a projective space, as one set D of integers mod K.

Let q be a prime power and α a primitive element of the field with q^d elements. Then α^0 … α^(K−1)
are the points of a projective space, with ``K = (q^d − 1)/(q − 1)``. The points on one hyperplane,

    D = {i < K : Tr(α^i) = 0},      where Tr is the trace to the field with q elements,

form a *difference set*: every nonzero number mod K is a difference of two members of D in exactly λ
ways. So the K translates of D form a cyclic design with K points and K outputs, and its transforms
are Fourier transforms.

For q = p^a, all arithmetic is done mod p. For every linear form L over the field with p elements,
``s_i = L(α^i)`` satisfies the recurrence of α's minimal polynomial, which has degree n = a·d. The
trace of α^i to the field with q elements vanishes if and only if L vanishes on
``α^i, α^(i+K), …, α^(i+(a−1)K)``, because α^K generates that field.

Reference: Singer (1938); Feldman, Nelson, Nguyen, Talwar (2022) for their use as a response.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ExamFailed, InvalidContext
from sfumato.foundation.arrays import Floats

__all__ = ["MAX_POINTS", "SingerDesign", "singer_designs", "singer_set"]

MAX_POINTS = 1 << 26
"""The maximum number of points in a design: a decoder's arrays must fit in memory."""


@dataclass(frozen=True)
class SingerDesign:
    """The hyperplanes of the projective space of dimension d − 1 over the field with q elements.

    There are K = ``points`` points and K outputs. Every point favours ``raised`` outputs, and any
    two points share ``shared`` of them.

    >>> fano = SingerDesign(q=2, dimension=3)
    >>> fano.points, fano.raised, fano.shared
    (7, 3, 1)
    """

    q: int
    dimension: int

    def __post_init__(self) -> None:
        # Check the sizes first: they bound the cost of all later checks.
        is_in_range = self.q >= 2 and 3 <= self.dimension <= MAX_POINTS.bit_length()
        is_small = is_in_range and self.q**2 < MAX_POINTS and self.points <= MAX_POINTS
        if not is_small or not _is_prime_power(self.q):
            raise InvalidContext(
                "a Singer design needs a prime power q, a dimension of at least 3, and at most "
                f"{MAX_POINTS} points; got q = {self.q}, dimension {self.dimension}. "
                "Use singer_designs to list the valid designs."
            )

    @property
    def points(self) -> int:
        """``K = (q^d − 1)/(q − 1)``."""
        return _point_count(self.q, self.dimension)

    @property
    def raised(self) -> int:
        """``|D| = (q^(d−1) − 1)/(q − 1)``: the number of points on a hyperplane."""
        return _point_count(self.q, self.dimension - 1)

    @property
    def shared(self) -> int:
        """``λ = (q^(d−2) − 1)/(q − 1)``: the number of points that two hyperplanes share."""
        return _point_count(self.q, self.dimension - 2)


def singer_designs(points: int, max_points: int) -> list[SingerDesign]:
    """Return, for every prime power q, the smallest design with at least ``points`` points.

    The designs are in ascending order of size, up to ``max_points`` points. A larger dimension for
    the same q would waste points, so it is omitted.

    >>> [(design.q, design.dimension, design.points) for design in singer_designs(10, 40)]
    [(3, 3, 13), (2, 4, 15), (4, 3, 21), (5, 3, 31)]
    """
    largest_size = max(min(max_points, MAX_POINTS), 0)
    designs = []
    for q in range(2, isqrt(largest_size) + 1):
        d = 3
        while _point_count(q, d) < points:
            d += 1
        if _point_count(q, d) <= largest_size and _is_prime_power(q):
            designs.append(SingerDesign(q, d))
    return sorted(designs, key=lambda design: (design.points, design.q))


@lru_cache(maxsize=64)
def singer_set(design: SingerDesign) -> NDArray[np.int64]:
    """Return the difference set D of a design, in ascending order, as a read-only array.

    The set is deterministic: α is a root of the first primitive polynomial, and the recurrence
    starts with ``s = 0, …, 0, 1``. The set is a translate of the D in the module docstring. All its
    differences are counted to verify it.

    >>> singer_set(SingerDesign(q=2, dimension=3)).tolist()
    [0, 1, 3]
    """
    p, a = _prime_power(design.q)
    K = design.points
    n = a * design.dimension
    s = _recurrence_terms(_find_primitive_polynomial(design.q, design.dimension), p, n, a * K)
    D = np.flatnonzero((s.reshape(a, K) == 0).all(axis=0))
    require_difference_set(D, design)
    D.flags.writeable = False
    return D


def require_difference_set(D: NDArray[np.int64], design: SingerDesign) -> None:
    """Raise ``ExamFailed`` unless D is a difference set with the λ of the design.

    Every count of equal differences is an integer. A Fourier transform of K ≤ 2^26 numbers computes
    the counts with an error far below 1/8, so a result within 1/8 of λ means that the count is
    exactly λ.
    """
    K = design.points
    # A power of two long enough for all differences; transforms of prime length are much slower.
    length = 1 << (2 * K - 1).bit_length()
    indicator: Floats = np.zeros(length)
    indicator[D] = 1.0
    correlations = np.fft.irfft(np.abs(np.fft.rfft(indicator)) ** 2, length)
    # i − i2 equals d mod K if and only if it equals d or d − K.
    counts = correlations[1:K] + correlations[K - 1 : 0 : -1]
    if len(D) != design.raised or not (np.abs(counts - design.shared) < 0.125).all():
        raise ExamFailed(
            "difference_set",
            f"{len(D)} numbers mod {K} are not a difference set with λ = {design.shared}. "
            "Please report this.",
        )


def _point_count(q: int, dimension: int) -> int:
    """Return ``(q^dimension − 1)/(q − 1)``, the number of points in a projective space."""
    return (q**dimension - 1) // (q - 1)


# Polynomials mod p are lists of n coefficients, lowest degree first. Products are reduced mod a
# monic f of degree n, represented by its n coefficients below the leading one.


def _find_primitive_polynomial(q: int, dimension: int) -> list[int]:
    """Return the first f, ordered by ``f(p) − p^n``, such that x is primitive mod f."""
    p, a = _prime_power(q)
    n = a * dimension
    # q^d − 1 = (q − 1)·K, so only two small numbers are factored.
    primes = sorted({*_prime_factors(q - 1), *_prime_factors(_point_count(q, dimension))})
    roots = _primitive_roots(p)
    for number in count(1):
        f = _digits(number, p, n)
        # The norm of a primitive element, (−1)^n f(0), is a primitive root mod p: a cheap test.
        if (-1) ** n * f[0] % p in roots and _is_primitive(f, p, q**dimension - 1, primes):
            return f
    raise AssertionError  # unreachable: primitive polynomials of every degree exist


def _primitive_roots(p: int) -> set[int]:
    """Return the primitive roots modulo a prime."""
    factors = list(_prime_factors(p - 1))
    roots = set()
    for g in range(1, p):
        if all(pow(g, (p - 1) // r, p) != 1 for r in factors):
            roots.add(g)
    return roots


def _is_primitive(f: list[int], p: int, order: int, primes: list[int]) -> bool:
    """Return whether x mod f has multiplicative order ``order``, which is p^n − 1.

    ``primes`` contains the prime factors of ``order``. If the result is true, the powers of x are
    all the nonzero elements, so f is irreducible too.
    """
    one = [1] + [0] * (len(f) - 1)
    if _power_of_x(order, f, p) != one:
        return False
    return all(_power_of_x(order // r, f, p) != one for r in primes)


def _power_of_x(exponent: int, f: list[int], p: int) -> list[int]:
    """Return ``x^exponent mod f``: square for every bit, and multiply by x if the bit is set."""
    power = [1] + [0] * (len(f) - 1)
    for bit in bin(exponent)[2:]:
        power = _product(power, power, f, p)
        if bit == "1":
            power = _times_x(power, f, p)
    return power


def _product(a: list[int], b: list[int], f: list[int], p: int) -> list[int]:
    """Return ``a·b mod f``, by Horner's rule."""
    product = [0] * len(f)
    for coefficient in reversed(a):
        product = _times_x(product, f, p)
        if coefficient:
            product = [(c + coefficient * d) % p for c, d in zip(product, b, strict=True)]
    return product


def _times_x(a: list[int], f: list[int], p: int) -> list[int]:
    """Return ``x·a mod f``: replace x^n by the lower terms of −f."""
    leading_coefficient = a[-1]
    return [(c - leading_coefficient * d) % p for c, d in zip([0, *a[:-1]], f, strict=True)]


def _recurrence_terms(f: list[int], p: int, n: int, length: int) -> NDArray[np.int64]:
    """Return ``s_0 … s_(length−1)``, where ``s_i`` is the coefficient of x^(n−1) in ``x^i mod f``.

    Extend s by doubling: ``x^m = Σ_l c_l x^l mod f`` gives ``s_(m+i) = Σ_l c_l s_(i+l)`` for all i.
    """
    s = np.zeros(n, dtype=np.int64)
    s[-1] = 1
    while len(s) < length:
        m = len(s)
        extra_length = min(m - n + 1, length - m)
        extension = np.zeros(extra_length, dtype=np.int64)
        for shift, c in enumerate(_power_of_x(m, f, p)):
            extension += c * s[shift : shift + extra_length]
        s = np.concatenate([s, extension % p])
    return s[:length]


def _digits(number: int, p: int, n: int) -> list[int]:
    """Return the n lowest base-p digits of a number, lowest first."""
    return [number // p**i % p for i in range(n)]


def _prime_factors(number: int) -> Iterator[int]:
    """Yield the distinct prime factors of a number, found by trial division."""
    r = 2
    while r * r <= number:
        if number % r == 0:
            yield r
            while number % r == 0:
                number //= r
        r += 1
    if number > 1:
        yield number


def _is_prime_power(q: int) -> bool:
    p, a = _prime_power(q)
    return p**a == q


def _prime_power(q: int) -> tuple[int, int]:
    """Return p and a with ``q = p^a``.

    If q is not a prime power, p is its smallest prime factor and p^a the first power of p above q.
    """
    p = next(_prime_factors(q))
    a = 1
    while p**a < q:
        a += 1
    return p, a
