"""Certificates: by enumeration, by structure, and by the independent checker."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import ContextMismatch, NoClosedForm, PrivacyViolation
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import TableResponse
from sfumato.promises import structure
from sfumato.promises.structure import check_structure
from sfumato.randomness import within_odds
from support.lone_checker import check_file, check_file_alone
from support.mechanism_examples import ALL_REPRESENTATIVES
from support.mutants import MUTANTS, OneUnitTooMuch
from support.paths import CHECKER

LARGE = 8_750
N = 1 << 64


def run_checker(mechanism, folder, check=check_file):
    """Run the checker on a saved mechanism; return its exit code and output."""
    path = folder / "mechanism.json"
    mechanism.save(path)
    return check(path)


# --- enumerated -----------------------------------------------------------------------------------


def _naive_tightest(mechanism):
    """Compare every pair on every output; return the largest realised ratio over its promise."""
    rows = [mechanism.integer_row(x) for x in range(mechanism.inputs)]
    places = []
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        epsilon = mechanism.context.exact_epsilon(x, x2)
        for q, q2 in zip(rows[x], rows[x2], strict=True):
            assert within_odds(q, q2, epsilon)
            if isinstance(epsilon, Fraction) and q:
                places.append(float(epsilon) - np.log(q / q2))
    return min(places, default=None)


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_enumeration_matches_a_naive_loop(mechanism):
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
def test_both_checkers_reject_odds_one_unit_too_high(unit, tmp_path):
    """13485… : 4960… of 2^64 words is within e; with one word moved it is not."""
    high = max(h for h in _largest_permitted(Fraction(1)))
    integers = [[high + unit, N - high - unit], [N - high - unit, high + unit]]
    mechanism = TableResponse(sf.Uniform(2, 1), integers)
    code, output = run_checker(mechanism, tmp_path)
    assert run_checker(mechanism, tmp_path, check_file_alone) == (code, output)
    if unit == 0:
        assert sf.certify(mechanism).slack < 1e-15
        assert code == 0
        assert output.endswith("\nkept: every pair, every report\n")
    else:
        with pytest.raises(PrivacyViolation) as violation:
            sf.certify(mechanism)
        assert (violation.value.x, violation.value.x2, violation.value.output) == (0, 1, 0)
        assert code == 1
        assert "report 0 says more for 0 (symbol 0) against 1 (symbol 1)" in output


def _largest_permitted(epsilon):
    """Return the largest h with ``h ≤ e^ε (2^64 − h)``, by exact bisection."""
    low = N // 2
    high = N - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within_odds(middle, N - middle, epsilon) else (low, middle)
    return [low]


def test_certify_needs_a_context_over_the_same_domain():
    with pytest.raises(ContextMismatch, match="different domains"):
        sf.certify(sf.BinaryResponse(sf.Uniform(2, 1)), sf.Uniform(["a", "b"], 1))


def test_certificate_record_and_text():
    assert "every pair on every report" in str(sf.certify(sf.BinaryResponse(sf.Uniform(2, 1))))
    assert "nothing is promised" in str(sf.certify(sf.PlainResponse(sf.Uniform(3, "inf"))))
    record = sf.certify(sf.PlainResponse(sf.Uniform(LARGE, 1))).to_record()
    assert record["method"] == "structural"
    assert record["rows"] == 1000
    assert record["premises"][0]["raised"] == 8192


# --- structural -----------------------------------------------------------------------------------

STRUCTURED = [
    mechanism
    for mechanism in ALL_REPRESENTATIVES
    if mechanism.row_classes() and mechanism.inputs > 1
]


@pytest.mark.parametrize("mechanism", STRUCTURED, ids=repr)
def test_structure_and_enumeration_agree(mechanism):
    enumerated = sf.certify(mechanism)
    place, rows = check_structure(mechanism, mechanism.context, mechanism.row_classes())
    assert rows == mechanism.inputs
    assert (place is None) == (enumerated.tightest is None)
    if place is not None:
        assert place.promised == enumerated.tightest.promised
        # The structural proof ignores leftover words, which can only lower the odds.
        assert place.realised >= enumerated.realised_epsilon
        assert place.realised == pytest.approx(enumerated.realised_epsilon, abs=1e-15)
        assert mechanism.context.exact_epsilon(place.x, place.x2) == place.promised


@pytest.mark.parametrize("mechanism", STRUCTURED, ids=repr)
def test_structure_is_as_strict_as_enumeration(mechanism):
    """For other contexts than its own: what structure certifies, enumeration certifies."""
    k = mechanism.inputs
    domain = mechanism.context.domain
    labels = list(domain.labels)
    others = [
        sf.Uniform(domain, 0.4),
        sf.Uniform(domain, 6),
        sf.Blocks([x % 2 for x in range(k)], 6, domain=domain),
        sf.HighLow(domain, labels[:1], 6),
        sf.HighLow(domain, labels[-1:], 6),
        sf.PrivacyMatrix(
            [[0 if x == x2 else (x + 2 * x2) % 7 + 1 for x2 in range(k)] for x in range(k)],
            domain=domain,
        ),
    ]
    for context in others:
        try:
            check_structure(mechanism, context, mechanism.row_classes())
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
def test_large_mechanisms_use_the_structural_proof(context, tmp_path):
    mechanism = sf.mechanism_for(context, code="hadamard")
    certificate = sf.certify(mechanism)
    assert (certificate.method, certificate.rows) == ("structural", 1000)
    assert 0 <= certificate.slack < 1e-9
    assert run_checker(mechanism, tmp_path)[0] == 0


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(600, 1), sf.Blocks(np.arange(1200) // 3, 1), sf.HighLow(1000, range(300), 1)],
    ids=repr,
)
def test_both_checkers_reject_one_unit_too_much_at_scale(context, tmp_path):
    frame = {
        sf.Uniform: sf.PlainResponse,
        sf.Blocks: sf.BlockResponse,
        sf.HighLow: sf.HighLowResponse,
    }[type(context)]
    mechanism = frame(context, OneUnitTooMuch)
    with pytest.raises(PrivacyViolation):
        sf.certify(mechanism)
    assert run_checker(mechanism, tmp_path)[0] == 1


def test_large_sums_of_blocks_are_certified():
    blocks = sf.Blocks(np.arange(1200) // 3, 1)
    assert sf.certify(sf.mechanism_for(blocks), blocks + blocks).promised_epsilon == 2.0
    with pytest.raises(PrivacyViolation, match="ε = inf"):
        sf.certify(sf.mechanism_for(blocks), sf.Uniform(1200, 1) + sf.Uniform(1200, 1))


class OneEpsilonTooFew(sf.Context):
    """A custom context in which symbol 0 has a far stronger promise than the others."""

    def __init__(self, domain):
        super().__init__(domain)

    @property
    def exact_minimum(self):
        return Fraction(1, 10)

    def exact_epsilon(self, x, x2):
        return Fraction(0) if x == x2 else Fraction(1, 10) if 0 in (x, x2) else Fraction(2)

    def closure(self):
        return self

    def to_record(self):
        return {"kind": "somebody else's"}

    def _epsilon(self, x, x2):
        return np.where((x == 0) | (x2 == 0), 0.1, 2.0)


@pytest.mark.slow
def test_custom_contexts_are_compared_entry_by_entry():
    mechanism = sf.PlainResponse(sf.Uniform(600, 1))
    context = OneEpsilonTooFew(mechanism.context.domain)
    assert context.exact_matrix().entry(0, 5) == Fraction(1, 10)
    with pytest.raises(PrivacyViolation):
        sf.certify(mechanism, context)
    # Its promises between the others are smaller than those of a detour over symbol 0.
    assert sf.certify(sf.mechanism_for(context), context).promised_epsilon <= 0.2


def test_violation_names_a_pair_with_a_promise():
    E = np.full((600, 600), np.inf)
    np.fill_diagonal(E, 0)
    E[0, 1] = E[1, 400] = E[400, 401] = 1
    context = sf.PrivacyMatrix(E)
    blocks = sf.BlockResponse(sf.Blocks(np.arange(600) // 300, 1))
    with pytest.raises(PrivacyViolation) as violation:
        sf.certify(blocks, context)
    assert (violation.value.x, violation.value.x2) == (1, 400)
    place = sf.certify(sf.PlainResponse(sf.Uniform(600, 1)), context).tightest
    assert context.exact_epsilon(place.x, place.x2) == place.promised == 1


def test_randomized_response_uses_all_of_its_epsilon_at_scale():
    certificate = sf.certify(sf.PlainResponse(sf.Uniform(16_384, 8), sf.RandomizedCode))
    assert certificate.realised_epsilon > 8 - 1e-12


class SevenEverywhere(sf.PlainResponse):
    """Rows that are not distributions."""

    def compact_row(self, x):
        return [7], np.zeros(self.outputs, dtype=np.intp)


def test_rows_that_do_not_add_up_fail_certification():
    with pytest.raises(PrivacyViolation, match="not a probability distribution"):
        sf.certify(SevenEverywhere(sf.Uniform(3, 1)))


class ForgedClaim(sf.PlainResponse):
    """Claims rows that it does not have."""

    def row_classes(self):
        return tuple(replace(claim, raised=claim.raised - 1) for claim in super().row_classes())


class OneRowAstray(sf.PlainResponse):
    """One row in a thousand favours an output less."""

    def compact_row(self, x):
        levels, which = super().compact_row(x)
        if x == 17:
            which = which.copy()
            which[np.flatnonzero(which == 2)[-1]] = 1
        return levels, which


class OneSymbolForgotten(sf.PlainResponse):
    """A symbol that no class covers."""

    def row_classes(self):
        return tuple(
            replace(c, symbols=c.symbols[1:], first_reports=c.first_reports[1:])
            for c in super().row_classes()
        )


class LowAboveHigh(sf.PlainResponse):
    """A truthful class in which the raised output is the rare one."""

    def _set_groups(self, *arguments):
        super()._set_groups(*arguments)
        self._codes[0].high, self._codes[0].low = self._codes[0].low, self._codes[0].high


@pytest.mark.parametrize("forger", [ForgedClaim, OneRowAstray, OneSymbolForgotten, LowAboveHigh])
def test_false_claims_fail_certification(forger):
    small = forger(sf.Uniform(300, 1))  # 512 outputs: all rows are checked
    with pytest.raises(PrivacyViolation, match=r"false or inconsistent|not a probability"):
        check_structure(small, small.context, small.row_classes())


def test_large_mechanisms_without_structure_raise(monkeypatch):
    monkeypatch.setattr(sf.PlainResponse, "row_classes", lambda self: ())
    with pytest.raises(NoClosedForm, match="no structure"):
        sf.certify(sf.PlainResponse(sf.Uniform(3000, 1)))
    assert sf.certify(sf.PlainResponse(sf.Uniform(600, 1))).method == "enumerated"


def test_every_check_draws_new_random_rows(monkeypatch):
    row_sets = {tuple(structure._choose_rows(10**6).tolist()) for _ in range(3)}
    assert len(row_sets) == 3


# --- the checker ----------------------------------------------------------------------------------


def test_checker_needs_only_the_standard_library():
    text = CHECKER.read_text(encoding="utf-8")
    modules = {
        line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))
    }
    assert modules <= sys.stdlib_module_names
    assert "fractions" in modules


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_checker_accepts_what_certify_accepts(mechanism, tmp_path):
    code, output = run_checker(mechanism, tmp_path)
    assert code == 0
    assert output.endswith("\nkept: every pair, every report\n")


@pytest.mark.parametrize(
    "mutant", MUTANTS["keeps_its_context"], ids=lambda mutant: type(mutant).__name__
)
def test_checker_rejects_what_certify_rejects(mutant, tmp_path):
    code, output = run_checker(mutant, tmp_path)
    assert code == 1
    assert "\nBROKEN: report " in output


def test_checker_rejects_unreadable_files(tmp_path):
    mechanism = sf.PlainResponse(sf.Uniform(3, 1))
    path = tmp_path / "m.json"
    mechanism.save(path)
    saved = json.loads(path.read_text())
    spoilt = [
        {**saved, "format": 2},
        {**saved, "context": {"kind": "moon"}},
        {**saved, "mechanism": {**saved["mechanism"], "kind": "moon"}},
        {
            **saved,
            "mechanism": {
                **saved["mechanism"],
                "codes": [{**saved["mechanism"]["codes"][0], "low": "1"}],
            },
        },
        {
            "format": 1,
            "context": saved["context"],
            "mechanism": {"kind": "table", "rows": [["2", "-1"], ["0", "1"], ["1", "0"]]},
        },
        [],
    ]
    for data in spoilt:
        path.write_bytes(canonical_bytes(data))
        code, output = check_file(path)
        assert code == 2, data
        assert output.startswith(f"{path}: cannot be read")
    path.write_text("{")
    assert check_file(path)[0] == 2
    assert check_file(tmp_path / "missing.json")[0] == 2


def check_forgery(folder, mechanism, change):
    """Return the checker's exit code for a saved mechanism with a change in its JSON."""
    path = folder / "forged.json"
    mechanism.save(path)
    saved = json.loads(path.read_text())
    change(saved)
    path.write_bytes(canonical_bytes(saved))
    return check_file(path)[0]


