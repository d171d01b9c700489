"""Privacy matrices that tests of the designer share, and slow, obvious twins of what is done with them."""

from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np

from sfumato.contexts import Cone, PrivacyMatrix
from sfumato.designer.search.rays import CrossSection


def asymmetric(k, seed, low=0.3, high=3.0):
    """Entries drawn evenly between two numbers; not closed."""
    E = np.random.default_rng(seed).uniform(low, high, (k, k))
    return np.where(np.eye(k), 0.0, E)


def planar(k, seed, epsilon):
    """Distances of random points of a square, ε in the median."""
    at = np.random.default_rng(seed).random((k, 2))
    D = np.sqrt(((at[:, None] - at[None]) ** 2).sum(-1))
    return np.where(np.eye(k), 0.0, D / np.median(D[D > 0]) * epsilon)


def line(k, epsilon):
    """Distances on a line, ε from each symbol to the next."""
    return epsilon * np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)


def equal(k, epsilon):
    """One ε between all."""
    return np.where(np.eye(k), 0.0, epsilon)


def mixed(k, seed, low=0.01, high=20.0):
    """Entries whose logarithms are drawn evenly."""
    E = np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), (k, k)))
    return np.where(np.eye(k), 0.0, E)


def without(E, nothing):
    """E with nothing promised where ``nothing`` is true."""
    return np.where(np.eye(len(E)), 0.0, np.where(nothing, inf, E))


def free_rows(k, seed, count):
    """The first symbols owe nothing to anybody."""
    return without(asymmetric(k, seed), np.arange(k)[:, None] < count)


def one_way(k, seed):
    """Symbols owe to later ones alone."""
    return without(asymmetric(k, seed), np.tri(k, k=-1, dtype=bool))


def chain(k, seed):
    """Each symbol owes to the next alone, and through it to all later ones."""
    return without(asymmetric(k, seed), ~np.eye(k, k=1, dtype=bool))


def star(k, seed):
    """All owe to the first symbol, and nobody else to anybody."""
    return without(asymmetric(k, seed), np.arange(k)[None, :] > np.zeros((k, 1)))


def closed(E):
    """Shortest paths, in floats."""
    E = E.copy()
    for z in range(len(E)):
        E = np.minimum(E, E[:, z, None] + E[None, z, :])
    return E


def naive_closure(rows: list[list[Fraction | float]]) -> list[list[Fraction | float]]:
    """Relax every pair by every detour and make zeros mutual, in fractions, until nothing changes."""
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


def cross_section(E, crowd=None):
    """The members of the cone of E, normalised by a crowd that is spread evenly by default."""
    k = len(E)
    cone = Cone.of(PrivacyMatrix(E))
    return CrossSection(cone, np.full(k, 1 / k) if crowd is None else crowd)


def naive_rays(E):
    """All extreme rays of the cone of a closed matrix, as logarithms with largest entry 0.

    For every support, every tree of equalities is solved in fractions and kept if it keeps all inequalities.
    """
    k = len(E)
    exact = [[Fraction(e) if np.isfinite(e) else None for e in row] for row in E.tolist()]
    found = set()
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            if all(x2 in support for x in support for x2 in range(k) if exact[x][x2] is not None):
                found |= _vertices(exact, support)
    return np.array(
        [[-inf if h is None else float(h) for h in ray] for ray in sorted(found, key=str)]
    )


def _vertices(E, support):
    pairs = [(x, x2) for x in support for x2 in support if x != x2 and E[x][x2] is not None]
    found = set()
    for tree in combinations(pairs, len(support) - 1):
        h = _solved(E, tree, support[0])
        if len(h) == len(support) and all(h[x] - h[x2] <= E[x][x2] for x, x2 in pairs):
            top = max(h.values())
            found.add(tuple(h[x] - top if x in h else None for x in range(len(E))))
    return found


def _solved(E, tree, root):
    """``h_x − h_x2 = E[x, x2]`` along the tree, as far as it reaches from the root."""
    h = {root: Fraction(0)}
    for _ in tree:
        for x, x2 in tree:
            if x in h and x2 not in h:
                h[x2] = h[x] - E[x][x2]
            elif x2 in h and x not in h:
                h[x] = h[x2] + E[x][x2]
    return h


def halves(cone, members):
    """Columns ``c s`` and ``1 − c s`` for each member s of a cone, with the largest c that keeps both in the cone.

    Any mixture of such pairs is a channel.
    """
    pairs = []
    for s in members:
        c = min(
            (1 - q) / (s[x2] - q * s[x])
            for x, row in enumerate(cone.shrink)
            for x2, q in enumerate(row)
            if x != x2 and s[x2] > q * s[x]
        )
        pairs += [c * s, 1 - c * s]
    return np.array(pairs)


def value_of(columns, crowd, weights):
    """``tr(W M⁻¹)`` of the channel with these columns, by its definition."""
    M = sum(np.outer(c, c) / (c @ crowd) for c in columns)
    return float(weights @ np.linalg.inv(M).diagonal())
