"""Reports from a seed follow the same rules as private ones."""

import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, UnknownValue

SURVEY = sf.Survey("lunch", sf.Uniform(["park", "bar", "no answer"], 1))
ANSWERS = ["park", None, "bar", "park", None]


def test_missing_answers_are_refused_unless_a_rule_says_otherwise():
    with pytest.raises(UnknownValue, match="2 of 5 rows have no answer"):
        sf.simulation.reports(SURVEY, ANSWERS, seed=1)


@pytest.mark.parametrize(("missing", "count"), [("skip", 3), ("no answer", 5)])
def test_missing_answers_follow_the_rule(missing, count):
    batch = sf.simulation.reports(SURVEY, ANSWERS, seed=1, missing=missing)
    assert len(batch) == count
    source = sf.simulation.SeededWords(1)
    assert batch == SURVEY.privatize(ANSWERS, source, missing=missing)


def test_a_mechanism_has_no_missing_answers():
    with pytest.raises(InvalidArgument, match="missing needs a survey"):
        sf.simulation.reports(SURVEY.mechanism, [0, 1], seed=1, missing="skip")
