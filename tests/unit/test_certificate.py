"""Certificates: enumerated, structural, and by the checker that shares nothing with the package."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from examples_of import EXAMPLES
from mutants import MUTANTS, OneUnitTooMuch
from sfumato.errors import ContextMismatch, NoClosedForm, PrivacyViolation
from sfumato.mechanisms import TableResponse
from sfumato.promises import structure
from sfumato.promises.structure import tightest_by_structure
from sfumato.randomness.odds import within_odds

CHECKER = Path(__file__).parents[2] / "tools" / "check_certificate.py"
INSTANCES = [mechanism for instances in EXAMPLES.values() for mechanism in instances]
LARGE = 43_750
N = 1 << 64


def checked(mechanism, folder):
    """The checker's exit code and what it says, run as a stranger would run it: isolated from the package."""
    path = folder / "mechanism.json"
    mechanism.save(path)
    return check_file(path)


def check_file(path):
    run = subprocess.run([sys.executable, "-I", "-S", CHECKER, path], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


# --- enumerated ------------------------------------------------------------------------------------------------------


def _naive_tightest(mechanism):
    """Every pair, every output, one after the other: the largest realised ratio over its promise."""
    rows = [mechanism.integer_row(x) for x in range(mechanism.inputs)]
    places = []
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        epsilon = mechanism.context.exact_epsilon(x, x2)
        for q, q2 in zip(rows[x], rows[x2], strict=True):
            assert within_odds(q, q2, epsilon)
            if isinstance(epsilon, Fraction) and q:
                places.append(float(epsilon) - np.log(q / q2))
    return min(places, default=None)


@pytest.mark.parametrize("mechanism", INSTANCES, ids=repr)
def test_the_enumerated_certificate_is_what_a_plain_loop_finds(mechanism):
    certificate = sf.certify(mechanism)
    naive = _naive_tightest(mechanism)
    assert certificate.method == "enumerated"
    assert (certificate.tightest is None) == (naive is None)
    if naive is not None:
        assert certificate.slack == pytest.approx(naive, abs=1e-12)
        assert certificate.realised_epsilon <= certificate.promised_epsilon
        place = certificate.tightest
        assert mechanism.integer_row(place.x)[place.output] == place.high
        assert mechanism.integer_row(place.x2)[place.output] == place.low


@pytest.mark.parametrize("unit", [0, 1])
def test_odds_one_unit_above_the_largest_permitted_are_refused_by_both_checkers(unit, tmp_path):
    """Of 2^64 words: 13485… : 4960… is within e, one word moved from one to the other is not."""
    high = max(h for h in _largest_permitted(Fraction(1)))
    integers = [[high + unit, N - high - unit], [N - high - unit, high + unit]]
    mechanism = TableResponse(sf.Uniform(2, 1), integers)
    code, said = checked(mechanism, tmp_path)
    if unit == 0:
        assert sf.certify(mechanism).slack < 1e-15
        assert (code, said) == (0, "kept: every pair, every report\n")
    else:
        with pytest.raises(PrivacyViolation) as violation:
            sf.certify(mechanism)
        assert (violation.value.x, violation.value.x2, violation.value.output) == (0, 1, 0)
        assert code == 1
        assert "symbol 0 against 1" in said


def _largest_permitted(epsilon):
    """The largest h with ``h ≤ e^ε (2^64 − h)``, by bisection on the exact decision."""
    low, high = N // 2, N - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within_odds(middle, N - middle, epsilon) else (low, middle)
    return [low]


def test_the_context_must_be_over_the_mechanisms_domain():
    with pytest.raises(ContextMismatch, match="different domains"):
        sf.certify(sf.BinaryResponse(sf.Uniform(2, 1)), sf.Uniform(["a", "b"], 1))


def test_a_certificate_says_what_was_done():
    assert "every pair on every report" in str(sf.certify(sf.BinaryResponse(sf.Uniform(2, 1))))
    assert "nothing is promised" in str(sf.certify(sf.PlainResponse(sf.Uniform(3, "inf"))))
    record = sf.certify(sf.PlainResponse(sf.Uniform(LARGE, 1))).record()
    assert record["method"] == "structural"
    assert record["rows"] == 1000
    assert record["premises"][0]["raised"] == 32768


# --- structural ------------------------------------------------------------------------------------------------------

STRUCTURED = [mechanism for mechanism in INSTANCES if mechanism.row_classes() and mechanism.inputs > 1]


@pytest.mark.parametrize("mechanism", STRUCTURED, ids=repr)
def test_structure_and_enumeration_agree_where_both_can_be_had(mechanism):
    enumerated = sf.certify(mechanism)
    place, rows = tightest_by_structure(mechanism, mechanism.context, mechanism.row_classes())
    assert rows == mechanism.inputs
    assert (place is None) == (enumerated.tightest is None)
    if place is not None:
        assert place.promised == enumerated.tightest.promised
        # Structure looks at one pair per class; leftover words can make another pair tighter by their share.
        assert float(place.promised) - place.realised == pytest.approx(enumerated.slack, abs=1e-9)


@pytest.mark.parametrize("mechanism", STRUCTURED, ids=repr)
def test_structure_is_no_laxer_than_enumeration(mechanism):
    """For contexts that the mechanism was not made for: what structure certifies, enumeration certifies."""
    k, domain = mechanism.inputs, mechanism.context.domain
    labels = list(domain.labels)
    others = [
        sf.Uniform(domain, 0.4),
        sf.Uniform(domain, 6),
        sf.Blocks([x % 2 for x in range(k)], 6, domain=domain),
        sf.HighLow(domain, labels[:1], 6),
        sf.HighLow(domain, labels[-1:], 6),
        sf.PrivacyMatrix(
            [[0 if x == x2 else (x + 2 * x2) % 7 + 1 for x2 in range(k)] for x in range(k)], domain=domain
        ),
    ]
    for context in others:
        try:
            tightest_by_structure(mechanism, context, mechanism.row_classes())
        except PrivacyViolation:
            continue
        sf.certify(mechanism, context)


@pytest.mark.parametrize(
    "context",
    [
        sf.Blocks(np.arange(LARGE) // 25, 1.0),
        sf.Uniform(LARGE, 1.0),
        sf.HighLow(LARGE, range(0, LARGE, 40), 1.0),
        sf.Blocks(np.sort(np.arange(LARGE) ** 2 % 997), 1.0),
    ],
    ids=repr,
)
def test_large_mechanisms_are_certified_by_structure_and_by_the_checker(context, tmp_path):
    mechanism = sf.mechanism_for(context, code="hadamard")
    certificate = sf.certify(mechanism)
    assert (certificate.method, certificate.rows) == ("structural", 1000)
    assert 0 <= certificate.slack < 1e-9
    assert checked(mechanism, tmp_path)[0] == 0


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(600, 1), sf.Blocks(np.arange(1200) // 3, 1), sf.HighLow(1000, range(300), 1)],
    ids=repr,
)
def test_one_unit_too_much_is_refused_at_size_by_both_checkers(context, tmp_path):
    frame = {sf.Uniform: sf.PlainResponse, sf.Blocks: sf.BlockResponse, sf.HighLow: sf.HighLowResponse}[type(context)]
    mechanism = frame(context, OneUnitTooMuch)
    with pytest.raises(PrivacyViolation):
        sf.certify(mechanism)
    assert checked(mechanism, tmp_path)[0] == 1


def test_a_sum_of_block_contexts_is_certified_at_size():
    blocks = sf.Blocks(np.arange(1200) // 3, 1)
    assert sf.certify(sf.mechanism_for(blocks), blocks + blocks).promised_epsilon == 2.0
    with pytest.raises(PrivacyViolation, match="ε = inf"):
        sf.certify(sf.mechanism_for(blocks), sf.Uniform(1200, 1) + sf.Uniform(1200, 1))


class ForgedClaim(sf.PlainResponse):
    """Claims rows that it does not have."""

    def row_classes(self):
        return tuple(replace(claim, raised=claim.raised - 1) for claim in super().row_classes())


class OneRowAstray(sf.PlainResponse):
    """One row in a thousand favours an output less."""

    def levels(self, x):
        levels, which = super().levels(x)
        if x == 17:
            which = which.copy()
            which[np.flatnonzero(which == 2)[-1]] = 1
        return levels, which


class OneSymbolForgotten(sf.PlainResponse):
    """A symbol that no class speaks of."""

    def row_classes(self):
        return tuple(replace(c, symbols=c.symbols[1:], first=c.first[1:]) for c in super().row_classes())


@pytest.mark.parametrize("forger", [ForgedClaim, OneRowAstray, OneSymbolForgotten])
def test_claims_that_the_rows_do_not_bear_out_are_refused(forger):
    small = forger(sf.Uniform(300, 1))  # 512 outputs: all rows are looked at
    with pytest.raises(PrivacyViolation, match="not what the mechanism claims"):
        tightest_by_structure(small, small.context, small.row_classes())


def test_a_large_mechanism_without_structure_is_not_certified(monkeypatch):
    monkeypatch.setattr(sf.PlainResponse, "row_classes", lambda self: ())
    with pytest.raises(NoClosedForm, match="no structure"):
        sf.certify(sf.PlainResponse(sf.Uniform(600, 1)))


def test_random_rows_are_drawn_anew(monkeypatch):
    drawn = {tuple(structure._rows_to_check(10**6).tolist()) for _ in range(3)}
    assert len(drawn) == 3


# --- the checker -----------------------------------------------------------------------------------------------------


def test_the_checker_is_short_and_stands_alone():
    text = CHECKER.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert "import sfumato" not in text
    assert "from sfumato" not in text


@pytest.mark.parametrize("mechanism", INSTANCES, ids=repr)
def test_the_checker_keeps_what_certify_keeps(mechanism, tmp_path):
    assert checked(mechanism, tmp_path) == (0, "kept: every pair, every report\n")


@pytest.mark.parametrize("mutant", MUTANTS["keeps_its_context"], ids=lambda mutant: type(mutant).__name__)
def test_the_checker_refuses_what_certify_refuses(mutant, tmp_path):
    code, said = checked(mutant, tmp_path)
    assert code == 1
    assert said.startswith("BROKEN: report")


def test_the_checker_refuses_what_it_cannot_read(tmp_path):
    mechanism = sf.PlainResponse(sf.Uniform(3, 1))
    path = tmp_path / "m.json"
    mechanism.save(path)
    saved = json.loads(path.read_text())
    spoilt = [
        {**saved, "format": 2},
        {**saved, "context": {"kind": "moon"}},
        {**saved, "mechanism": {**saved["mechanism"], "kind": "moon"}},
        {**saved, "mechanism": {**saved["mechanism"], "codes": [{**saved["mechanism"]["codes"][0], "low": "1"}]}},
        {
            "format": 1,
            "context": saved["context"],
            "mechanism": {"kind": "table", "rows": [["2", "-1"], ["0", "1"], ["1", "0"]]},
        },
        [],
    ]
    for data in spoilt:
        path.write_text(json.dumps(data))
        code, said = check_file(path)
        assert code == 2, data
        assert said.startswith("cannot be read")
    path.write_text("{")
    assert check_file(path)[0] == 2
    assert check_file(tmp_path / "missing.json")[0] == 2
