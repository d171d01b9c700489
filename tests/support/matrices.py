"""Privacy matrices for tests, and slow, obvious versions of what the designer computes."""

from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np

from sfumato.contexts import Cone, PrivacyMatrix
from sfumato.designer.search.rays import CrossSection


def asymmetric(k, seed, low=0.3, high=3.0):
    """Return a matrix with uniform random entries, not closed."""
    E = np.random.default_rng(seed).uniform(low, high, (k, k))
    return np.where(np.eye(k), 0.0, E)


def planar(k, seed, epsilon):
    """Return distances between random points of a square, scaled to a median of ε."""
    points = np.random.default_rng(seed).random((k, 2))
    D = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    return np.where(np.eye(k), 0.0, D / np.median(D[D > 0]) * epsilon)


def line(k, epsilon):
    """Return distances on a line, ε from each symbol to the next."""
    return epsilon * np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)


def equal(k, epsilon):
    """Return a matrix with the same ε for every pair."""
    return np.where(np.eye(k), 0.0, epsilon)


def mixed(k, seed, low=0.01, high=20.0):
    """Return a matrix of random entries with uniform logarithms."""
    E = np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), (k, k)))
    return np.where(np.eye(k), 0.0, E)


def without(E, is_open):
    """Return E with no promise where `is_open` is true."""
    return np.where(np.eye(len(E)), 0.0, np.where(is_open, inf, E))


def free_rows(k, seed, count):
    """Return a matrix in which the first `count` symbols promise nothing."""
    return without(asymmetric(k, seed), np.arange(k)[:, None] < count)


def one_way(k, seed):
    """Return a matrix in which symbols promise something only against later ones."""
    return without(asymmetric(k, seed), np.tri(k, k=-1, dtype=bool))


def chain(k, seed):
    """Return a matrix with a promise from each symbol to the next only."""
    return without(asymmetric(k, seed), ~np.eye(k, k=1, dtype=bool))


def star(k, seed):
    """Return a matrix with promises only against the first symbol."""
    return without(asymmetric(k, seed), np.arange(k)[None, :] > np.zeros((k, 1)))


def closed(E):
    """Return the matrix of shortest paths, in floats."""
    E = E.copy()
    for z in range(len(E)):
        E = np.minimum(E, E[:, z, None] + E[None, z, :])
    return E


def naive_closure(rows: list[list[Fraction | float]]) -> list[list[Fraction | float]]:
    """Return the closure in fractions: relax every pair by every detour and make zeros mutual."""
    E = [list(row) for row in rows]
    symbols = range(len(rows))
    while True:
        before = [list(row) for row in E]
        for x in symbols:
            for x2 in symbols:
                E[x][x2] = min(E[x][x2], *(E[x][z] + E[z][x2] for z in symbols))
                if E[x2][x] == 0:
                    E[x][x2] = Fraction(0)
        if before == E:
            return E


def cross_section(E, population=None):
    """Return the members of the cone of E, normalised by a population (uniform by default)."""
    k = len(E)
    cone = Cone.from_context(PrivacyMatrix(E))
    return CrossSection(cone, np.full(k, 1 / k) if population is None else population)


def naive_rays(E):
    """Return all extreme rays of the cone of a closed matrix, as logarithms with largest entry 0.

    For every support, solve every tree of equalities in fractions, and keep the solutions that
    satisfy all inequalities.
    """
    k = len(E)
    exact = [[Fraction(e) if np.isfinite(e) else None for e in row] for row in E.tolist()]
    rays = set()
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            if all(x2 in support for x in support for x2 in range(k) if exact[x][x2] is not None):
                rays |= _vertices(exact, support)
    return np.array(
        [[-inf if h is None else float(h) for h in ray] for ray in sorted(rays, key=str)]
    )


def _vertices(E, support):
    pairs = [(x, x2) for x in support for x2 in support if x != x2 and E[x][x2] is not None]
    vertices = set()
    for tree in combinations(pairs, len(support) - 1):
        h = _solve(E, tree, support[0])
        if len(h) == len(support) and all(h[x] - h[x2] <= E[x][x2] for x, x2 in pairs):
            top = max(h.values())
            vertices.add(tuple(h[x] - top if x in h else None for x in range(len(E))))
    return vertices


def _solve(E, tree, root):
    """Solve ``h_x − h_x2 = E[x, x2]`` along the tree, as far as it reaches from the root."""
    h = {root: Fraction(0)}
    for _ in tree:
        for x, x2 in tree:
            if x in h and x2 not in h:
                h[x2] = h[x] - E[x][x2]
            elif x2 in h and x not in h:
                h[x] = h[x2] + E[x][x2]
    return h


def halves(cone, members):
    """Return columns ``c s`` and ``1 − c s`` for each member s of a cone.

    The c of each member is the largest that keeps both in the cone. Any mixture of such pairs is a
    channel.
    """
    pairs = []
    for s in members:
        c = min(
            (1 - q) / (s[x2] - q * s[x])
            for x, row in enumerate(cone.shrink_factors)
            for x2, q in enumerate(row)
            if x != x2 and s[x2] > q * s[x]
        )
        pairs += [c * s, 1 - c * s]
    return np.array(pairs)


def value_of(columns, population, weights):
    """Return ``tr(W M⁻¹)`` of the channel with these columns, by its definition."""
    M = sum(np.outer(c, c) / (c @ population) for c in columns)
    return float(weights @ np.linalg.inv(M).diagonal())
