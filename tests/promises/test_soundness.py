"""Regression tests for ways in which a broken promise once passed."""

import math
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode
from sfumato.errors import ContextMismatch, InvalidArgument, NothingToLearn, PrivacyViolation
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import RowClass
from sfumato.mechanisms.group_levels import GroupIntegers
from sfumato.planning import lower_bound_risk
from support.lone_checker import check_file


def _run_checker(path, saved):
    path.write_bytes(canonical_bytes(saved))
    return check_file(path)


@pytest.mark.parametrize(
    "context", [sf.Uniform(3, 1), sf.Blocks([0, 0, 0], 1), sf.Blocks([0, 0, 1], 1)], ids=repr
)
def test_contexts_that_show_groups_are_rejected_by_group_response(context):
    with pytest.raises(ContextMismatch, match="mechanism_for"):
        sf.GroupResponse(context)
    with pytest.raises(ContextMismatch):
        sf.GroupResponse.from_integers(context, GroupIntegers([], [], [], 1 << 64, 64))


class OnlyLeftovers(sf.TableResponse):
    """The identity, claimed as ranges in which all words are left over."""

    def row_classes(self):
        k = self.inputs
        return (RowClass(np.arange(k), np.arange(k), 1, 0, 0, 0, 1 << 64, cover=0, own_words=0),)


class HighOfNothing(OnlyLeftovers):
    """The same with a high level that no output has."""

    def row_classes(self):
        return tuple(replace(claim, high=1) for claim in super().row_classes())


@pytest.mark.parametrize("forger", [OnlyLeftovers, HighOfNothing])
def test_unshared_leftover_words_fail_certification(forger):
    k = 520
    identity = forger(sf.Uniform(k, 1), (np.eye(k, dtype=object) * 2**64).tolist())
    with pytest.raises(PrivacyViolation):
        sf.certify(identity)


def test_code_numbers_fit_their_integer_type():
    mechanism = sf.BlockResponse(sf.Blocks([0, 1, 1, 2, 2], ["1", "0.5", "1.5"]), sf.RandomizedCode)
    assert np.iinfo(mechanism._code_index_of.dtype).max >= len(mechanism._codes)


def _large_forgery(frame):
    """Return odds of e^40 in a block of 1100, next to two blocks of one symbol."""
    context = sf.Blocks([0, 1] + [2] * 1100, 1)
    honest = sf.BlockResponse(context, HadamardCode)
    lax = sf.PlainResponse(sf.Uniform(1102, 40))
    code = lax.to_record()["codes"][0]
    if frame == "blocks":
        mechanism = {**honest.to_record(), "codes": [code], "code_of_block": [0, 0, 0]}
        return {"format": 1, "context": context.to_record(), "mechanism": mechanism}
    stronger = sf.Uniform(1102, 1).to_record()
    return {
        "format": 1,
        "context": context.to_record(),
        "mechanism": lax.to_record(),
        "mechanism_context": stronger,
    }


@pytest.mark.parametrize("frame", ["blocks", "uniform"])
def test_checker_looks_inside_large_blocks(frame, tmp_path):
    assert _run_checker(tmp_path / "m.json", _large_forgery(frame))[0] == 1


def test_checker_rejects_an_own_report_without_words(tmp_path):
    mechanism = sf.GroupResponse(sf.Tiers([0, 0, 1], [1, "inf"]))
    saved = {
        "format": 1,
        "context": mechanism.context.to_record(),
        "mechanism": dict(mechanism.to_record()),
    }
    saved["mechanism"] |= {
        "levels": [{"high": "5", "low": "5", "cover": str(2**62)}],
        "clear": str(
            10 - 2**63 if mechanism.to_record()["codes"][0]["outputs"] == 2 else 20 - 2**64
        ),
    }
    assert _run_checker(tmp_path / "m.json", saved)[0] in (1, 2)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1, "inf", "inf"], [1, 0, "inf", "inf"], ["inf", "inf", 0, 3], ["inf", "inf", 1, 0]],
        [
            [0, 2, "inf", "inf"],
            [2, 0, "inf", "inf"],
            ["inf", "inf", 0, "inf"],
            ["inf", "inf", 1, 0],
        ],
    ],
)
def test_checker_reads_matrices_recognised_as_unions(matrix, tmp_path):
    context = sf.PrivacyMatrix(matrix)
    mechanism = sf.mechanism_for(context)
    assert mechanism.kind == "union"
    saved = {"format": 1, "context": context.to_record(), "mechanism": mechanism.to_record()}
    code, printed = _run_checker(
        tmp_path / "m.json", saved | {"mechanism_context": mechanism.context.to_record()}
    )
    assert code == 0, printed
    assert printed.endswith("\nkept: every pair, every report\n")
    stricter = sf.PrivacyMatrix(
        np.where(np.isinf(context.matrix()), np.inf, context.matrix() * 0.9)
    )
    saved |= {"context": stricter.to_record(), "mechanism_context": mechanism.context.to_record()}
    assert _run_checker(tmp_path / "m.json", saved)[0] == 1


def test_large_promises_across_stay_as_typed():
    context = sf.Blocks([0, 0, 1], {0: "inf", 1: 1}, across="39.9")
    certificate = sf.certify(sf.mechanism_for(context), context)
    assert 39.8 < certificate.realised_epsilon <= 39.9


@pytest.mark.parametrize("epsilon", ["1e-17", "1e-16"])
def test_epsilon_below_float_precision_raises(epsilon):
    with pytest.raises(NothingToLearn, match="larger"):
        sf.mechanism_for(sf.Uniform(3, epsilon))


@pytest.mark.parametrize(("k", "epsilon"), [(1000, "1e-6"), (5, "1e-8")])
def test_lower_bound_is_finite_for_tiny_epsilon(k, epsilon):
    assert math.isfinite(lower_bound_risk(sf.Uniform(k, epsilon)))


@pytest.mark.parametrize("wish", [{"sensitive_share": 7}, {"max_bits": "3"}, {"max_bits": -1}])
@pytest.mark.parametrize("code", ["best", "hadamard"])
def test_invalid_arguments_of_mechanism_for_raise(wish, code):
    with pytest.raises(InvalidArgument):
        sf.mechanism_for(sf.HighLow(5, [0, 1], 1), code=code, **wish)


def test_group_response_without_groups_sends_all_words_clear():
    with pytest.raises(ContextMismatch):
        sf.GroupResponse.from_integers(sf.HighLow(3, [], 1), GroupIntegers([], [], [], 5, 12))
