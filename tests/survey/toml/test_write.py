"""Surveys as TOML: what is saved is the same survey, or nothing is saved."""

import copy
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.contexts import Blocks, HighLow, Metric, PrivacyMatrix, Tiers, Uniform, union
from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.errors import InvalidArgument, InvalidSurvey, SfumatoError
from sfumato.survey import Question, Survey
from sfumato.survey.toml import write
from sfumato.survey.toml.context import CONTEXT_FIELDS_BY_KIND

FIRST_EDITION = Path(__file__).parents[1] / "first_edition"
FILES = sorted(path.name for path in FIRST_EDITION.glob("*.toml"))
FEW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
LABELS = st.lists(
    TEXTS.filter(bool).map(lambda text: Domain([text]).labels[0])
    | st.integers(-(2**53) + 1, 2**53 - 1),
    min_size=2,
    max_size=6,
    unique=True,
)
EPSILONS = st.one_of(
    st.sampled_from(["0.1", "1", "2.5", "1/3", "22/7"]),
    st.fractions(Fraction(1, 20), 8, max_denominator=50),
)
NAMES = st.integers(-3, 3) | st.sampled_from(["a", "B", "", "1", "é", 'q"', "x.y", "[z]"])


@st.composite
def domains(draw):
    kind = draw(st.sampled_from(["labels", "other", "range", "grid"]))
    if kind == "range":
        return IntegerDomain(draw(st.integers(2, 6)), start=draw(st.integers(-5, 2**40)))
    if kind == "grid":
        south = draw(st.sampled_from(["46.5", "-0.0000001", "12"]))
        north = str(Fraction(south) + Fraction(1, 2))
        degrees = f"{float(Fraction(north)):.7f}"
        other = draw(st.none() | st.just("abroad"))
        return GridDomain(south, degrees, -8, "-6.5", 0.5, other=other)
    labels = draw(LABELS)
    other = draw(st.sampled_from(["elsewhere", *labels])) if kind == "other" else None
    return Domain(labels, other=other)


@st.composite
def contexts(draw):
    domain = draw(domains())
    size = domain.size
    kind = draw(st.sampled_from([*CONTEXT_FIELDS_BY_KIND, "sensitive in blocks"]))
    epsilon = draw(EPSILONS)
    if kind == "uniform":
        return Uniform(domain, epsilon)
    if kind == "high-low":
        symbols = draw(st.sets(st.integers(0, size - 1), min_size=1))
        return HighLow(domain, [domain.labels[x] for x in symbols], epsilon)
    if kind == "metric":
        distances = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / 2
        return Metric(distances, epsilon, domain=domain)
    if kind == "matrix":
        entries = st.sampled_from(["0.5", "1", "inf", "1/3"])
        rows = [[draw(entries) if x != x2 else 0 for x2 in range(size)] for x in range(size)]
        return PrivacyMatrix(rows, domain=domain)
    names = draw(st.lists(NAMES, min_size=size, max_size=size))
    epsilon_of = {name: draw(EPSILONS) for name in names}
    if kind == "tiers":
        return Tiers(names, epsilon_of, domain=domain)
    if kind == "blocks":
        across = draw(st.sampled_from(["inf", "3", "10/3"]))
        return Blocks(names, draw(st.just(epsilon) | st.just(epsilon_of)), across=across,
                      domain=domain)  # fmt: skip
    parts = {}
    for name in set(names):
        block_size = names.count(name)
        sensitive = draw(st.sets(st.integers(0, block_size - 1)))
        parts[name] = Uniform(block_size, "inf")
        if len(sensitive) == block_size:
            parts[name] = Uniform(block_size, epsilon_of[name])
        elif sensitive:
            parts[name] = HighLow(block_size, sensitive, epsilon_of[name])
    return union(parts, block_of=names, domain=domain)


@st.composite
def surveys(draw):
    about = {
        "title": draw(TEXTS),
        "text": draw(TEXTS | st.just("Two\nlines,\r\nand a tab\t.")),
        "contact": draw(TEXTS),
        "minimum_reports": draw(st.integers(0, 2**53 - 1)),
        "opens": draw(st.sampled_from(["", "2026-11-01"])),
        "closes": draw(st.sampled_from(["", "2026-11-30T18:00Z"])),
        "repeat": draw(st.sampled_from(["once", {"every": "week", "distinct": 3}])),
    }
    context = draw(contexts())
    edition = draw(st.sampled_from([1, 2]))
    if edition == 2 and draw(st.booleans()):
        context = Question("mode of travel", context)
    plain = context.context if isinstance(context, Question) else context
    try:
        code = draw(st.sampled_from(["best", "hadamard", "cyclic", "randomized"]))
        mechanism = mechanism_for(plain, code=code)
    except SfumatoError:
        plain = Uniform(plain.domain, 1)
        context = Question(context.name, plain) if isinstance(context, Question) else plain
        mechanism = None
    return Survey("q", context, mechanism, edition=edition, **about)


