"""Averages of models: weights are belief × evidence, and gains count."""

from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.estimation.decoders.cell_shares import ModelResult
from sfumato.estimation.decoders.model_average import average_models


@dataclass(frozen=True)
class _Certain:
    """A posterior without doubt."""

    theta: np.ndarray

    def quantiles(self, levels):
        return np.broadcast_to(self.theta, levels.shape)


@dataclass(frozen=True)
class _Planted:
    """A model with a known weight and posterior."""

    title: str
    log_weight: float
    theta: np.ndarray
    gain: float = 0.0
    unordered_part: float = 0.0

    def decode(self):
        return ModelResult(_Certain(self.theta), self.gain, self.unordered_part)


class _Undecodable:
    """A model that must not be decoded: its weight is too small to matter."""

    title = "undecodable"

    def __init__(self, log_weight):
        self.log_weight = log_weight

    def decode(self):
        raise AssertionError("decoded a model without weight")


FIRST = np.array([2.0, 0.0, 1.0])
SECOND = np.array([0.0, 2.0, 1.0])


def _average(*models):
    return average_models(list(models), 3)


def _weights(*models):
    return dict(_average(*models).weight_of)


def test_weights_are_belief_times_evidence():
    average = _average(
        _Planted("a", np.log(0.3) - 5_000.0, FIRST), _Planted("b", np.log(0.1) - 5_000.0, SECOND)
    )
    assert average.weight_of == pytest.approx({"a": 0.75, "b": 0.25})
    # The smaller intensity is that of "a" in the second cell, and that of "b" in the first.
    low = average.posterior.quantiles(np.full(3, 0.2))
    middle = average.posterior.quantiles(np.full(3, 0.5))
    high = average.posterior.quantiles(np.full(3, 0.8))
    assert low == pytest.approx([0, 0, 1])
    assert middle == pytest.approx([2, 0, 1])
    assert high == pytest.approx([2, 2, 1])


def test_gains_are_added_to_the_evidence():
    weight_of = _weights(_Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND, np.log(9)))
    assert weight_of == pytest.approx({"a": 0.1, "b": 0.9})


def test_losses_do_not_count():
    weight_of = _weights(_Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND, -50.0))
    assert weight_of == pytest.approx({"a": 0.5, "b": 0.5})


def test_models_with_one_title_are_shown_together():
    weight_of = _weights(
        _Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND), _Planted("a", 0.0, SECOND)
    )
    assert weight_of == pytest.approx({"a": 2 / 3, "b": 1 / 3})


def test_neighbours_without_order_are_called_so():
    weight_of = _weights(
        _Planted("neighbours", 0.0, FIRST, unordered_part=0.3),
        _Planted("smooth curve with peaks", 0.0, SECOND, unordered_part=0.3),
    )
    expected = {"neighbours": 0.35, "no order": 0.15, "smooth curve with peaks": 0.5}
    assert weight_of == pytest.approx(expected)


def test_models_far_below_are_not_decoded():
    average = _average(_Planted("a", -700.0, FIRST), _Undecodable(-710.0))
    assert average.weight_of == {"a": pytest.approx(1)}
    assert average.posterior.quantiles(np.full(3, 0.5)).tolist() == FIRST.tolist()


def test_small_weights_are_left_out_after_gains():
    """A model with 0.4 % is decoded, because it may gain; without a gain it is left out."""
    small = np.log(0.004)
    weight_of = _weights(_Planted("a", 0.0, FIRST), _Planted("b", small, SECOND))
    assert weight_of == {"a": pytest.approx(1)}
    gain = np.log(250)
    weight_of = _weights(_Planted("a", 0.0, FIRST), _Planted("b", small, SECOND, gain))
    assert weight_of == pytest.approx({"a": 0.5, "b": 0.5})


def test_single_model_keeps_its_posterior():
    average = _average(_Planted("a", -1e9, FIRST))
    assert average.posterior == _Certain(FIRST)
    assert average.weight_of == {"a": 1.0}
