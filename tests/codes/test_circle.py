"""Transforms on circles, and on the tori that large ones are."""

import numpy as np
import pytest

from sfumato.codes import circle
from sfumato.codes.circle import circle_transform, from_circle_transform

SIZES = [1, 2, 7, 15, 36, 77, 105, 257, 1023 * 1025]


@pytest.fixture(params=[False, True], ids=["circle", "torus"])
def on_torus(request, monkeypatch):
    circle._torus.cache_clear()
    monkeypatch.setattr(circle, "_LARGE", 1 if request.param else 2**40)
    yield request.param
    circle._torus.cache_clear()


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("K", SIZES)
def test_there_and_back(on_torus, K):
    values = numbers(2, K)
    np.testing.assert_allclose(
        from_circle_transform(circle_transform(values), K), values, atol=1e-9
    )


@pytest.mark.parametrize("K", [1, 2, 7, 15, 36, 77, 105])
def test_products_are_convolutions(on_torus, K):
    f, g = numbers(3, K), numbers(K)
    slow = np.array(
        [[sum(row[y] * g[(x - y) % K] for y in range(K)) for x in range(K)] for row in f]
    )
    product = circle_transform(f) * circle_transform(g)
    np.testing.assert_allclose(from_circle_transform(product, K), slow, atol=1e-9)


@pytest.mark.parametrize("K", [1, 2, 7, 15, 36, 77, 105])
def test_conjugates_turn_the_circle_round(on_torus, K):
    g = numbers(K)
    turned = from_circle_transform(circle_transform(g).conj(), K)
    np.testing.assert_allclose(turned, g[-np.arange(K) % K], atol=1e-9)


@pytest.mark.parametrize("K", SIZES)
def test_the_first_entry_is_the_sum(on_torus, K):
    values = numbers(K)
    assert circle_transform(values)[0] == pytest.approx(values.sum(), abs=1e-6)


def test_torus_sides_are_coprime_and_small_circles_stay():
    assert circle._torus(2**24 - 1) == (4095, 4097)
    assert circle._torus(2**20 - 1) == (1, 2**20 - 1)
    assert circle._torus(2**24) == (1, 2**24)
    assert circle._torus(2**20 + 7) == (1, 2**20 + 7)  # a prime


def test_a_wrong_place_on_the_torus_would_be_noticed(monkeypatch):
    circle._torus.cache_clear()
    monkeypatch.setattr(circle, "_LARGE", 1)
    monkeypatch.setattr(circle, "_places", lambda a, b: np.arange(a * b))
    f, g = numbers(15), numbers(15)
    slow = np.array([sum(f[y] * g[(x - y) % 15] for y in range(15)) for x in range(15)])
    product = circle_transform(f) * circle_transform(g)
    assert not np.allclose(from_circle_transform(product, 15), slow)
    circle._torus.cache_clear()
