"""One line says which models carried an estimate, and its percentages add up to 100."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import sfumato as sf
from sfumato.estimation.decoders import DecoderResult
from sfumato.estimation.model_summary import decoder_with_models, summarize_models
from sfumato.foundation.decoder_table import DECODER_TABLE

MECHANISM = sf.mechanism_for(sf.Uniform(["a", "b", "c"], 1))
TALLY = MECHANISM.tally([0, 0, 1, 2] * 100)


def summarize(*weights, titles="pqrstuvw"):
    return summarize_models("auto", {"models": dict(zip(titles, weights, strict=False))})


def percentages(text):
    return [int(number) for number in re.findall(r"(\d+)%", text)]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((0.1, 0.9), "90% q, 10% p"),
        ((1.0,), "p"),
        ((0.998, 0.002), "p"),
        ((1 / 3, 1 / 3, 1 / 3), "34% p, 33% q, 33% r"),
        ((0.006, 0.994), "99% q, 1% p"),
        ((0.4, 0.3, 0.2, 0.1), "40% p, 30% q, 20% r, 10% others"),
        ((0.05, 0.5, 0.05, 0.2, 0.2), "50% q, 20% s, 20% t, 10% others"),
        ((0.999, 0.0, 0.001), "p"),
        ((0.451, 0.45), "50% p, 50% q"),  # rounded weights need not add up to 1
    ],
)
def test_models_are_named_by_weight(weights, expected):
    assert summarize(*weights) == expected


def test_percentages_add_up_to_100():
    """Plain rounding of 12.5%, 12.5% and 75% gives 99 or 101."""
    random = np.random.default_rng(1)
    for count in (2, 3, 4, 8):
        for weights in random.dirichlet(np.ones(count), 200).round(3):
            found = percentages(summarize(*weights))
            assert sum(found) == 100 or found == []
            assert len(found) <= 4
    assert sum(percentages(summarize(0.125, 0.125, 0.75))) == 100


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"chosen": "empirical-bayes", "share": 1.0, "strata": 1}, "empirical Bayes"),
        ({"chosen": "empirical-bayes", "share": 0.93}, "93% empirical Bayes, 7% projection"),
        ({"chosen": "empirical-bayes", "share": 0.0}, "projection"),
        ({"chosen": "projection"}, "projection"),
    ],
)
def test_mixtures_with_projection_are_named_by_share(details, expected):
    assert summarize_models("auto", details) == expected


def test_other_decoders_go_by_their_title():
    for name, entry in DECODER_TABLE.items():
        if name != "auto":
            result = sf.estimate(MECHANISM, TALLY, decoder=name)
            assert result.model_summary == entry.title
            assert decoder_with_models(name, result.model_summary) == name


@dataclass(frozen=True)
class Averaging:
    """A decoder outside the package that averages models."""

    details: dict
    name: str = "mine"

    def decode(self, mechanism, tally):
        return DecoderResult(np.full(mechanism.inputs, 1 / mechanism.inputs), self.details)


def test_decoders_outside_the_package_go_by_their_name_or_models():
    plain = sf.estimate(MECHANISM, TALLY, decoder=Averaging({}))
    assert plain.model_summary == "mine"
    assert "frequency: mine;" in repr(plain)
    averaged = sf.estimate(MECHANISM, TALLY, decoder=Averaging({"models": {"<b>": 0.8, "\n": 0.2}}))
    assert averaged.model_summary == "80% <b>, 20% \n"
    header = repr(averaged).splitlines()[0]
    assert r"frequency: mine (80% <b>, 20% \n);" in header
    assert "<b>," not in averaged._repr_html_()


def test_domains_in_an_order_name_the_models_of_the_average():
    survey = sf.Survey("ages", sf.Uniform(sf.IntegerDomain(40), 1))
    answers = np.random.default_rng(1).binomial(39, 0.5, 4000)
    result = sf.estimate(survey, sf.simulation.reports(survey, answers, seed=1))
    weight_of = result.details["models"]
    first = max(weight_of, key=weight_of.get)
    assert first in result.model_summary.split(",")[0]
    assert sum(percentages(result.model_summary)) in (0, 100)
    assert f"frequency: auto ({result.model_summary});" in repr(result)
    assert f"decoded estimate (auto ({result.model_summary}))" in result._repr_html_()
