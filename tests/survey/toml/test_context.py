"""Tiers, blocks, promises across and unions: from the file to the resolved survey."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.contexts import Blocks, ContextUnion, HighLow, PrivacyMatrix, Tiers, Uniform, union
from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain
from sfumato.domains.partitions import grid_tiles, nearest_places
from sfumato.errors import InvalidSurvey
from sfumato.survey import Survey
from sfumato.survey.toml import file
from sfumato.survey.toml.file import parse_survey_toml

INF = math.inf
LABELS = ["park", "café", "clinic", "bar"]
DOMAIN = 'kind = "labels"\nlabels = ["park", "café", "clinic", "bar"]'
FILE = 'kind = "labels"\nfile = "pages.csv"'
PAGES = (
    "label,topic,tier,private\npark,a,low,no\ncafé,b,low,yes\nclinic,a,high,yes\nbar,c,public,no\n"
)
TIERS = Tiers(
    ["low", "low", "high", "public"], {"low": 4, "high": 0.5, "public": INF}, domain=LABELS
)
EPSILONS = 'epsilons = { low = 4.0, high = 0.5, public = "inf" }\n'


def _toml(context, domain=DOMAIN, tail=""):
    return f'name = "q"\n[domain]\n{domain}\n[context]\n{context}\n{tail}\n'


def _load(folder, text):
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    return Survey.load(path)


@pytest.fixture
def read(tmp_path):
    """Read the context of a file alone: which mechanism would be chosen is another matter."""
    return lambda text: parse_survey_toml(text.encode(), tmp_path).context


CONTEXTS = {
    "tiers, a list": (
        'kind = "tiers"\ntier_of = ["low", "low", "high", "public"]\n' + EPSILONS,
        TIERS,
    ),
    "tiers, a table": (
        'kind = "tiers"\n'
        'tier_of = { bar = "public", park = "low", "café" = "low", clinic = "high" }\n' + EPSILONS,
        TIERS,
    ),
    "tiers, whole numbers": (
        'kind = "tiers"\ntier_of = [2, 2, 1, 3]\nepsilons = { 1 = 0.5, 2 = 4, 3 = inf }',
        TIERS,
    ),
    "tiers, in order": (
        'kind = "tiers"\ntier_of = [1, 1, 2, 3]\nepsilons = [4, 0.5, "inf"]',
        TIERS,
    ),
    "blocks, a table of epsilons": (
        'kind = "blocks"\nblock_of = ["a", "b", "a", "b"]\nepsilon = { b = 2, a = 0.1 }',
        Blocks([0, 1, 0, 1], [Fraction(1, 10), 2], domain=LABELS),
    ),
    "blocks, a list of epsilons": (
        'kind = "blocks"\nblock_of = ["a", "b", "a", "b"]\nepsilon = [0.1, 2]',
        Blocks([0, 1, 0, 1], ["0.1", 2], domain=LABELS),
    ),
    "blocks by whole numbers": (
        'kind = "blocks"\nblock_of = [7, 3, 7, 3]\nepsilon = { 7 = 0.1, 3 = 2 }',
        Blocks([0, 1, 0, 1], ["0.1", 2], domain=LABELS),
    ),
    "blocks from a table": (
        'kind = "blocks"\nblock_of = { park = "a", bar = "a", clinic = "b", "café" = "b" }\n'
        "epsilon = { a = 1, b = 2 }",
        Blocks([0, 1, 1, 0], [1, 2], domain=LABELS),
    ),
    "across": (
        'kind = "blocks"\nblock_of = [1, 2, 1, 2]\nepsilon = 1\nacross = 2.0',
        Blocks([0, 1, 0, 1], 1, across=2, domain=LABELS),
    ),
    "across, each its own": (
        'kind = "blocks"\nblock_of = [1, 2, 1, 2]\nepsilon = [1, 1.5]\nacross = 2.0',
        Blocks([0, 1, 0, 1], [1, 1.5], across=2, domain=LABELS),
    ),
    "sensitive inside blocks": (
        'kind = "blocks"\nblock_of = ["a", "b", "a", "b"]\n'
        'epsilon = { a = 1, b = 2 }\nsensitive = ["clinic"]',
        union([HighLow(2, [1], 1), Uniform(2, INF)], block_of=[0, 1, 0, 1], domain=LABELS),
    ),
    "everybody sensitive": (
        'kind = "blocks"\nblock_of = ["a", "b", "a", "b"]\n'
        'epsilon = 1\nsensitive = ["park", "clinic"]',
        Blocks([0, 1, 0, 1], [1, INF], domain=LABELS),
    ),
}
each_context = pytest.mark.parametrize(("text", "context"), CONTEXTS.values(), ids=CONTEXTS)


# --- what can be said -----------------------------------------------------------------------------


@each_context
def test_context_is_read_as_typed(read, text, context):
    assert read(_toml(text)) == context


@each_context
def test_survey_round_trips_and_certifies(tmp_path, text, context):
    survey = _load(tmp_path, _toml(text))
    again = Survey.from_resolved(survey.resolved())
    assert again.fingerprint == survey.fingerprint
    assert again.context == context
    survey.certify()
    again.certify()


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ('kind = "tiers"\ncolumn = "tier"\n' + EPSILONS, TIERS),
        (
            'kind = "blocks"\ncolumn = "topic"\nepsilon = { a = 1, b = 2, c = 3 }',
            Blocks([0, 1, 0, 2], [1, 2, 3], domain=LABELS),
        ),
        (
            'kind = "blocks"\ncolumn = "topic"\nepsilon = 1\nsensitive = { column = "private" }',
            union(
                [HighLow(2, [1], 1), Uniform(1, 1), Uniform(1, INF)],
                block_of=[0, 1, 0, 2],
                domain=LABELS,
            ),
        ),
    ],
    ids=["tiers", "blocks", "sensitive"],
)
def test_columns_of_a_labels_file(tmp_path, read, text, context):
    (tmp_path / "pages.csv").write_text(PAGES, encoding="utf-8")
    assert read(_toml(text, FILE)) == context


def test_other_needs_a_tier_in_the_file(tmp_path, read):
    (tmp_path / "pages.csv").write_text(PAGES, encoding="utf-8")
    text = _toml('kind = "tiers"\ncolumn = "tier"\n' + EPSILONS, FILE + '\nother = "{}"')
    with pytest.raises(
        InvalidSurvey,
        match=r"the `other` label is not in domain\.file\. Add it there, with a tier",
    ):
        read(text.replace("{}", "elsewhere"))
    context = read(text.replace("{}", "bar"))
    assert context == TIERS.with_domain(Domain(LABELS, other="bar"))


def test_other_needs_no_epsilon(tmp_path, read):
    """It stands in a block of its own that nobody named and that holds no pair."""
    (tmp_path / "pages.csv").write_text(PAGES, encoding="utf-8")
    text = 'kind = "blocks"\ncolumn = "topic"\nepsilon = { a = 1, b = 2, c = 3 }'
    context = read(_toml(text, FILE + '\nother = "elsewhere"'))
    domain = Domain(LABELS, other="elsewhere")
    assert context == Blocks([0, 1, 0, 2, 3], [1, 2, 3, INF], domain=domain)


GRID = 'kind = "grid"\nsouth = 0\nnorth = 4\nwest = 0\neast = 4\nstep = 1'


def test_tiles_may_have_their_own_epsilon(read):
    grid = GridDomain(0, 4, 0, 4, 1)
    listed = read(_toml('kind = "blocks"\nrows = 2\ncolumns = 1\nepsilon = [1, 2]', GRID))
    named = read(_toml('kind = "blocks"\nrows = 2\ncolumns = 1\nepsilon = { 1 = 2, 0 = 1 }', GRID))
    assert listed == named == Blocks(grid_tiles(grid, 2, 1), [1, 2], domain=grid)


def test_ambiguous_lists_of_places_are_rejected(tmp_path, read):
    """The second place is the first that the grid meets."""
    (tmp_path / "cities.csv").write_text("latitude,longitude\n4,4\n0,0\n")
    text = 'kind = "blocks"\nnearest = "cities.csv"\nepsilon = {}'.replace("{}", "{ 0 = 1, 1 = 2 }")
    grid = GridDomain(0, 4, 0, 4, 1)
    places = nearest_places(grid, [4, 0], [4, 0])
    assert read(_toml(text, GRID)) == Blocks(places, {0: 1, 1: 2}, domain=grid)
    with pytest.raises(InvalidSurvey, match="ambiguous"):
        read(_toml(text.replace("{ 0 = 1, 1 = 2 }", "[1, 2]"), GRID))


# --- the choice of a mechanism --------------------------------------------------------------------


@pytest.mark.parametrize("share", ["0", "0.25", "1", "1.0"])
def test_sensitive_share_is_passed_on(tmp_path, share, monkeypatch):
    passed = {}

    def chosen(context, **options):
        passed.update(options)
        return mechanism_for(context)

    monkeypatch.setattr(file, "mechanism_for", chosen)
    text = 'kind = "high-low"\nepsilon = 1\nsensitive = ["clinic"]'
    _load(tmp_path, _toml(text, tail=f'[mechanism]\ncode = "cyclic"\nsensitive_share = {share}'))
    assert passed == {"code": "cyclic", "max_bits": None, "sensitive_share": float(share)}
    passed.clear()
    _load(tmp_path, _toml(text))
    assert passed == {"code": "best", "max_bits": None}


HIGH_LOW = """
name = "pinned"
{edition}
[domain]
kind = "range"
size = 40
[context]
kind = "high-low"
epsilon = {epsilon}
sensitive = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
"""
# Computed before the editions had different defaults. Never recompute them.
FIRST_FINGERPRINTS = {
    "0.5": "7b94dcd85d25ce543fda8ede16473c4ed5b390b215f9925f6fa46414cc05ce0b",
    "1": "7cbd9d496cda2018c717f05c35dabae2fdfff21372fb7e4610a4c51fac5dd441",
    "2": "80d45dc25f118db87a93b1b7e29c19643e7198736a1dab86c27c1769f295a84a",
}


def load_high_low(tmp_path, epsilon, edition="", tail=""):
    text = HIGH_LOW.format(epsilon=epsilon, edition=edition) + tail
    (tmp_path / "q.toml").write_text(text, encoding="utf-8")
    return Survey.load(tmp_path / "q.toml")


@pytest.mark.parametrize("epsilon", FIRST_FINGERPRINTS)
def test_edition_1_keeps_its_high_low_mechanism(tmp_path, epsilon):
    survey = load_high_low(tmp_path, epsilon)
    assert survey.fingerprint == FIRST_FINGERPRINTS[epsilon]
    assert Survey("pinned", survey.context).fingerprint == FIRST_FINGERPRINTS[epsilon]


# Edition 2 with the mechanism of edition 1, computed at the same time. Never recompute them.
MINIMAX_FINGERPRINTS = {
    "0.5": "9fd291c98e0d716ca7ab6e6b23a6a491c933062221312b28abc13c428fda3548",
    "1": "e737425021f0fcdd4c294282c3fce344b4061254f7296e8ebd76d937ee8e57bd",
    "2": "9a9cb11439f946816918cfcc266c2eaad9691d3eb5217a81af8e5da2bb9e636b",
}


@pytest.mark.parametrize("epsilon", MINIMAX_FINGERPRINTS)
def test_margin_of_0_restores_earlier_fingerprints(tmp_path, epsilon):
    """Files of edition 2 that were served before the margin existed."""
    tail = "[mechanism]\nworst_case_margin = 0"
    restored = load_high_low(tmp_path, epsilon, "edition = 2", tail)
    assert restored.fingerprint == MINIMAX_FINGERPRINTS[epsilon]
    default = load_high_low(tmp_path, epsilon, "edition = 2")
    assert default.fingerprint != MINIMAX_FINGERPRINTS[epsilon]


@pytest.mark.parametrize("epsilon", FIRST_FINGERPRINTS)
def test_edition_2_chooses_for_ordinary_crowds(tmp_path, epsilon):
    survey = load_high_low(tmp_path, epsilon, "edition = 2")
    expected = mechanism_for(survey.context, worst_case_margin=0.1)
    assert survey.mechanism.to_record() == expected.to_record()
    assert survey.mechanism.to_record() != mechanism_for(survey.context).to_record()
    same_in_python = Survey("pinned", survey.context, edition=2)
    assert same_in_python.fingerprint == survey.fingerprint


@pytest.mark.parametrize(
    "tail", ["worst_case_margin = 0", 'code = "hadamard"', "sensitive_share = 0.9"]
)
def test_choices_in_the_file_override_the_margin(tmp_path, tail):
    edition_2 = load_high_low(tmp_path, 2, "edition = 2", f"[mechanism]\n{tail}")
    edition_1_tail = "" if tail.startswith("worst") else f"[mechanism]\n{tail}"
    edition_1 = load_high_low(tmp_path, 2, "", edition_1_tail)
    assert edition_2.mechanism.to_record() == edition_1.mechanism.to_record()


def test_margin_in_the_file_is_passed_on(tmp_path):
    survey = load_high_low(tmp_path, 2, "edition = 2", "[mechanism]\nworst_case_margin = 1.5")
    expected = mechanism_for(survey.context, worst_case_margin=1.5)
    assert survey.mechanism.to_record() == expected.to_record()


@pytest.mark.parametrize("margin", ["-0.1", "inf", '"much"', "true"])
def test_invalid_margin_in_the_file_raises(tmp_path, margin):
    with pytest.raises(InvalidSurvey, match="worst_case_margin must be"):
        load_high_low(tmp_path, 1, "edition = 2", f"[mechanism]\nworst_case_margin = {margin}")


def test_edition_1_has_no_margin(tmp_path):
    with pytest.raises(InvalidSurvey, match=r"worst_case_margin is a field of edition 2\. Add"):
        load_high_low(tmp_path, 1, "", "[mechanism]\nworst_case_margin = 0")


# --- resolved surveys -----------------------------------------------------------------------------

RESOLVED = {
    "own epsilon": Blocks([0, 0, 0, 1, 1, 2], [1, 2, 3]),
    "equal sizes, unequal epsilon": Blocks([0, 0, 0, 1, 1, 1], [1, 2]),
    "infinite inside one": Blocks([0, 0, 0, 1, 1, 1], [1, INF]),
    "across": Blocks([0, 0, 0, 1, 1, 1], 1, across=2),
    "across, a detour": Blocks([0, 0, 0, 1, 1, 1], [9, 1], across=2),
    "uniform in disguise": Blocks([0, 0, 0, 1, 1, 1], 2, across=2),
    "tiers": Tiers([0, 0, 1, 1, 2, 2], [1, 2, INF]),
    "high-low in disguise": Tiers([0, 0, 1, 1, 2, 2], [1, 1, INF]),
    "union": union([HighLow(3, [0, 1], 1), Uniform(3, 1)]),
    "union of many kinds": union(
        [
            HighLow(3, [0], 1),
            Tiers([0, 1, 1], [1, 2]),
            Blocks([0, 0, 1], 1, across=2),
            PrivacyMatrix([[0, 1], [2, 0]]),
        ]
    ),
    "union of unions": union([union([HighLow(2, [0], 1), Uniform(2, 1)]), Uniform(2, 3)]),
    "uniform parts": ContextUnion([Uniform(2, 1), Uniform(2, 1)], [0, 0, 1, 1]),
    "matrix of tiers": PrivacyMatrix([[0, 1, 1], [2, 0, 2], [INF, INF, 0]]),
    "matrix of two levels": PrivacyMatrix([[0, 1, 2], [1, 0, 2], [2, 2, 0]]),
    "matrix of a union": PrivacyMatrix([[0, 1, INF], [INF, 0, INF], [INF, INF, 0]]),
}


@pytest.mark.parametrize("context", RESOLVED.values(), ids=RESOLVED)
def test_resolved_survey_round_trips_with_its_fingerprint(context):
    survey = Survey("q", context)
    again = Survey.from_resolved(survey.resolved())
    assert again.fingerprint == survey.fingerprint
    assert again.resolved() == survey.resolved()
    assert again.context == context
    assert again.mechanism.to_record() == survey.mechanism.to_record()
    assert again.mechanism.context == survey.mechanism.context
    again.certify()


epsilons = st.sampled_from(["0.1", "0.5", "1", "4/3", "2", "5"])


@st.composite
def new_contexts(draw, nested=True):
    kind = draw(st.sampled_from(["blocks", "across", "tiers", *["union"] * nested]))
    if kind == "union":
        return union(draw(st.lists(new_contexts(nested=False), min_size=1, max_size=3)))
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
    by_name = {name: draw(epsilons | st.just("inf")) for name in sorted(set(names))}
    if kind == "tiers":
        return Tiers(names, by_name)
    return Blocks(names, by_name, across=draw(epsilons) if kind == "across" else INF)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(new_contexts())
def test_random_resolved_surveys_round_trip_with_their_fingerprint(context):
    survey = Survey("q", context)
    again = Survey.from_resolved(survey.resolved())
    assert again.resolved() == survey.resolved()
    assert again.fingerprint == survey.fingerprint