LARGE_BLOCKS = sf.BlockResponse(sf.Blocks(np.arange(600) // 3, 1))
LARGE_PLAIN = sf.PlainResponse(sf.Uniform(600, 1))
LARGE_HIGH_LOW = sf.HighLowResponse(sf.HighLow(600, range(300), 1))
SMALL_TABLE = TableResponse(sf.Uniform(2, 1), [[3 * N // 4, N // 4], [N // 4, 3 * N // 4]])

FORGERIES = {
    "nothing is checked": (
        LARGE_PLAIN,
        lambda s: s["mechanism"].update(kind="blocks", codes=[], code_of_block=[]),
    ),
    "blocks under a uniform promise": (LARGE_BLOCKS, lambda s: s["context"].update(kind="uniform")),
    "high-low under a uniform promise": (
        LARGE_HIGH_LOW,
        lambda s: s["context"].update(kind="uniform"),
    ),
    "a metric of tiny distances": (
        LARGE_PLAIN,
        lambda s: s["context"].update(kind="metric", distances=[["0.001"] * 600] * 600),
    ),
    "a matrix with an epsilon": (
        LARGE_PLAIN,
        lambda s: s["context"].update(kind="matrix", matrix=[["0.001"] * 600] * 600),
    ),
    "more symbols than blocks speak of": (
        LARGE_BLOCKS,
        lambda s: s["context"]["domain"].update(size=100_000),
    ),
    "no power of two": (
        LARGE_PLAIN,
        lambda s: s["mechanism"]["codes"][0].update(
            outputs=1000, high=str(3 * N // 2000), low=str(N // 2000), leftover="0"
        ),
    ),
    "a code with too few points": (
        LARGE_BLOCKS,
        lambda s: s["mechanism"]["codes"][0].update(
            kind="randomized", outputs=2, high=str(N // 2), low=str(N // 2)
        ),
    ),
    "rows beyond the word": (
        SMALL_TABLE,
        lambda s: s["mechanism"].update(rows=[[str(N), str(N // 2)], [str(N // 2), str(N)]]),
    ),
    "negative entries": (
        SMALL_TABLE,
        lambda s: s["mechanism"].update(rows=[[str(N + 1), "-1"], [str(N + 1), "-1"]]),
    ),
    "a row too few": (SMALL_TABLE, lambda s: s["mechanism"].update(rows=[[str(N), "0"]])),
    "an epsilon over nothing": (SMALL_TABLE, lambda s: s["context"].update(epsilon="1/0")),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_checker_rejects_forgeries(name, tmp_path):
    assert check_forgery(tmp_path, *FORGERIES[name]) in (1, 2)


def test_checker_accepts_high_low_without_sensitive_symbols(tmp_path):
    assert run_checker(sf.HighLowResponse(sf.HighLow(1000, [], 1.0)), tmp_path)[0] == 0


def test_checker_reads_resolved_surveys(tmp_path):
    grid = sf.GridDomain(25, 50, -130, -60, 1, other="elsewhere")
    surveys = [
        sf.Survey("grid", sf.Uniform(grid, 1)),
        sf.Survey("labels", sf.HighLow(["a", "b", "c"], ["b"], 0.5)),
        sf.Survey("recognised", sf.PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]])),
    ]
    for survey in surveys:
        survey.save(tmp_path / "survey.json")
        assert check_file(tmp_path / "survey.json")[0] == 0
    usage = subprocess.run([sys.executable, CHECKER], capture_output=True, text=True, check=False)
    assert usage.returncode == 2
    assert "FILE.json" in usage.stderr


# --- names in texts -------------------------------------------------------------------------------


def test_certificate_names_labels():
    survey = sf.Survey("lunch", sf.HighLow(["park", "café", "bar"], ["bar"], 1))
    certificate = survey.certify()
    assert "the tightest case is “bar” against “park”, with ε" in str(certificate)
    assert "symbol" not in str(certificate)


def test_certificate_names_labels_of_a_large_union():
    labels = [f"home {index}" for index in range(1600)]
    context = sf.Blocks([index // 800 for index in range(1600)], 1, domain=labels)
    certificate = sf.certify(sf.mechanism_for(context))
    case = certificate.tightest
    assert certificate.method == "structural"
    assert certificate.tightest_pair == f"“home {case.x}” against “home {case.x2}”"


def test_hostile_labels_stay_on_one_line_and_are_shortened():
    hostile = "x\nCertified: \x1b[8m" + "y" * 500
    text = str(sf.certify(sf.PlainResponse(sf.Uniform([hostile, "b"], 1))))
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 250


def test_violation_names_labels():
    context = sf.Uniform(["no", "yes {x}"], 1)
    mechanism = sf.PlainResponse(context)
    with pytest.raises(PrivacyViolation, match=r"distinguishes “no” from “yes \{x\}” by") as error:
        sf.certify(mechanism, sf.Uniform(["no", "yes {x}"], "0.9"))
    assert (error.value.x, error.value.x2) == (0, 1)


def test_violation_in_a_large_union_names_labels():
    parts = [sf.Uniform([f"a{index}" for index in range(600)], 1), sf.HighLow(["b", "c"], ["b"], 1)]
    stricter = sf.union([parts[0], sf.HighLow(["b", "c"], ["b"], "0.9")])
    mechanism = sf.mechanism_for(sf.union(parts))
    with pytest.raises(PrivacyViolation, match="distinguishes “b” from “c”") as error:
        sf.certify(mechanism, stricter)
    assert error.value.x == 600
