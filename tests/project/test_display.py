"""Every public object has a short text and an HTML view, and neither lets a label be markup."""

import inspect
import re
import sys
from fractions import Fraction
from html import unescape

import numpy as np
import pytest

import sfumato as sf
from sfumato.estimation import EstimateRow, Shares, TopSymbols, Total
from sfumato.mechanisms import Scores
from sfumato.survey.answers import ReportBatch

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
        ESTIMATE.fit_result,
        ESTIMATE.manipulation(3),
        ESTIMATE.bootstrap(runs=3),
        SURVEY.privatize([LABEL, "clinic"]),
        SURVEY.description,
        sf.check_mechanism(PLAIN),
        sf.decoders.Auto(covariate=np.ones(3)),
        sf.simulation.attack(PLAIN, [0, 1, 2] * 50, fake_count=2, target=LABEL),
        sf.simulation.compare(CONTEXT, [40, 30, 30], draws=sf.simulation.Draws(runs=1)),
        sf.simulation.LocalHashing(3, 1.0),
        sf.simulation.Spread.from_figures([1.0, 2.0]),
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
        assert html.startswith(("<p", "<div")), kind
        assert "<b>park" not in html, kind
        assert "<i>" not in html, kind


# --- every class that a public function or method returns ---------------------------------------


NOT_DISPLAYED = {
    "AnswerColumns",
    "DecodedForecast",
    "Effort",
    "ExactMatrix",
    "GroupShape",
    "Hits",
    "Layout",
    "Line",
    "Merge",
    "Plane",
    "RowClass",
    "Scattered",
    "SeededWords",
    "UnbiasedForecast",
}
"""Parts of other objects, for code rather than for people."""


def members_of(kind):
    """Return the functions behind the public methods and properties of a class."""
    functions = []
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        for attribute in ("fget", "func", "__func__"):
            member = getattr(member, attribute, member)
        is_public = name in ("__getitem__", "__iter__") or not name.startswith("_")
        if is_public and inspect.isfunction(member):
            functions.append(member)
    return functions


def names_in(annotation):
    """Return the words in an annotation, which may be a type or its text."""
    return set(re.findall(r"\w+", annotation if isinstance(annotation, str) else repr(annotation)))


def result_names(public):
    """Return the words in the annotations of a function's result, or of a class's results."""
    if inspect.isfunction(public):
        return names_in(public.__annotations__.get("return", ""))
    functions = members_of(public)
    annotations = [function.__annotations__.get("return", "") for function in functions]
    for base in public.__mro__[:-1]:
        fields = vars(base).get("__annotations__", {})
        annotations += [fields[name] for name in fields if not name.startswith("_")]
    return set().union(*map(names_in, annotations))


def own_classes():
    """Return all public classes of the package, by name."""
    classes = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("sfumato"):
            classes.update(inspect.getmembers(module, inspect.isclass))
    return {name: kind for name, kind in classes.items() if kind.__module__.startswith("sfumato.")}


def reachable_classes():
    """Return every class that is public, or that is the result of something reachable."""
    modules = (sf, sf.simulation, sf.decoders)
    pending = [getattr(module, name) for module in modules for name in module.__all__]
    classes = own_classes()
    reachable = {}
    while pending:
        public = pending.pop()
        is_own_class = inspect.isclass(public) and public.__module__.startswith("sfumato.")
        if is_own_class and public.__name__ not in reachable:
            reachable[public.__name__] = public
        elif not inspect.isfunction(public):
            continue
        pending += [classes[name] for name in result_names(public) if name in classes]
    return reachable


def is_displayed(kind):
    """Return whether people see instances of a class: protocols and scores are for code."""
    is_protocol = getattr(kind, "_is_protocol", False)
    return not is_protocol and not issubclass(kind, Scores) and kind.__name__ not in NOT_DISPLAYED


def test_every_reachable_class_has_html():
    reachable = reachable_classes()
    expected = {"Survey", "ReportBatch", "FitResult", "Manipulation", "Bootstrap", "EstimateRow"}
    assert expected <= set(reachable)
    displayed = {name: kind for name, kind in reachable.items() if is_displayed(kind)}
    assert [name for name, kind in displayed.items() if not hasattr(kind, "_repr_html_")] == []


def test_survey_states_its_promise_in_words():
    page = unescape(SURVEY._repr_html_())
    assert "1 of 3 answers is sensitive: “clinic”." in page
    assert "from 1:1 to at most 2.72:1 (ε = 1)" in page
    assert "HighLow" not in page.replace("HighLowResponse", "")


def test_html_of_reports_shows_no_report():
    page = ReportBatch(np.array([7, 7], dtype=np.uint32), "f" * 64)._repr_html_()
    assert ">2<" in page
    assert "7" not in page


def test_counts_of_one_are_singular():
    assert "PrivacyLoss(1 report, " in repr(sf.privacy_loss(SURVEY, "clinic", LABEL))
    assert "PrivacyLoss(2 reports, " in repr(
        sf.privacy_loss(SURVEY, "clinic", LABEL, report_count=2)
    )
    assert repr(ReportBatch(np.array([0], dtype=np.uint32), "f" * 64)).startswith(
        "ReportBatch(1 report, "
    )
