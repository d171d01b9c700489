"""The standalone checker: forged files, hostile files, and what it says about kept promises."""

import base64
import json
import math
import os
import subprocess
import sys
import sysconfig
import zipfile
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.foundation.canonical import canonical_bytes
from support.lone_checker import CHECKER, check_certificate, verdict_of
from support.run_here import run_command

N = 1 << 64
LUNCH = sf.Survey("lunch-2026", sf.HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))


def with_certificate(survey, certificate=None):
    """What `sfumato verify -o` writes."""
    certificate = survey.certify().to_record() if certificate is None else certificate
    return canonical_bytes({"promise": survey.promise, "certificate": certificate})


def said_of(raw):
    code, lines = verdict_of(raw)
    return code, "\n".join(lines)


# --- tables that hide nothing ---------------------------------------------------------------------


def deterministic():
    """Return a block of 1,001 symbols at ε = 0.01 in which reports identify symbols."""
    context = sf.Blocks([0] * 1001 + [1], "0.01")
    rows = [[N if y == (0 if x < 2 else 1 + x % 3) else 0 for y in range(5)] for x in range(1001)]
    return sf.Survey("forged", context, sf.TableResponse(context, [*rows, [0, 0, 0, 0, N]]))


def permutations():
    """ε = 1 promised, about 1.49 realised: rows of the same three numbers, in all six orders."""
    a = 5 * N // 16
    b = 7 * N // 64
    numbers = [a + 7 * N // 64 + N // 16, a, b]
    numbers = [N - numbers[1] - numbers[2], numbers[1], numbers[2]]
    orders = [(0, 1, 2), (0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)]
    rows = [[numbers[i] for i in orders[x % 6]] for x in range(1200)]
    context = sf.Uniform(1200, 1)
    return sf.Survey("forged", context, sf.TableResponse(context, rows))


@pytest.mark.parametrize("forged", [deterministic, permutations])
def test_large_tables_that_break_the_promise_are_broken(forged):
    survey = forged()
    with pytest.raises(sf.errors.PrivacyViolation):
        survey.certify()
    assert verdict_of(survey.resolved())[0] == 1


def test_the_permuted_rows_are_a_small_lie():
    rows = [permutations().mechanism.integer_row(x) for x in range(6)]
    worst = max(math.log(max(column) / min(column)) for column in zip(*rows, strict=True))
    assert 1.4 < worst < 1.8


def honest_rows(k, epsilon, columns=8):
    """Return rows of two numbers with odds of about e^ε, the higher one on half of the columns."""
    low = int(2 * N / columns / (1 + math.exp(epsilon))) // 2 * 2
    high = 2 * N // columns - low
    return [
        [high if (x >> (y // 2)) & 1 == y % 2 else low for y in range(columns)] for x in range(k)
    ]


@pytest.mark.parametrize("k", [1001, 5000])
def test_large_tables_that_keep_the_promise_are_kept(k):
    context = sf.Uniform(k, "1.000001")
    survey = sf.Survey("honest", context, sf.TableResponse(context, honest_rows(k, 1)))
    assert verdict_of(survey.resolved())[0] == 0


@pytest.mark.parametrize("x", [0, 700, 1999])
def test_one_row_of_thousands_that_breaks_the_promise_is_shown(x):
    rows = honest_rows(2000, 1)
    y = rows[x].index(max(rows[x]))
    y2 = rows[x].index(max(rows[x]), y + 1)
    rows[x][y] += 10**15
    rows[x][y2] -= 10**15
    context = sf.Uniform(2000, "1.000001")
    code, said = said_of(sf.Survey("forged", context, sf.TableResponse(context, rows)).resolved())
    assert code == 1
    assert f"BROKEN: report {y} says more for {x} (symbol {x}) against" in said


def test_a_promise_to_other_blocks_is_compared_with_the_smallest_entry_outside():
    """Rows are equal inside blocks: only another block's entries break the promise."""
    context = sf.Blocks([0] * 600 + [1] * 600, 1, across=1)
    first = [3 * N // 4, N // 4]
    second = [N // 4, 3 * N // 4]
    survey = sf.Survey("forged", context, sf.TableResponse(context, [first] * 600 + [second] * 600))
    assert verdict_of(survey.resolved())[0] == 1
    lax = sf.Blocks([0] * 600 + [1] * 600, 1, across=2)
    assert (
        verdict_of(
            sf.Survey("x", lax, sf.TableResponse(lax, [first] * 600 + [second] * 600)).resolved()
        )[0]
        == 0
    )


def test_rows_that_are_equal_owe_the_strongest_promise_of_their_symbols():
    """Symbols 0 and 1 share a row. Symbol 0 promises little to symbol 2, symbol 1 much."""
    rows = [[3 * N // 4, N // 4], [3 * N // 4, N // 4], [N // 4, 3 * N // 4]]
    for strong, code in (("2", 0), ("1", 1)):
        context = sf.PrivacyMatrix([["0", "1", "2"], ["1", "0", strong], ["2", "2", "0"]])
        survey = sf.Survey("x", context, sf.TableResponse(context, rows))
        assert verdict_of(survey.resolved())[0] == code


def test_a_matrix_that_takes_too_long_is_too_large(monkeypatch):
    monkeypatch.setattr(check_certificate, "LARGEST_WORK", 1000)
    context = sf.PrivacyMatrix(
        [["0" if x == x2 else "1" if x < x2 else "2" for x2 in range(30)] for x in range(30)]
    )
    survey = sf.Survey("x", context, sf.TableResponse(context, honest_rows(30, 0.5)))
    code, said = said_of(survey.resolved())
    assert code == 2
    assert said.startswith("too large: ")


# --- contexts of another making -------------------------------------------------------------------


def test_a_large_mechanism_for_another_context_is_decided():
    """Above 1,000 symbols, a weaker context is kept and a stronger one broken."""
    mechanism = sf.PlainResponse(sf.Uniform(1500, 1))
    for context, code in (
        (sf.Blocks([x // 500 for x in range(1500)], 1, across=2), 0),
        (sf.HighLow(1500, range(700), "1.5"), 0),
        (sf.Tiers([x % 3 for x in range(1500)], [1, "0.9", "inf"]), 1),
        (sf.Blocks([x // 500 for x in range(1500)], "0.9"), 1),
    ):
        survey = sf.Survey("x", context, mechanism)
        assert verdict_of(survey.resolved())[0] == code, context


def test_a_union_for_a_context_that_promises_across_its_parts_is_broken():
    mechanism = sf.mechanism_for(sf.union([sf.Tiers([0, 0, 1], [1, 2]), sf.HighLow(3, [0], 1)]))
    for context in (
        sf.Uniform(6, 30),
        sf.PrivacyMatrix([[0 if x == x2 else 30 for x2 in range(6)] for x in range(6)]),
    ):
        code, said = said_of(sf.Survey("x", context, mechanism).resolved())
        assert code == 1
        assert "words against 0" in said


def test_a_mechanism_context_over_another_domain_is_refused():
    data = json.loads(
        sf.Survey(
            "x",
            sf.HighLow(["a", "b", "c"], ["a"], 2),
            sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1)),
        ).resolved()
    )
    assert verdict_of(canonical_bytes(data))[0] == 0
    data["promise"]["mechanism_context"]["domain"]["labels"] = ["c", "b", "a"]
    code, said = said_of(canonical_bytes(data))
    assert code == 2
    assert "another domain" in said


# --- certificates ---------------------------------------------------------------------------------

SURVEYS = {
    "enumerated": LUNCH,
    "structural": sf.Survey("large", sf.Uniform(1500, 1)),
    "groups": sf.Survey("groups", sf.Tiers([x % 4 for x in range(900)], [1, 2, 3, "inf"])),
    "blocks": sf.Survey("blocks", sf.Blocks([x // 30 for x in range(900)], 1)),
    "union": sf.Survey(
        "union",
        sf.union([sf.Tiers([x % 3 for x in range(3000)], [1, 2, 3]), sf.HighLow(5, [0], 1)]),
    ),
    "nothing": sf.Survey("nothing", sf.HighLow(3, [], 1)),
    "binary": sf.Survey("binary", sf.PrivacyMatrix([[0, 1], [2, 0]])),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_a_certificate_agrees_with_its_promise(name):
    code, said = said_of(with_certificate(SURVEYS[name]))
    assert code == 0
    assert "Certificate:  agrees" in said


@pytest.mark.parametrize("name", SURVEYS)
def test_the_certificate_of_another_survey_is_broken(name):
    for other in SURVEYS:
        code, said = said_of(with_certificate(SURVEYS[name], SURVEYS[other].certify().to_record()))
        assert code == (0 if name == other else 1), other
        assert ("does not belong to this promise" in said) == (name != other)


def test_the_certificate_of_a_reviewed_survey_does_not_cover_a_lax_one():
    reviewed, lax = (sf.Survey("same", sf.Uniform(["a", "b", "c"], epsilon)) for epsilon in (1, 30))
    code, said = said_of(with_certificate(lax, reviewed.certify().to_record()))
    assert code == 1
    assert said.endswith(
        "BROKEN: the certificate does not belong to this promise "
        "(it differs in: mechanism, context, tightest)"
    )


def _change_field(record, name):
    value = record[name]
    if name == "tightest":
        return {**value, "low": str(int(value["low"]) + 1)}
    if name == "premises":
        return [*value[:-1], {**value[-1], "rows": value[-1]["rows"] - 1}]
    return {"method": "enumerated", "mechanism": "0" * 64, "context": "0" * 64}.get(
        name
    ) or value + 1


@pytest.mark.parametrize("name", check_certificate.CERTIFIED)
def test_every_field_of_a_certificate_is_compared(name):
    record = SURVEYS["groups"].certify().to_record()
    code, said = said_of(
        with_certificate(SURVEYS["groups"], {**record, name: _change_field(record, name)})
    )
    assert code == 1
    assert f"differs in: {name})" in said


@pytest.mark.parametrize(
    "change",
    [
        {"promised": "0.5"},
        {"promised": "2"},
        {"x": 0, "x2": 0},
        {"x": 900},
        {"output": 10**9},
        {"high": "1", "low": "1"},
        {"high": "1", "low": "0"},
    ],
)
def test_the_tightest_place_cannot_be_made_up(change):
    record = SURVEYS["groups"].certify().to_record()
    moved = {**record, "tightest": {**record["tightest"], **change}}
    assert verdict_of(with_certificate(SURVEYS["groups"], moved))[0] == 1


def test_a_certificate_that_is_not_one_is_not_read():
    for wrong in ({}, [], None, {**LUNCH.certify().to_record(), "more": 1}):
        assert verdict_of(canonical_bytes({"promise": LUNCH.promise, "certificate": wrong}))[0] == 2


# --- hostile files --------------------------------------------------------------------------------

RESOLVED = LUNCH.resolved()
RESOLVED_PLAIN = sf.Survey("plain", sf.Uniform(3, 1)).resolved()


def _with(path, value):
    data = json.loads(RESOLVED)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


CODE = ("promise", "mechanism", "codes", 0)
HOSTILE = {
    "nothing": b"",
    "no JSON": b"{",
    "deep": b'{"promise":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "deep unions": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "not UTF-8": b'{"promise":"\xff"}',
    "half a character": RESOLVED.replace(b'"park"', b'"\\ud800"'),
    "a byte-order mark": b"\xef\xbb\xbf" + RESOLVED,
    "white space": RESOLVED.replace(b'","', b'", "'),
    "two line feeds": RESOLVED + b"\n\n",
    "two texts": RESOLVED + RESOLVED,
    "a duplicate key": RESOLVED.replace(b'"epsilon":"1"', b'"epsilon":"9","epsilon":"1"'),
    "an escape": RESOLVED.replace(b"park", b"p\\u0061rk"),
    "not NFC": RESOLVED.replace(b"park", "parke\u0301".encode()),
    "NaN": _with(("about", "minimum_reports"), "NaN").replace(b'"NaN"', b"NaN"),
    "a float": RESOLVED.replace(b'"minimum_reports":0', b'"minimum_reports":0.0'),
    "minus zero": RESOLVED.replace(b'"minimum_reports":0', b'"minimum_reports":-0'),
    "a huge integer": RESOLVED.replace(
        b'"minimum_reports":0', b'"minimum_reports":' + b"9" * 100_000
    ),
    "2^53": RESOLVED.replace(b'"minimum_reports":0', b'"minimum_reports":9007199254740992'),
    "a long epsilon": _with(("promise", "context", "epsilon"), "1" * 5000),
    "an epsilon of 0": _with(("promise", "context", "epsilon"), "0"),
    "a negative epsilon": _with(("promise", "context", "epsilon"), "-1"),
    "an epsilon with an exponent": _with(("promise", "context", "epsilon"), "1e0"),
    "an epsilon with more digits": _with(("promise", "context", "epsilon"), "1.0"),
    "NaN as text": _with(("promise", "context", "epsilon"), "nan"),
    "an epsilon over nothing": _with(("promise", "context", "epsilon"), "1/0"),
    "a number as epsilon": _with(("promise", "context", "epsilon"), 1),
    "true as format": _with(("promise", "format"), True),
    "another format": _with(("promise", "format"), 2),
    "a list as kind": _with(("promise", "context", "kind"), []),
    "an unknown kind": _with(("promise", "mechanism", "kind"), "\u001b[2J"),
    "a context without a domain": _with(
        ("promise", "context"), {"kind": "uniform", "epsilon": "1"}
    ),
    "a field too many": _with(("promise", "more"), 1),
    "a name of nothing": _with(("promise", "name"), ""),
    "a name that is a list": _with(("promise", "name"), ["x"]),
    "another repeat": _with(("promise", "repeat"), "often"),
    "a label twice": _with(("promise", "context", "domain", "labels"), ["park", "bar", "bar"]),
    "a label that is a list": _with(
        ("promise", "context", "domain", "labels"), [["park"], "clinic", "bar"]
    ),
    "sensitive out of order": _with(
        ("promise", "context", "sensitive"), base64.b64encode(b"\2\0\0\0\1\0\0\0").decode()
    ),
    "sensitive outside": _with(
        ("promise", "context", "sensitive"), base64.b64encode(b"\7\0\0\0").decode()
    ),
    "half an integer": _with(("promise", "context", "sensitive"), "AAA="),
    "loose base64": _with(("promise", "context", "sensitive"), "AQAAAAIAAAA"),
    "a minus in words": _with((*CODE, "high"), "-5"),
    "a leading zero": _with((*CODE, "leftover"), "00"),
    "other digits": _with((*CODE, "leftover"), "\u0660"),
    "points without end": _with((*CODE, "points"), 2**52),
    "false as a number": RESOLVED_PLAIN.replace(b'"code_of_block":[0]', b'"code_of_block":[false]'),
    "no codes": _with(("promise", "mechanism", "codes"), []),
    "codes that are text": _with(("promise", "mechanism", "codes"), "codes"),
    "a domain of 2^31": _with(
        ("promise", "context", "domain"), {"kind": "range", "size": 2**31, "start": 0}
    ),
    "a domain of 2^40": _with(
        ("promise", "context", "domain"), {"kind": "range", "size": 2**40, "start": 0}
    ),
    "a grid of far too many cells": _with(
        ("promise", "context", "domain"),
        {
            "kind": "grid",
            "south": "0",
            "north": "90",
            "west": "0",
            "east": "90",
            "step": "0.0000001",
            "other": None,
        },
    ),
    "a list": b"[]",
    "a number": b"7",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_not_checked(name):
    assert HOSTILE[name] not in (RESOLVED, RESOLVED_PLAIN)
    code, lines = verdict_of(HOSTILE[name])
    assert code == 2
    assert len(lines) == 1
    assert lines[0].startswith(("cannot be read: ", "too large: "))
    assert lines[0].isprintable()


def test_the_file_that_the_hostile_ones_were_made_from_is_kept():
    """The twin: each of the files above differs from this one in the place that its name states."""
    assert verdict_of(RESOLVED)[0] == 0
    assert verdict_of(RESOLVED + b"\n")[0] == 0
    assert verdict_of(RESOLVED_PLAIN)[0] == 0
    assert verdict_of(_with(("promise", "format"), 1))[0] == 0


def test_a_huge_domain_is_too_large_before_it_fills_the_memory():
    code, lines = verdict_of(HOSTILE["a domain of 2^31"])
    assert (code, lines[0]) == (2, "too large: a high-low context of 2,147,483,648 symbols")


def test_a_huge_uniform_domain_is_decided_without_a_list_of_its_symbols():
    data = json.loads(
        sf.Survey("x", sf.Uniform(1000, 1), sf.PlainResponse(sf.Uniform(1000, 1))).resolved()
    )
    data["promise"]["context"]["domain"]["size"] = 2**30 - 1
    low = math.ceil(2**34 / (1 + math.e)) * 2
    code = {"points": 2**30 - 1, "outputs": 2**30, "high": str(2**35 - low), "low": str(low)}
    data["promise"]["mechanism"]["codes"][0].update(code)
    assert verdict_of(canonical_bytes(data))[0] == 0
    data["promise"]["context"]["epsilon"] = "0.9999"
    assert verdict_of(canonical_bytes(data))[0] == 1


def test_hostile_files_leave_no_traceback(tmp_path):
    """The same as a process, with the exit code that it ends in."""
    for name in ("nothing", "deep", "a huge integer", "a domain of 2^31", "an unknown kind"):
        (tmp_path / "hostile.json").write_bytes(HOSTILE[name])
        run = subprocess.run(
            [sys.executable, "-I", CHECKER, tmp_path / "hostile.json"],
            capture_output=True,
            check=False,
        )
        assert (run.returncode, run.stdout) == (2, b""), name
        assert b"Traceback" not in run.stderr
        assert b"\x1b" not in run.stderr


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"], ["missing.json"], ["."]])
def test_a_wrong_call_is_2(arguments, tmp_path):
    run = subprocess.run(
        [sys.executable, CHECKER, *arguments], capture_output=True, cwd=tmp_path, check=False
    )
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr


def test_optimised_python_says_the_same(tmp_path):
    """Without docstrings and assertions."""
    permutations().save(tmp_path / "broken.json")
    for arguments, code in (([], 2), (["broken.json"], 1)):
        runs = [
            subprocess.run(
                [sys.executable, *options, CHECKER, *arguments],
                cwd=tmp_path,
                capture_output=True,
                check=False,
            )
            for options in ([], ["-OO"])
        ]
        assert [run.returncode for run in runs] == [code, code]
        assert runs[0].stdout == runs[1].stdout
        assert runs[0].stderr == runs[1].stderr


def test_an_answer_that_nobody_reads_is_not_a_verdict(tmp_path):
    LUNCH.save(tmp_path / "s.json")
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, CHECKER, tmp_path / "s.json"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (run.returncode, run.stderr) == (2, b"")


def test_a_closed_output_is_not_a_verdict(tmp_path):
    LUNCH.save(tmp_path / "s.json")
    run = subprocess.run(
        ["/bin/sh", "-c", '"$0" "$1" "$2" >&-', sys.executable, CHECKER, tmp_path / "s.json"],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (run.returncode, run.stderr) == (2, b"")


# --- what it says ---------------------------------------------------------------------------------


def test_it_says_what_was_kept():
    code, said = said_of(LUNCH.resolved())
    assert code == 0
    assert 'Survey:       "lunch-2026"' in said
    assert f"Fingerprint:  {LUNCH.fingerprint}" in said
    assert 'Labels:       3: "park", "clinic", "bar"' in said
    assert "Asked:        once" in said
    assert "Context:      high-low" in said
    assert (
        '  1            4  2 sensitive labels ("clinic", "bar") against every other label' in said
    )
    assert '  none         2  1 label ("park") against every other label' in said
    assert said.endswith("kept: every pair, every report")


def _pairs(context):
    """Ordered pairs by what they are promised, one after another."""
    counts = {}
    for x in range(context.size):
        for x2 in range(context.size):
            if x != x2:
                epsilon = context.exact_epsilon(x, x2)
                counts[epsilon] = counts.get(epsilon, 0) + 1
    return counts


@pytest.mark.parametrize(
    "context",
    [
        sf.Uniform(5, "0.1"),
        sf.HighLow(6, [0, 4], "1/3"),
        sf.Tiers([0, 1, 2, 1, 3, 0], [1, 2, 1, "inf"]),
        sf.Blocks([0, 0, 1, 1, 1, 2], [1, 2, 1]),
        sf.Blocks([0, 0, 1, 1, 1, 2], "0.5", across=2),
        sf.union([sf.Tiers([0, 0, 1], [1, 2]), sf.HighLow(3, [0], 1)]),
    ],
    ids=repr,
)
def test_the_table_of_promises_counts_every_pair(context):
    survey = sf.Survey("x", context)
    read = check_certificate.context_of(json.loads(survey.resolved())["promise"]["context"])
    counts = {}
    for row in check_certificate.promise_rows(read):
        epsilon = math.inf if row.epsilon == "none" else Fraction(row.epsilon)
        counts[epsilon] = counts.get(epsilon, 0) + row.pairs
    assert counts == _pairs(context)


def test_a_matrix_is_summed_up():
    context = sf.PrivacyMatrix([[0, 1, "inf"], ["0.25", 0, 3], ["inf", "inf", 0]])
    code, said = said_of(sf.Survey("x", context, sf.design(context).mechanism).resolved())
    assert code == 0
    assert "  0.25 to 3      3  pairs of labels with a promise of their own" in said
    assert "  none           3  pairs of labels without a promise" in said


@pytest.mark.parametrize(
    "character",
    ["\x1b", "\x07", "\x9b", "\u202e", "\u200b", "\u2028", "\u2029", "\ue000", "\U000e0001"],
)
def test_control_characters_are_never_printed(character):
    labels = [f"park{character}[2Kkept: every pair", "clinic", "bar\\u001b"]
    survey = sf.Survey("x", sf.HighLow(labels, labels[1:], 1))
    raw = survey.resolved().replace(
        b'"name":"x"', f'"name":"a{json.dumps(character, ensure_ascii=False)[1:-1]}b"'.encode()
    )
    code, said = said_of(raw)
    assert code == 0
    assert character not in said
    escaped = f"\\u{ord(character):04x}" if ord(character) < 2**16 else f"\\U{ord(character):08x}"
    assert f'"park{escaped}[2Kkept: every pair"' in said
    assert f'Survey:       "a{escaped}b"' in said
    assert '"bar\\\\u001b"' in said


def test_long_labels_are_cut_and_many_are_counted():
    survey = sf.Survey("x", sf.Uniform(["x" * 5000, *(f"label {i}" for i in range(20))], 1))
    said = said_of(survey.resolved())[1]
    assert '"' + "x" * 60 + '…"' in said
    assert "and 13 more" in said
    assert max(len(line) for line in said.splitlines()) < 300


# --- exact numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", ["1", "0.01", "1/3", "7.25", "39.9", "0.000000000000000001", "40"]
)
def test_the_largest_odds_within_epsilon_are_kept_and_one_word_more_is_not(epsilon):
    exact = Fraction(epsilon)
    b = 10**9 + 7
    below, above = check_certificate.exp_bounds(exact, 400)
    a = b * below >> 400
    assert a == b * above >> 400
    assert check_certificate.keeps(a, b, exact)
    assert not check_certificate.keeps(a + 1, b, exact)


def test_huge_promises_take_no_time():
    assert check_certificate.keeps(N, 1, Fraction(10**18))
    assert not check_certificate.keeps(N, 0, Fraction(10**18))
    assert check_certificate.keeps(N, 0, None)


# --- the command ----------------------------------------------------------------------------------


def _files(folder):
    LUNCH.save(folder / "kept.json")
    permutations().save(folder / "broken.json")
    (folder / "hostile.json").write_bytes(HOSTILE["a duplicate key"])
    return {"kept.json": 0, "broken.json": 1, "hostile.json": 2, "missing.json": 2}


def test_the_command_says_what_the_lone_file_says(tmp_path):
    for name, code in _files(tmp_path).items():
        lone = subprocess.run(
            [sys.executable, "-I", CHECKER, name], cwd=tmp_path, capture_output=True, check=False
        )
        command = run_command("check", name, folder=tmp_path)
        assert lone.returncode == command.code == code
        assert (lone.stdout.decode(), lone.stderr.decode()) == (command.out, command.err)


@pytest.mark.slow
def test_the_command_runs_from_a_wheel(tmp_path):
    """Build a wheel and run it in its own environment, away from the sources."""
    root = CHECKER.parents[1]
    built = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, root]
    subprocess.run(built, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert opened.read("sfumato/cli/check_certificate.py") == CHECKER.read_bytes()
        for vectors in (root / "test-vectors").glob("*.json"):
            copy = opened.read(f"sfumato/conformance/test-vectors/{vectors.name}")
            assert copy == vectors.read_bytes()
        for template in (root / "src" / "sfumato" / "pages").rglob("*.html"):
            assert opened.getinfo(template.relative_to(root / "src").as_posix())
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(
        sysconfig.get_paths()["purelib"]
    )  # NumPy and the like, after what is here
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel], check=True
    )
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = [python, "-c", "import sfumato; print(sfumato.__file__)"]
    assert (
        str(tmp_path)
        in subprocess.run(
            where, env=clean, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
    )
    for name, code in _files(tmp_path).items():
        lone = subprocess.run(
            [sys.executable, "-I", CHECKER, name], cwd=tmp_path, capture_output=True, check=False
        )
        command = [python, "-m", "sfumato", "check", name]
        run = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, check=False)
        assert run.returncode == code
        assert (run.stdout, run.stderr) == (lone.stdout, lone.stderr)
