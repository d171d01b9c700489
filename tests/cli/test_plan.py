"""`plan`: people for an error, an error for people; exit code 1 where it cannot be done."""

import json

import pytest

import sfumato as sf
from support.command import read_folder


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Predict from 16 draws: these tests do not compare predictions with real reports."""
    monkeypatch.setattr("sfumato.planning.decoded_forecast._MAX_DRAWS", 16)


@pytest.fixture(autouse=True)
def crowd(folder):
    (folder / "crowd.csv").write_text(
        "label,share\npark,0.5\ncafé,0.3\nclinic,0.2\n", encoding="utf-8"
    )
    return folder


def test_people_for_an_error(call):
    result = call("plan", "lunch.toml", "--error", "0.05")
    assert (result.code, result.err) == (0, "")
    assert "people, the total variation error is at most 0.05 with probability 95%" in result.out
    assert "worst population" in result.out
    for row in ("classical LDP, ε = 1", "Hadamard code", "best closed form"):
        assert row in result.out


def test_the_json_of_a_plan(call):
    found = json.loads(call("plan", "lunch.toml", "--people", "10000", "--json").out)
    assert (found["people"], found["goal"], found["feasible"]) == (10_000, None, True)
    assert (found["distribution"], found["estimate"], found["decoder"]) == (
        "worst",
        "unbiased",
        None,
    )
    assert {row["name"] for row in found["mechanisms"]} == {"classical", "hadamard", "best"}
    best = next(row for row in found["mechanisms"] if row["name"] == found["mechanism"])
    assert best["unbiased"]["error"] == found["error"] > found["mean"] > 0
    back = json.loads(call("plan", "lunch.toml", "--error", repr(found["error"]), "--json").out)
    assert back["people"] == 10_000


LEVEL = """name = "level"
[domain]
kind = "range"
size = 4
[context]
kind = "metric"
epsilon = 2.0
distances = [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
"""


def test_a_metric_is_compared_with_the_exponential_mechanism(call, folder):
    (folder / "level.toml").write_text(LEVEL)
    result = call("plan", "level.toml", "--error", "0.05")
    assert (result.code, result.err) == (0, "")
    assert "exponential mechanism" in result.out
    found = json.loads(call("plan", "level.toml", "--error", "0.05", "--json").out)
    rows = {row["name"]: row for row in found["mechanisms"]}
    assert list(rows) == ["classical", "exponential", "hadamard", "best"]
    assert (found["mechanism"], found["advice"]) == ("best", [])
    assert rows["exponential"]["what"] == "exponential mechanism"
    assert rows["exponential"]["unbiased"]["people"] > found["people"]
    ladder = call("plan", "level.toml").out
    assert ladder.count("exponential mechanism") == 2


def test_a_survey_with_a_table_for_its_own_matrix(call, folder):
    context = sf.PrivacyMatrix([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    Q = [["0.5", "0.25", "0.25"], ["0.2", "0.6", "0.2"], ["0.25", "0.25", "0.5"]]
    sf.Survey("designed", context, sf.TableResponse.from_fractions(context, Q)).save(
        folder / "designed.json"
    )
    found = json.loads(call("plan", "designed.json", "--people", "1000", "--json").out)
    rows = {row["name"]: row for row in found["mechanisms"]}
    assert list(rows) == ["classical", "exponential", "hadamard", "best", "own"]
    assert (found["mechanism"], rows["own"]["what"], found["advice"]) == (
        "own",
        "designed for this matrix",
        [],
    )
    assert (
        rows["best"]["reason"]
        == rows["hadamard"]["reason"]
        != rows["exponential"]["reason"]
        is None
    )
    shown = call("plan", "designed.json", "--people", "1000").out
    assert "designed for this matrix" in shown
    assert "sf.design" not in shown
    assert "–" not in shown
    assert "The bound of sfumato design is a different one" in shown


@pytest.mark.parametrize(
    ("options", "is_used"),
    [
        (("--decoder", "auto"), False),
        (("--decoder", "projection"), False),
        (("--decoder", "unbiased"), True),
        (("--decoder", "projection", "--distribution", "uniform"), True),
        (("--decoder", "projection", "--distribution", "uniform", "--measure", "symbol"), False),
        ((), True),
    ],
)
def test_decoder_that_is_not_used_is_mentioned(call, options, is_used):
    result = call("plan", "lunch.toml", "--people", "1000", *options)
    assert result.code == 0
    assert ("is not used" in result.err) is not is_used


def test_default_is_a_table_of_errors(call):
    out = call("plan", "lunch.toml").out
    assert all(f"{people:,}" in out for people in (1000, 10_000, 100_000, 1_000_000))
    found = json.loads(call("plan", "lunch.toml", "--json").out)
    assert [step["people"] for step in found["plans"]] == [1000, 10_000, 100_000, 1_000_000]
    errors = [step["error"] for step in found["plans"]]
    assert errors == sorted(errors, reverse=True)


def test_a_distribution_from_a_file(call, folder):
    found = json.loads(
        call("plan", "lunch.toml", "--people", "10000", "--distribution", "crowd.csv", "--json").out
    )
    assert (found["distribution"], found["estimate"], found["decoder"]) == (
        "given",
        "decoded",
        "auto",
    )
    (folder / "counts.csv").write_text(
        "label,count\nclinic,200\npark,500\ncafé,300\n", encoding="utf-8"
    )
    counted = json.loads(
        call(
            "plan", "lunch.toml", "--people", "10000", "--distribution", "counts.csv", "--json"
        ).out
    )
    assert counted["error"] == found["error"]
    (folder / "ages.csv").write_text("label,share\n-2,0.5\n7,0.5\n", encoding="utf-8")
    assert call("plan", "ages.toml", "--people", "1000", "--distribution", "ages.csv").code == 0


def test_an_estimate_is_a_distribution_to_plan_with(call):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "reports.csv")
    call("estimate", "lunch.toml", "reports.csv", "-o", "estimate.csv")
    assert (
        call("plan", "lunch.toml", "--people", "1000", "--distribution", "estimate.csv").code == 0
    )


def test_a_total_of_labels(call):
    options = ("--error", "0.01", "--measure", "total")
    found = json.loads(
        call("plan", "lunch.toml", *options, "--labels", "clinic, bar", "--json").out
    )
    assert found["measure"] == "total"
    assert found["people"] > 1000
    assert call("plan", "numbered.toml", *options, "--labels", "1,30").code == 0
    assert call("plan", "grid.toml", *options, "--labels", '"0,0","1,2"').code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--error", "0.01", "--people", "100"),
        ("--error", "1e-9"),
        ("--error", "1e-9", "--distribution", "crowd.csv"),
    ],
)
def test_infeasible_plan_exits_1(call, arguments):
    result = call("plan", "lunch.toml", *arguments)
    assert (result.code, result.err) == (1, "")
    assert "larger ε" in result.out
    found = json.loads(call("plan", "lunch.toml", *arguments, "--json").out)
    assert found["feasible"] is False
    assert found["advice"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--error", "0"), "positive number"),
        (("--error", "2"), "does not require a survey"),
        (("--error", "nan"), "positive number"),
        (("--people", "0"), "people"),
        (("--people", "10", "--confidence", "95"), "confidence"),
        (("--people", "10", "--measure", "mean"), "measure must be one of"),
        (("--people", "10", "--measure", "total"), "requires labels="),
        (("--people", "10", "--measure", "total", "--labels", "zoo"), "not a label"),
        (("--people", "10", "--distribution", "absent.csv"), "cannot be read"),
        (("--people", "10", "--distribution", "answers.csv"), "label column"),
        (("--people", "10", "--distribution", "twice.csv"), "twice"),
        (("--people", "10", "--distribution", "words.csv"), "numbers only"),
        (("--people", "10", "--distribution", "zoo.csv"), "not a label"),
        (("--people", "10", "--distribution", "some.csv"), "add up to 1"),
        (("--people", "10", "--decoder", "nonsense"), "decoder must be one of"),
        (("--people", "10", "--html", "nowhere/plan.html"), "no folder"),
        (("--people", "10", "--plot", "lunch.toml"), "must not be the same file as an input"),
        (
            ("--people", "10", "--distribution", "crowd.csv", "--plot", "crowd.csv"),
            "must not be the same file as an input",
        ),
    ],
)
def test_wrong_calls_exit_2(error_from, folder, arguments, said):
    (folder / "twice.csv").write_text("label,share\npark,0.5\npark,0.5\n")
    (folder / "words.csv").write_text("label,share\npark,half\n")
    (folder / "zoo.csv").write_text("label,share\nzoo,1\n")
    (folder / "some.csv").write_text("label,share\npark,0.4\n")
    assert said in error_from("plan", "lunch.toml", *arguments)


def test_page_and_picture(call, folder):
    pytest.importorskip("matplotlib")
    result = call(
        "plan", "lunch.toml", "--error", "0.05", "--html", "plan.html", "--plot", "plan.png"
    )
    assert (result.code, result.err) == (0, "")
    assert "lunch-2026" in (folder / "plan.html").read_text(encoding="utf-8")
    assert (folder / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_written_by_default(call, folder):
    before = read_folder(folder)
    call("plan", "lunch.toml", "--error", "0.05")
    assert read_folder(folder) == before
