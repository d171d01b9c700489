"""The common exam over every mechanism, and over mutants that must all fail it."""

import pytest

import sfumato as sf
from sfumato.errors import ExamFailed, InvalidArgument
from sfumato.promises.exam import check_mechanism
from support.mechanism_examples import EXAMPLES, every_mechanism_class
from support.mutants import MUTANTS

INSTANCES = [mechanism for instances in EXAMPLES.values() for mechanism in instances]
PLANTED = [(check, mutant) for check, mutants in MUTANTS.items() for mutant in mutants]


def describe(mechanism):
    codes = mechanism.to_record().get("codes", ())
    return f"{mechanism!r}-{'-'.join(code.get('kind', '') for code in codes)}"


def test_every_mechanism_class_has_examples():
    assert every_mechanism_class() == set(EXAMPLES)


@pytest.mark.parametrize("mechanism", INSTANCES, ids=describe)
def test_every_mechanism_passes_the_exam(mechanism):
    report = check_mechanism(mechanism)
    assert report.passed[-1] == "sampler_matches_its_matrix"


@pytest.mark.parametrize(
    ("check", "mutant"), PLANTED, ids=lambda value: getattr(type(value), "__name__", value)
)
def test_every_mutant_is_caught(check, mutant):
    with pytest.raises(ExamFailed) as failure:
        check_mechanism(mutant)
    assert failure.value.check == check


def test_every_check_has_a_mutant():
    report = check_mechanism(sf.PlainResponse(sf.Uniform(3, 1)))
    assert set(report.passed) == set(MUTANTS)
    assert len(PLANTED) >= 10


def test_exam_rejects_mechanisms_too_large_to_enumerate():
    with pytest.raises(InvalidArgument, match="512 outputs"):
        check_mechanism(sf.PlainResponse(sf.Uniform(600, 1)))


def test_exam_rejects_epsilon_too_small_for_short_words():
    with pytest.raises(ExamFailed, match="larger ε"):
        check_mechanism(sf.PlainResponse(sf.Uniform(30, "0.00001")))