def _pickle_and_load(survey):
    return pickle.loads(pickle.dumps(survey))  # noqa: S301


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@FEW
@given(survey=surveys())
def test_saved_surveys_are_the_same_surveys(survey, folder):
    survey.save(folder / "survey.toml")
    loaded = Survey.load(folder / "survey.toml")
    assert loaded.fingerprint == survey.fingerprint
    assert loaded.display_fingerprint == survey.display_fingerprint
    assert loaded == survey


@pytest.mark.parametrize("name", FILES)
def test_files_of_the_first_edition_can_be_saved(name, tmp_path):
    if name.startswith("h3"):
        pytest.importorskip("h3")
    survey = Survey.load(FIRST_EDITION / name)
    if name == "h3-file.toml":
        with pytest.raises(InvalidSurvey, match=r"H3 cells without a file.* \.json instead"):
            survey.save(tmp_path / name)
        assert list(tmp_path.iterdir()) == []
        return
    survey.save(tmp_path / name)
    assert Survey.load(tmp_path / name) == survey


def test_a_box_of_h3_cells_is_kept(tmp_path):
    pytest.importorskip("h3")
    (tmp_path / "box.toml").write_text(
        'name = "q"\nedition = 2\n[domain]\nkind = "h3"\nsouth = 47.30\nnorth = 47.5\nwest = 8.4\n'
        'east = 8.6\nresolution = 6\nother = "abroad"\n[context]\nkind = "uniform"\nepsilon = 1\n'
    )
    survey = Survey.load(tmp_path / "box.toml")
    for twin in (survey, _pickle_and_load(survey)):
        twin.save(tmp_path / "saved.toml")
        text = (tmp_path / "saved.toml").read_text("utf-8")
        assert "\nsouth = 47.30\nnorth = 47.5\n" in text
        assert Survey.load(tmp_path / "saved.toml") == survey
    resolved = Survey.from_resolved(survey.resolved())
    with pytest.raises(InvalidSurvey, match=r"H3 cells without a file.* \.json instead"):
        resolved.save(tmp_path / "resolved.toml")
    assert not (tmp_path / "resolved.toml").exists()


TABLE = """name = "q"
edition = 2
[domain]
kind = "labels"
labels = ["under 18", "18 and over", "no answer"]
[context]
kind = "uniform"
epsilon = 1.0
[table]
column = "age"
missing = "no answer"
missing_codes = ["NA", "-99"]
bins = [18]
delimiter = ";"
"""


def test_the_table_section_is_kept(tmp_path):
    (tmp_path / "q.toml").write_text(TABLE)
    survey = Survey.load(tmp_path / "q.toml")
    survey.save(tmp_path / "saved.toml")
    saved = Survey.load(tmp_path / "saved.toml")
    assert saved.description.table == survey.description.table
    assert saved.description.table.bins == (18.0,)


def test_a_file_that_reads_tables_differently_is_never_written(tmp_path, monkeypatch):
    (tmp_path / "q.toml").write_text(TABLE)
    survey = Survey.load(tmp_path / "q.toml")
    monkeypatch.setattr(write, "write_table", lambda columns: {"column": columns.value})
    with pytest.raises(InvalidSurvey, match=r"cannot describe how this survey reads a table\."):
        survey.save(tmp_path / "saved.toml")
    assert not (tmp_path / "saved.toml").exists()


@pytest.mark.parametrize("copy_survey", [copy.copy, copy.deepcopy, _pickle_and_load])
def test_copies_read_tables_in_the_same_way(tmp_path, copy_survey):
    (tmp_path / "q.toml").write_text(TABLE + '[mechanism]\ncode = "cyclic"\n')
    survey = Survey.load(tmp_path / "q.toml")
    twin = copy_survey(survey)
    assert twin == survey
    assert twin.description == survey.description
    twin.save(tmp_path / "saved.toml")
    assert 'code = "cyclic"' in (tmp_path / "saved.toml").read_text("utf-8")


