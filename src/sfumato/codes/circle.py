"""Transforms on a circle of K points, which turn convolutions into products.

For most circles it is the Fourier transform of real numbers. On a large circle of ``K = a·b``
points, a and b without a common factor, point i is the point ``(i mod a, i mod b)`` of a torus, and
turning the circle turns the torus both ways. So the two-dimensional transform also turns
convolutions into products, in pieces that fit the cache: twice as fast at 2^24 points. Reference:
Good (1958), Thomas (1963).

In either case, entry 0 of a transform is the sum of the values.
"""

from functools import lru_cache
from math import gcd, isqrt

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Floats

__all__ = ["circle_transform", "from_circle_transform"]

Spectrum = NDArray[np.complex128]

_LARGE = 1 << 20  # points from which two passes over the torus beat one around the circle


def circle_transform(values: Floats) -> Spectrum:
    """Return the transform of values along the last axis."""
    K = values.shape[-1]
    a, b = _torus(K)
    if a == 1:
        return np.fft.rfft(values)
    on_torus = np.empty(values.shape)
    on_torus[..., _places(a, b)] = values
    transform = np.fft.rfft2(on_torus.reshape(*values.shape[:-1], a, b))
    return transform.reshape(*values.shape[:-1], -1)


def from_circle_transform(transform: Spectrum, K: int) -> Floats:
    """Return the values along the last axis that have this transform.

    >>> values = np.array([3.0, 1, 4, 1, 5])
    >>> from_circle_transform(circle_transform(values), 5).round(9)
    array([3., 1., 4., 1., 5.])
    """
    a, b = _torus(K)
    if a == 1:
        return np.fft.irfft(transform, K)
    on_torus = np.fft.irfft2(transform.reshape(*transform.shape[:-1], a, -1), (a, b))
    return on_torus.reshape(*transform.shape[:-1], K).take(_places(a, b), axis=-1)


@lru_cache(maxsize=64)
def _torus(K: int) -> tuple[int, int]:
    """Return the sides of the torus, the shorter first and as equal as possible.

    They are 1 and K if the circle is as good.
    """
    if K >= _LARGE:
        for a in range(isqrt(K), isqrt(K) // 16, -1):
            if K % a == 0 and gcd(a, K // a) == 1:
                return a, K // a
    return 1, K


@lru_cache(maxsize=2)
def _places(a: int, b: int) -> NDArray[np.intp]:
    """Return where each point of the circle is on the torus, row after row."""
    i = np.arange(a * b)
    places = i % a
    places *= b
    places += i % b
    places.flags.writeable = False
    return places
