"""The polyhedron in integers contains the true one; neighbours share all equalities but one."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from sfumato.designer.search.polyhedron import Polyhedron
from support.matrices import (
    asymmetric,
    chain,
    closed,
    equal,
    free_rows,
    line,
    mixed,
    one_way,
    planar,
    star,
)

UNBOUNDED = 1 << 62
MATRICES = {
    "asymmetric": asymmetric(6, 1),
    "planar": planar(6, 2, 2.0),
    "line": line(6, 1.0),
    "equal": equal(6, 1.0),
    "mixed": mixed(6, 3, 1e-6, 20.0),
    "tiny": asymmetric(6, 4) * 1e-9,
    "large": asymmetric(6, 5) * 12,
    "a free row": free_rows(6, 6, 1),
    "one-way": one_way(6, 7),
    "chain": chain(6, 8),
    "star": star(6, 9),
    "two": asymmetric(2, 10),
}


@pytest.mark.parametrize("attempt", [0, 5])
@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_polyhedron_contains_the_true_one(E, attempt):
    """Every entry exceeds the exact one by more than the rounding of E."""
    E = closed(E)
    around = Polyhedron.enclosing(E, attempt)
    k = range(len(E))
    for x in k:
        for x2 in k:
            if x != x2 and np.isfinite(E[x, x2]):
                above = Fraction(int(around.N[x, x2])) / Fraction(around.scale) - Fraction(E[x, x2])
                assert above > Fraction(float(np.spacing(E[x, x2])))
                assert above < Fraction(max(1e-6 * E[E > 0].min(), 1e-9 * E[np.isfinite(E)].max()))
            else:
                assert around.N[x, x2] == (0 if x == x2 else UNBOUNDED)


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_polyhedron_is_closed_and_edges_are_not_implied(E):
    around = Polyhedron.enclosing(closed(E))
    N = around.N.tolist()
    k = range(len(E))
    edges = set(zip(around.tail.tolist(), around.head.tolist(), strict=True))
    for x in k:
        for x2 in k:
            detours = [N[x][z] + N[z][x2] for z in k if z not in (x, x2)]
            assert all(N[x][x2] <= min(detour, UNBOUNDED) for detour in detours)
            implied = any(detour <= N[x][x2] for detour in detours)
            assert ((x, x2) in edges) == (x != x2 and N[x][x2] < UNBOUNDED and not implied)


def _tight(around, vertex):
    """Return the edges that hold with equality."""
    N = around.N.tolist()
    h = vertex.tolist()
    edges = zip(around.tail.tolist(), around.head.tolist(), strict=True)
    return {(x, x2) for x, x2 in edges if h[x] - h[x2] == N[x][x2]}


def _keeps(around, vertex):
    h = vertex.tolist()
    return all(
        h[x] - h[x2] <= n for x, row in enumerate(around.N.tolist()) for x2, n in enumerate(row)
    )


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_nearest_vertices_are_vertices(E):
    around = Polyhedron.enclosing(closed(E))
    k = len(E)
    random = np.random.default_rng(0)
    points = random.uniform(-1, 1, (20, k))
    for _ in range(3 * k):  # lower them until they are inside
        points = np.minimum(points, (points[:, None, :] + closed(E)).min(axis=2))
    vertices = around.vertices_near(points - points[:, :1])
    assert (vertices[:, 0] == 0).all()
    for vertex in vertices:
        assert _keeps(around, vertex)
        assert len(_tight(around, vertex)) == k - 1


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_neighbours_are_vertices_that_drop_one_equality(E):
    around = Polyhedron.enclosing(closed(E))
    here = around.vertices_near(np.zeros((1, len(E))))
    for _ in range(3):
        vertices, bounded = around.neighbours(here[:1])
        assert vertices.shape == (1, len(E) - 1, len(E))
        for vertex, there in zip(vertices[0], bounded[0], strict=True):
            if there:
                assert _keeps(around, vertex)
                assert len(_tight(around, vertex) & _tight(around, here[0])) == len(E) - 2
        unbounded = np.isinf(E).any()
        assert bounded.all() or unbounded
        here = vertices[0][bounded[0]][-1:] if bounded.any() else here


def test_neighbours_reports_vertices_with_too_many_equalities():
    around = Polyhedron.enclosing(closed(planar(4, 1, 1.0)))
    inside = np.zeros((1, 4), dtype=np.int64)
    assert around.neighbours(inside) is None
    assert around.neighbours(np.vstack([around.vertices_near(np.zeros((1, 4))), inside])) is None


def test_perturbation_breaks_ties():
    """The vertices of a uniform matrix have many equalities; the perturbed ones do not."""
    around = Polyhedron.enclosing(equal(6, 1.0))
    assert around.neighbours(around.vertices_near(np.zeros((1, 6)))) is not None
    assert around.tail.size == 30


def test_logarithms_and_restrict():
    E = closed(one_way(5, 3))
    around = Polyhedron.enclosing(E)
    vertices = around.vertices_near(np.zeros((1, 5)))
    logarithms = around.logarithms(vertices)
    assert logarithms.max() == 0
    np.testing.assert_allclose(
        logarithms[0] - logarithms[0, 0], vertices[0] / around.scale, rtol=1e-15
    )
    part = around.restrict(np.array([1, 3, 4]))
    assert (around.N[np.ix_([1, 3, 4], [1, 3, 4])] == part.N).all()
    assert (around.finite_mask == (inf > E)).all()
