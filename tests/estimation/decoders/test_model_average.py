"""Averages of models: weights are belief × evidence, and gains count."""

from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.estimation.decoders.cell_shares import Decoded
from sfumato.estimation.decoders.model_average import average_models


@dataclass(frozen=True)
class _Planted:
    """A model with a known weight and estimate."""

    title: str
    log_weight: float
    theta: np.ndarray
    gain: float = 0.0

    def decode(self):
        return Decoded(self.theta, self.gain)


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
    average = average_models(list(models))
    return average.theta, dict(average.weight_of)


def test_weights_are_belief_times_evidence():
    theta, weight_of = _average(
        _Planted("a", np.log(0.3) - 5_000.0, FIRST), _Planted("b", np.log(0.1) - 5_000.0, SECOND)
    )
    assert weight_of == pytest.approx({"a": 0.75, "b": 0.25})
    assert theta == pytest.approx(0.75 * FIRST + 0.25 * SECOND)


def test_gains_are_added_to_the_evidence():
    gain = np.log(9)
    _, weight_of = _average(_Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND, gain))
    assert weight_of == pytest.approx({"a": 0.1, "b": 0.9})


def test_losses_do_not_count():
    _, weight_of = _average(_Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND, -50.0))
    assert weight_of == pytest.approx({"a": 0.5, "b": 0.5})


def test_models_with_one_title_are_shown_together():
    theta, weight_of = _average(
        _Planted("a", 0.0, FIRST), _Planted("b", 0.0, SECOND), _Planted("a", 0.0, SECOND)
    )
    assert weight_of == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    assert theta == pytest.approx(FIRST / 3 + 2 * SECOND / 3)


def test_models_far_below_are_not_decoded():
    theta, weight_of = _average(_Planted("a", -700.0, FIRST), _Undecodable(-710.0))
    assert weight_of == {"a": pytest.approx(1)}
    assert theta.tolist() == FIRST.tolist()


def test_small_weights_are_left_out_after_gains():
    """A model with 0.4 % is decoded, because it may gain; without a gain it is left out."""
    small = np.log(0.004)
    theta, weight_of = _average(_Planted("a", 0.0, FIRST), _Planted("b", small, SECOND))
    assert weight_of == {"a": pytest.approx(1)}
    assert theta.tolist() == FIRST.tolist()
    _, weight_of = _average(_Planted("a", 0.0, FIRST), _Planted("b", small, SECOND, np.log(250)))
    assert weight_of == pytest.approx({"a": 0.5, "b": 0.5})


def test_single_model_is_returned():
    theta, weight_of = _average(_Planted("a", -1e9, FIRST))
    assert theta.tolist() == FIRST.tolist()
    assert weight_of == {"a": 1.0}
