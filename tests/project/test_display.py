"""Every public object has a short text and an HTML view, and neither lets a label be markup."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.estimation import EstimateRow, Shares, TopSymbols, Total

LABEL = "<b>park"
CONTEXT = sf.HighLow([LABEL, "café", "clinic"], ["clinic"], 1)
BLOCKS = sf.Blocks([0, 0, 1], 1, domain=[LABEL, "café", "clinic"])
UNIFORM = sf.Uniform([LABEL, "café", "clinic"], 1)
MATRIX = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
SURVEY = sf.Survey("lunch", CONTEXT)
ESTIMATE = sf.estimate(SURVEY, sf.simulation.reports(SURVEY, [LABEL, "clinic"] * 50, seed=1))
PLAIN = sf.PlainResponse(UNIFORM)


def make_objects(folder):
    pair = sf.PrivacyMatrix([[0, 1], [2, 0]], domain=[LABEL, "clinic"])
    two_parts = sf.union([pair.with_domain(sf.Domain(["a", "b"])), UNIFORM])
    return [
        sf.audit(PLAIN, samples=3_000),
        sf.Client(SURVEY, "http://127.0.0.1:1", home=folder / "device"),
        sf.BestCode(),
        sf.CyclicDesign(7, ((0, 1, 3),)),
        sf.HadamardCode(3, Fraction(1)),
        sf.RandomizedCode(3, Fraction(1)),
        CONTEXT,
        BLOCKS,
        UNIFORM,
        UNIFORM + UNIFORM,
        two_parts,
        sf.Metric(MATRIX),
        pair,
        sf.Tiers([0, 0, 1], [1, 2], domain=[LABEL, "café", "clinic"]),
        sf.design(pair),
        sf.Domain([LABEL], other="<i>"),
        sf.GridDomain(0, 2, 0, 2, 1),
        sf.H3Domain(["8a2a1072b59ffff"]),
        sf.IntegerDomain(5, start=18),
        ESTIMATE,
        sf.BinaryResponse(pair),
        sf.BlockResponse(BLOCKS),
        sf.compose(PLAIN, PLAIN),
        sf.GroupResponse(sf.Tiers([0, 0, 1], [1, 2])),
        SURVEY.mechanism,
        PLAIN,
        PLAIN.then([["1/2", "1/2"]] * PLAIN.outputs),
        sf.ProductResponse(sf.Blocks([0, 0, 1, 1], 1, across=2)),
        sf.TableResponse.from_fractions(pair, [["0.6", "0.4"], ["0.3", "0.7"]]),
        sf.mechanism_for(two_parts),
        sf.plan(SURVEY, error=0.1),
        sf.certify(SURVEY),
        sf.error_region(SURVEY, "clinic", LABEL),
        sf.privacy_loss(SURVEY, "clinic", LABEL),
        SURVEY,
        SURVEY.tally(np.array([0, 1])),
        sf.posterior_odds(CONTEXT),
        ESTIMATE["clinic"],
        ESTIMATE.block_shares(),
        ESTIMATE.top(1),
        ESTIMATE.total(["clinic"]),
        ESTIMATE.difference(ESTIMATE),
    ]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    return make_objects(tmp_path_factory.mktemp("display"))


def test_objects_cover_every_public_class(objects):
    public = {name for name in dir(sf) if inspect.isclass(getattr(sf, name))}
    covered = {base for instance in objects for base in type(instance).__mro__}
    assert public <= {base.__name__ for base in covered}
    assert {EstimateRow, Shares, TopSymbols, Total} <= covered


def test_objects_have_a_short_text_and_html(objects):
    for instance in objects:
        kind = type(instance)
        assert kind.__repr__ is not object.__repr__, kind
        assert " object at 0x" not in repr(instance), kind
        assert len(repr(instance)) < 4_000, kind
        html = instance._repr_html_()
        assert html.startswith("<p"), kind
        assert "<b>park" not in html, kind
        assert "<i>" not in html, kind