def test_exact_numbers_stay_exact(tmp_path):
    context = Blocks(["a", "a", "b", "b"], {"a": 0.1, "b": "1/3"}, across="2.50")
    Survey("q", context).save(tmp_path / "q.toml")
    text = (tmp_path / "q.toml").read_text("utf-8")
    assert text == (
        'name = "q"\nedition = 1\n\n'
        '[domain]\nkind = "range"\nsize = 4\nstart = 0\n\n'
        '[context]\nkind = "blocks"\nblock_of = ["a", "a", "b", "b"]\nacross = 2.5\n\n'
        '[context.epsilon]\na = 0.1\nb = "1/3"\n'
    )
    assert Survey.load(tmp_path / "q.toml").context.exact_epsilon(0, 1) == Fraction(1, 10)


def test_rows_of_a_matrix_are_lines(tmp_path):
    Survey("q", PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]])).save(tmp_path / "q.toml")
    assert "    [1.0, 0.0, 1.0],\n" in (tmp_path / "q.toml").read_text("utf-8")


def test_long_arrays_with_brackets_are_saved_quickly(tmp_path):
    """A pattern that tries every way to split the lines would never finish."""
    survey = Survey("q", Uniform([*map(str, range(500)), "a [b]"], 1))
    survey.save(tmp_path / "q.toml")
    assert Survey.load(tmp_path / "q.toml") == survey


@pytest.mark.parametrize("max_bits", [2, 3])
def test_short_reports_are_kept(tmp_path, max_bits):
    context = Uniform(4, "0.5")
    survey = Survey("q", context, mechanism_for(context, max_bits=max_bits))
    survey.save(tmp_path / "q.toml")
    assert Survey.load(tmp_path / "q.toml") == survey


# --- what TOML cannot describe --------------------------------------------------------------------

LINE = [[abs(x - x2) for x2 in range(4)] for x in range(4)]


def _designed():
    context = Metric(LINE, 1)
    return Survey("q", context, sf.design(context).mechanism)


IMPOSSIBLE = {
    "designed": _designed,
    "union of a matrix": lambda: Survey(
        "q", union([Uniform(2, 1), PrivacyMatrix([[0, 1], ["inf", 0]])])
    ),
    "nested union": lambda: Survey(
        "q", union([Uniform(2, 1), union([Uniform(2, 1), HighLow(2, [0], 1)])])
    ),
    "high-low with all sensitive": lambda: Survey(
        "q", union([HighLow(2, [0], 1), HighLow(2, [0, 1], 1)])
    ),
    "other words": lambda: Survey(
        "q", Uniform(4, 1), mechanism_for(Uniform(4, 1)).with_word_bits(32)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_other_surveys_are_refused_and_nothing_is_written(name, tmp_path):
    survey = IMPOSSIBLE[name]()
    with pytest.raises(InvalidSurvey, match=r"TOML cannot describe .*Save the survey as \.json"):
        survey.save(tmp_path / "q.toml")
    assert list(tmp_path.iterdir()) == []
    survey.save(tmp_path / "q.json")
    assert Survey.load(tmp_path / "q.json") == survey


# --- names of files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["survey", "survey.txt", "survey.csv", "survey.jsonl"])
def test_other_endings_are_refused(name, tmp_path):
    """Load would read the file as TOML."""
    with pytest.raises(InvalidArgument, match=r"must end in \.toml, or in \.json"):
        Survey("q", Uniform(2, 1)).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["s.toml", "s.TOML", "s.json", "s.JSON"])
def test_endings_may_be_in_capitals(name, tmp_path):
    survey = Survey("q", Uniform(2, 1))
    survey.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"{") == name.lower().endswith("json")
    assert Survey.load(tmp_path / name) == survey


@pytest.mark.parametrize("margin", [0, 0.1])
def test_both_high_low_choices_of_edition_2_can_be_saved(tmp_path, margin):
    context = HighLow(40, range(10), 2)
    mechanism = mechanism_for(context, worst_case_margin=margin)
    survey = Survey("q", context, mechanism, edition=2)
    survey.save(tmp_path / "q.toml")
    text = (tmp_path / "q.toml").read_text(encoding="utf-8")
    assert ("worst_case_margin" in text) == (margin == 0)
    assert Survey.load(tmp_path / "q.toml").fingerprint == survey.fingerprint
