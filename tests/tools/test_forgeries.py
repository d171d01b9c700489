"""A small run of `benchmarks/forgeries.py`: judges refuse forgeries, unless a fault is planted."""

import importlib.util
import itertools
import json
import sys

import pytest

import sfumato as sf
from sfumato.foundation.canonical import canonical_bytes
from support.lone_checker import check_certificate, verdict_of
from support.paths import ROOT
from support.second_format import to_format_2
from support.slow import slow_except

SCRIPT = ROOT / "benchmarks" / "forgeries.py"


def _load():
    spec = importlib.util.spec_from_file_location("forgeries", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["forgeries"] = module
    spec.loader.exec_module(module)
    return module


forgeries = _load()


def _large_surveys():
    """The large surveys of the script, with four blocks instead of ten, as they have fewer rows."""
    kept = [survey for survey in forgeries.large_surveys() if survey.mechanism.kind != "blocks"]
    return [*kept, forgeries.code_survey(sf.Blocks([x // 253 for x in range(1010)], 1))]


@pytest.mark.parametrize("count", slow_except({60}, [60, 300]))
def test_no_forgery_is_kept(count):
    judges = {"checker": forgeries.lone_checker(check_certificate), "certify": forgeries.certify}
    large = _large_surveys() if count == 60 else forgeries.large_surveys()
    outcome = forgeries.examine(judges, forgeries.Forger(2026, large=large), count)
    assert outcome["wrong"] == {"checker": 0, "certify": 0}, outcome["examples"]
    assert outcome["disagreements"] == 0
    assert min(outcome["truth"].values()) >= count // 8  # kept, broken and malformed ones
    assert outcome["large"] >= count // 4
    assert outcome["verdicts"]["checker"].get("too large", 0) == 0
    assert set(outcome["certificates"]) == {"right"}


def test_a_forgery_has_the_same_verdict_in_format_2():
    forger = forgeries.Forger(2027, large=[forgeries.flat_at_the_end(sf.Uniform(1010, 1))])
    codes = set()
    for _ in range(60):
        way, data = forger.forge()
        code = verdict_of(canonical_bytes(data))[0]
        raw = canonical_bytes(to_format_2(data, "lunch"))
        assert verdict_of(raw)[0] == code, way
        assert forgeries.certify(raw) == ("kept", "broken", "refused")[code], way
        codes.add(code)
    assert codes == {0, 1, 2}


# --- planted faults -------------------------------------------------------------------------------


def _by_sets(raw):
    """Judge by a shortcut that the checker once took: rows as sets, two of each kind for all."""
    data = json.loads(raw)["promise"]
    if data["mechanism"]["kind"] != "table" or forgeries.size_of(data["context"]["domain"]) <= 1000:
        return _verdict(raw)
    owed = forgeries.group_promises(data["context"])
    if owed is None or verdict_of(raw)[0] == 2:
        return _verdict(raw)
    of, inside, outward = owed
    rows = data["mechanism"]["rows"]
    kinds = {}
    for x, row in enumerate(rows):
        kind = (inside[of[x]], outward[of[x]], *sorted(set(zip(row, rows[-1], strict=True))))
        kinds.setdefault(kind, []).append(x)
    few = [x for members in kinds.values() for x in members[:2]]
    for x, x2 in itertools.permutations(few, 2):
        epsilon = inside[of[x]] if of[x] == of[x2] else outward[of[x]]
        if not all(
            forgeries.within(int(a), int(b), epsilon)
            for a, b in zip(rows[x], rows[x2], strict=True)
        ):
            return "broken"
    return "kept"


def _verdict(raw):
    return ("kept", "broken", "refused")[verdict_of(raw)[0]]


def _believes_everything(raw):
    return "kept"


def _believes_nothing(raw):
    return "broken"


def _falls_over(raw):
    return "crash: ZeroDivisionError"


PLANTED = {
    judge.__name__: judge
    for judge in (_by_sets, _believes_everything, _believes_nothing, _falls_over)
}


def test_a_judge_with_a_fault_is_caught():
    """All of them decide on the same forgeries."""
    flat = forgeries.flat_at_the_end(sf.Blocks([0] * 1001 + [1], 1))
    outcome = forgeries.examine(PLANTED, forgeries.Forger(2026, large=[flat]), 80)
    for name in PLANTED:
        assert outcome["wrong"][name] > 0, name
        passes = outcome["wrong passes"][name]
        assert (passes > 0) == (name in ("_by_sets", "_believes_everything")), name


def test_the_same_seed_forges_the_same():
    first, again = (forgeries.Forger(5) for _ in range(2))
    assert [first.forge() for _ in range(20)] == [again.forge() for _ in range(20)]
