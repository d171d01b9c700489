"""Survey files: what people type is meant as typed, and every message names the field."""

import gzip
import json
import math
from fractions import Fraction

import pytest

from sfumato.contexts import Blocks, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.partitions import grid_tiles, h3_parents, nearest_places
from sfumato.errors import InvalidSurvey
from sfumato.mechanisms import HighLowResponse
from sfumato.survey import Survey
from sfumato.survey.toml.file import parse_survey_toml

LABELS = 'kind = "labels"\nlabels = ["park", "café", "clinic"]'
UNIFORM = 'kind = "uniform"\nepsilon = 1.0'
GRID = 'kind = "grid"\nsouth = 25.0\nnorth = 50.0\nwest = -130.0\neast = -60.0\nstep = 0.2'
FILE = 'kind = "labels"\nfile = "pages.csv"'


def _toml(domain=LABELS, context=UNIFORM, head='name = "q"', tail=""):
    return f"{head}\n[domain]\n{domain}\n[context]\n{context}\n{tail}\n"


def _load(folder, text):
    path = folder / "survey.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Survey.load(path)


def _refused(folder, text):
    with pytest.raises(InvalidSurvey) as caught:
        _load(folder, text)
    return str(caught.value)


# --- what can be said -----------------------------------------------------------------------------


def test_labels_inline(tmp_path):
    survey = _load(
        tmp_path,
        _toml(
            LABELS + '\nother = "elsewhere"',
            'kind = "high-low"\nepsilon = 1\nsensitive = ["clinic"]',
        ),
    )
    assert survey.context == HighLow(
        Domain(["park", "café", "clinic"], other="elsewhere"), ["clinic"], 1
    )
    assert isinstance(survey.mechanism, HighLowResponse)
    survey.certify()


def test_everything_about_a_survey(tmp_path):
    head = (
        'name = "q"\ntitle = "Où?"\ntext = "Because."\ncontact = "me"\nminimum_reports = 100\n'
        'opens = "2026-01-01"\ncloses = "2026-12-31"\nrepeat = { every = "week", distinct = 3 }'
    )
    survey = _load(tmp_path, _toml(head=head))
    about = {
        "title": "Où?",
        "text": "Because.",
        "contact": "me",
        "opens": "2026-01-01",
        "closes": "2026-12-31",
    }
    repeat = {"every": "week", "distinct": 3}
    assert survey == Survey("q", survey.context, minimum_reports=100, repeat=repeat, **about)


def test_a_range(tmp_path):
    survey = _load(tmp_path, _toml('kind = "range"\nsize = 100\nstart = 18'))
    assert survey.context == Uniform(IntegerDomain(100, start=18), 1)


def test_the_designs_grid_in_tiles(tmp_path):
    grid = GridDomain(25, 50, -130, -60, 0.2)
    survey = _load(tmp_path, _toml(GRID, 'kind = "blocks"\nepsilon = 1.0\nrows = 25\ncolumns = 70'))
    assert survey.context == Blocks(grid_tiles(grid, 25, 70), 1, domain=grid)


def test_blocks_from_a_file_of_places(tmp_path):
    (tmp_path / "cities.csv").write_text("name,latitude,longitude\nWest,30,-120\nEast,40,-70\n")
    domain = (
        'kind = "grid"\nsouth = 25\nnorth = 50\nwest = -130\neast = -60\nstep = 5\nother = "abroad"'
    )
    survey = _load(
        tmp_path, _toml(domain, 'kind = "blocks"\nepsilon = 1.0\nnearest = "cities.csv"')
    )
    grid = GridDomain(25, 50, -130, -60, 5, other="abroad")
    assert survey.context == Blocks(nearest_places(grid, [30, 40], [-120, -70]), 1, domain=grid)


def test_h3_cells(tmp_path):
    pytest.importorskip("h3")
    box = 'kind = "h3"\nresolution = 7\nsouth = 40.70\nnorth = 40.82\nwest = -74.02\neast = -73.92'
    survey = _load(tmp_path, _toml(box, 'kind = "blocks"\nepsilon = 1\nparents = 5'))
    cells = H3Domain.box(7, south=40.70, north=40.82, west=-74.02, east=-73.92)
    assert survey.context == Blocks(h3_parents(cells, 5), 1, domain=cells)
    (tmp_path / "cells.csv").write_text("label\n" + "\n".join(map(str, cells.labels)) + "\n")
    assert _load(tmp_path, _toml('kind = "h3"\nfile = "cells.csv"')).context == Uniform(cells, 1)


def test_blocks_as_a_list_or_a_table(tmp_path):
    listed = _load(
        tmp_path, _toml(context='kind = "blocks"\nepsilon = 1\nblock_of = ["a", "a", "b"]')
    )
    named = _load(
        tmp_path,
        _toml(
            context='kind = "blocks"\nepsilon = 1\nblock_of = { clinic = 7, "café" = 1, park = 1 }'
        ),
    )
    assert listed.fingerprint == named.fingerprint
    assert listed.context == Blocks([0, 0, 1], 1, domain=["park", "café", "clinic"])


@pytest.mark.parametrize("infinity", ['"inf"', "inf", "+inf"])
def test_matrices_may_contain_infinity(tmp_path, infinity):
    context = f'kind = "matrix"\nmatrix = [[0, {infinity}], [1.0, 0]]'
    survey = _load(tmp_path, _toml('kind = "labels"\nlabels = ["no", "yes"]', context))
    assert survey.context == PrivacyMatrix([[0, math.inf], [1, 0]], domain=["no", "yes"])


@pytest.mark.parametrize("infinity", ['"inf"', "inf"])
def test_epsilon_may_be_infinite(tmp_path, infinity):
    assert (
        _load(
            tmp_path, _toml(context=f'kind = "uniform"\nepsilon = {infinity}')
        ).context.exact_minimum
        == math.inf
    )


def test_metrics_and_matrices_from_files(tmp_path):
    (tmp_path / "d.csv").write_text("0,1.5\n1.5,0\n")
    (tmp_path / "e.csv").write_text("0,inf\n0.1,0\n")
    labels = 'kind = "labels"\nlabels = ["no", "yes"]'
    metric = _load(tmp_path, _toml(labels, 'kind = "metric"\nepsilon = 0.1\ndistances = "d.csv"'))
    matrix = _load(tmp_path, _toml(labels, 'kind = "matrix"\nmatrix = "e.csv"'))
    assert metric.context == Metric([["0", "1.5"], ["1.5", "0"]], "0.1", domain=["no", "yes"])
    assert matrix.context.exact_epsilon(1, 0) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("typed", "exact"),
    [("0.1", Fraction(1, 10)), ('"0.1"', Fraction(1, 10)), ("0.30000000000000001",
     Fraction(30000000000000001, 10**17)),
     ("1e-3", Fraction(1, 1000)), ("2", Fraction(2)), ("1_0.5", Fraction(21, 2))],
)  # fmt: skip
def test_decimals_are_exact(tmp_path, typed, exact):
    assert (
        _load(
            tmp_path, _toml(context=f'kind = "uniform"\nepsilon = {typed}')
        ).context.exact_epsilon(0, 1)
        == exact
    )


def test_the_mechanism_can_be_chosen(tmp_path):
    hadamard = _load(tmp_path, _toml(tail='[mechanism]\ncode = "hadamard"'))
    randomized = _load(tmp_path, _toml(tail='[mechanism]\ncode = "randomized"\nmax_bits = 2'))
    assert (hadamard.mechanism.outputs, randomized.mechanism.outputs) == (4, 3)


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    plain = _load(tmp_path, _toml())
    assert _load(tmp_path, b"\xef\xbb\xbf" + _toml().replace("\n", "\r\n").encode()) == plain


# --- files of labels ------------------------------------------------------------------------------

PAGES = "label,topic,private\nnews,a,no\nhealth,b,yes\nsport,a,\n"


def _pages(folder, content=PAGES, name="pages.csv"):
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)


@pytest.mark.parametrize(
    "content",
    [PAGES, "\ufeff" + PAGES, PAGES.replace("\n", "\r\n"), PAGES[:-1],
     'label,topic,private\n"news",a,0\nhealth,b,True\nsport,a,FALSE\n'],
    ids=["plain", "mark", "windows", "no end", "quotes"],
)  # fmt: skip
def test_labels_blocks_and_sensitive_from_a_file(tmp_path, content):
    _pages(tmp_path, content)
    high_low = _load(
        tmp_path, _toml(FILE, 'kind = "high-low"\nepsilon = 1\nsensitive = { column = "private" }')
    )
    assert high_low.context == HighLow(["news", "health", "sport"], ["health"], 1)
    blocks = _load(tmp_path, _toml(FILE, 'kind = "blocks"\nepsilon = 1\ncolumn = "topic"'))
    assert blocks.context == Blocks([0, 1, 0], 1, domain=["news", "health", "sport"])


def test_labels_from_gzip(tmp_path):
    _pages(tmp_path, name="pages.csv.gz")
    survey = _load(tmp_path, _toml('kind = "labels"\nfile = "pages.csv.gz"'))
    assert survey.context == Uniform(["news", "health", "sport"], 1)


def test_files_are_relative_to_the_survey(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    _pages(tmp_path / "deep")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "survey.toml").write_text(_toml(FILE))
    assert Survey.load("deep/survey.toml").context.size == 3


@pytest.mark.parametrize("block", ["other", "b"])
def test_other_gets_its_own_block(tmp_path, block):
    _pages(tmp_path, f"label,topic\nnews,{block}\nhealth,b\n")
    domain = FILE + '\nother = "elsewhere"'
    blocks = _load(
        tmp_path, _toml(domain, 'kind = "blocks"\nepsilon = 1\ncolumn = "topic"')
    ).context.block_of.tolist()
    assert blocks[2] not in blocks[:2]


@pytest.mark.parametrize("quote", ['"', ""])
def test_labels_may_contain_any_character_but_line_ends(tmp_path, quote):
    labels = ["a\u2028b", "c\x0bd", "e\x85f", "g\x1ch"]
    _pages(tmp_path, "label\n" + "".join(f"{quote}{label}{quote}\n" for label in labels))
    assert list(_load(tmp_path, _toml(FILE)).context.domain.labels) == labels


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "at least one row"),
        ("label\n", "at least one row"),
        ("page\nnews\n", "column named label"),
        ("label,label\na,b\n", "two columns with the same name"),
        ("label,topic\nnews\n", "line 2"),
        ("label,topic\nnews,a\nhealth,b,c\n", "line 3"),
        ('label,topic\n"two\nlines",a\n\nhealth\n', "line 5: expected 2 columns"),
        ("label\nnews\nnews\n", "'news' occurs twice"),
        ("label,topic\nnews,a\n,b\n", "empty"),
        (b"label\nn\xe9ws\n", "UTF-8"),
        ('label\n"news\n', "CSV"),
        ("label\n" + "x" * 200_000 + "\n", "CSV"),
    ],
    ids=[
        "empty",
        "header",
        "column",
        "twice",
        "short",
        "long",
        "after a quoted line break",
        "duplicate",
        "blank",
        "latin",
        "quote",
        "long field",
    ],
)
def test_bad_label_files_are_named(tmp_path, content, said):
    _pages(tmp_path, content)
    message = _refused(tmp_path, _toml(FILE))
    assert said in message
    assert message.startswith(("survey.toml, line 2: domain", "survey.toml, line 4: domain"))


@pytest.mark.parametrize("damage", ["cut", "flipped", "no gzip"])
def test_corrupt_gzip_is_rejected(tmp_path, damage):
    raw = bytearray(gzip.compress(b"label\n" + b"abcdef\n" * 100))
    if damage == "flipped":
        raw[15] ^= 255
    (tmp_path / "pages.csv.gz").write_bytes(
        {"cut": raw[:-12], "flipped": raw, "no gzip": b"label\nnews\n"}[damage]
    )
    assert "domain.file: pages.csv.gz" in _refused(
        tmp_path, _toml('kind = "labels"\nfile = "pages.csv.gz"')
    )


@pytest.mark.parametrize("name", ["missing.csv", ".", "", "a\\u0000b", "x" * 5000])
def test_unreadable_files_are_named(tmp_path, name):
    assert "domain.file" in _refused(tmp_path, _toml(f'kind = "labels"\nfile = "{name}"'))


# --- messages -------------------------------------------------------------------------------------

BLOCKS = 'kind = "blocks"\nepsilon = 1\n'
TWO_BLOCKS = 'kind = "blocks"\nblock_of = ["a", "b", "a"]\n'
TIERS = 'kind = "tiers"\nepsilons = { a = 1, b = "inf" }\n'
H3 = 'kind = "h3"\nresolution = 3\nsouth = 1\nnorth = 2\nwest = 3\neast = 4'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_toml(head=""), ["name is missing"]),
        (_toml(head='name = ""'), ["name"]),
        (_toml(head="name = 7"), ["name must be text", "an integer"]),
        (_toml(head='name = "q"\nnmae = "q"'), ["nmae is not a field", "Did you mean name?"]),
        (_toml(head='name = "q"\ntitle = 3'), ["title must be text"]),
        (_toml(head='name = "q"\nopens = 2026-01-01'), ["opens must be text"]),
        (
            _toml(head='name = "q"\nminimum_reports = -1'),
            ["minimum_reports must be a non-negative integer"],
        ),
        (
            _toml(head='name = "q"\nminimum_reports = 1.5'),
            ["minimum_reports must be an integer"],
        ),
        (_toml(head='name = "q"\nrepeat = "twice"'), ["repeat", "once"]),
        (_toml(head='name = "q"\nrepeat = { every = "hour", distinct = 1 }'), ["repeat", "week"]),
        (_toml(head='name = "q"\nrepeat = { every = "week" }'), ["distinct is missing"]),
        ('name = "q"\n', ["domain is missing", "context is missing"]),
        ('name = "q"\ndomain = 3\n[context]\n' + UNIFORM, ["domain must be a table"]),
        (_toml(domain='labels = ["a"]'), ["domain.kind is missing"]),
        (_toml(domain='kind = "cities"'), ["domain.kind must be one of", "grid", "'cities'"]),
        (_toml(domain='kind = "labels"'), ["domain needs either labels or file"]),
        (
            _toml(domain=LABELS + "\nsize = 3"),
            ["domain.size does not apply", "labels, file, other"],
        ),
        (_toml(domain='kind = "labels"\nlabels = []'), ["domain", "at least one label"]),
        (_toml(domain='kind = "labels"\nlabels = ["a", "a"]'), ["domain", "'a' occurs twice"]),
        (_toml(domain='kind = "labels"\nlabels = ["a", 1.5]'), ["domain.labels must be", "text"]),
        (_toml(domain='kind = "labels"\nlabels = "a"'), ["domain.labels must be a list"]),
        (_toml(domain='kind = "range"'), ["domain.size is missing", "an integer"]),
        (_toml(domain='kind = "range"\nsize = 0'), ["domain", "1 to 2^31 symbols"]),
        (_toml(domain='kind = "range"\nsize = 2.0'), ["domain.size must be an integer"]),
        (_toml(domain='kind = "range"\nsize = true'), ["domain.size must be an integer"]),
        (_toml(domain=GRID.replace("south = 25.0\n", "")), ["domain.south is missing", "degrees"]),
        (_toml(domain=GRID.replace("step = 0.2", "")), ["domain.step is missing"]),
        (_toml(domain=GRID.replace("0.2", "0.3")), ["domain", "step must divide"]),
        (_toml(domain=GRID.replace("25.0", "nan")), ["domain", "south must be a number"]),
        (_toml(domain=GRID.replace("25.0", "true")), ["domain.south must be a number"]),
        (_toml(domain=GRID.replace("25.0", "99")), ["domain", "south must be below north"]),
        (
            _toml(domain=H3.replace("= 3", '= "three"', 1)),
            ["domain.resolution must be an integer"],
        ),
        (_toml(domain=H3.replace("resolution = 3", "")), ["domain.resolution is missing"]),
        (_toml(domain=H3.replace("south = 1", 'south = "abc"')), ["south"]),
        (_toml(domain=H3 + "\nstep = 1"), ["domain.step does not apply"]),
        (_toml(context="epsilon = 1"), ["context.kind is missing"]),
        (
            _toml(context='kind = "secret"\nepsilon = 1'),
            ["context.kind must be one of", "high-low", "'secret'"],
        ),
        (_toml(context='kind = "uniform"'), ["context.epsilon is missing", "above 0"]),
        (_toml(context='kind = "uniform"\nepsilon = 0'), ["context", "epsilon must be above 0"]),
        (
            _toml(context='kind = "uniform"\nepsilon = -1'),
            ["context", "epsilon must not be negative"],
        ),
        (_toml(context='kind = "uniform"\nepsilon = nan'), ["context", "epsilon must be a number"]),
        (
            _toml(context='kind = "uniform"\nepsilon = 50'),
            ["context", "epsilon must be at most 40"],
        ),
        (
            _toml(context='kind = "uniform"\nepsilon = "high"'),
            ["context", "epsilon must be a decimal number"],
        ),
        (_toml(context='kind = "uniform"\nepsilon = true'), ["context.epsilon must be a number"]),
        (
            _toml(context='kind = "uniform"\nepsilon = [1]'),
            ["context.epsilon must be a number for kind = 'uniform'"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = { a = 1 }'),
            ["context.epsilon must be a number", "'high-low'"],
        ),
        (_toml(context=UNIFORM + "\nacross = 2"), ["context.across does not apply", "'uniform'"]),
        (
            _toml(context=UNIFORM + "\nepsilons = [1]"),
            ["context.epsilons does not apply", "'uniform'"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = [1]"),
            ["epsilon must have one entry for each of the 2 blocks; got 1"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = [1, true]"),
            ["context.epsilon must be a number; for blocks also a table"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = [1, [2]]"),
            ["context.epsilon must be a number; for blocks also a table"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = { a = 1 }"),
            ["epsilon must contain an ε for every block; 'b' has none"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = { a = 1, b = 2, c = 3 }"),
            ["epsilon contains 'c', but no label belongs to that block"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = { a = 1, b = 0 }"),
            ["epsilon of block 'b' must be above 0"],
        ),
        (
            _toml(context=TWO_BLOCKS + 'epsilon = { a = 1, b = "x" }'),
            ["epsilon of block 'b' must be a decimal number"],
        ),
        (_toml(context=TWO_BLOCKS + "epsilon = 1\nacross = 0"), ["across must be above 0"]),
        (
            _toml(context=TWO_BLOCKS + "epsilon = 1\nacross = [1]"),
            ["context.across must be a number; got a list"],
        ),
        (
            _toml(context=TWO_BLOCKS + 'epsilon = 1\nacross = 1\nsensitive = ["park"]'),
            ["context cannot have both across and sensitive"],
        ),
        (
            _toml(context=TWO_BLOCKS + 'epsilon = 1\nsensitive = ["zoo"]'),
            ["sensitive contains 'zoo'"],
        ),
        (
            _toml(context=TWO_BLOCKS + "epsilon = 1\ntier_of = [1]"),
            ["context.tier_of does not apply", "'blocks'"],
        ),
        (
            _toml(GRID, 'kind = "blocks"\nepsilon = [1, 2]\nrows = 5\ncolumns = 1'),
            ["each of the 5 blocks; got 2"],
        ),
        (_toml(context=TIERS), ["context needs either tier_of or column, not both"]),
        (
            _toml(context=TIERS + 'tier_of = ["a", "b", "b"]\ncolumn = "t"'),
            ["either tier_of or column, not both"],
        ),
        (
            _toml(context='kind = "tiers"\ntier_of = ["a", "b", "b"]'),
            ["context.epsilons is missing", "high = 0.5"],
        ),
        (
            _toml(context=TIERS + "epsilon = 1"),
            ["context.epsilon does not apply to kind = 'tiers'"],
        ),
        (
            _toml(context=TIERS + 'tier_of = ["a", "b"]'),
            ["tier_of has 2 entries; the domain has 3 labels"],
        ),
        (
            _toml(context=TIERS + 'tier_of = ["a", "b", "c"]'),
            ["epsilons must contain an ε for every tier; 'c' has none"],
        ),
        (
            _toml(context=TIERS + 'tier_of = ["a", "a", "a"]'),
            ["epsilons contains 'b', but no label belongs to that tier"],
        ),
        (
            _toml(context=TIERS + 'tier_of = { park = "a" }'),
            ["tier_of must contain each of the 3 labels"],
        ),
        (
            _toml(context=TIERS + 'tier_of = "a"'),
            ["context.tier_of must be a list of tiers", "got text"],
        ),
        (
            _toml(context=TIERS + "tier_of = [1.5, 2, 2]"),
            ["context.tier_of must be a list of tiers"],
        ),
        (
            _toml(context=TIERS + 'column = "tier"'),
            ["context.column refers to column 'tier'", "the domain has no file"],
        ),
        (
            _toml(context='kind = "tiers"\nepsilons = 1'),
            ["context.epsilons must be a table of tier = number"],
        ),
        (
            _toml(context='kind = "tiers"\nepsilons = { a = [1] }'),
            ["context.epsilons must be a table of tier"],
        ),
        (_toml(context='kind = "uniform"\nepsilon = 1e-30'), ["context", "epsilon must"]),
        (_toml(context='kind = "uniform"\nepsilon = 1e99999999999999999999'), ["epsilon"]),
        (_toml(context=UNIFORM + "\nepsilom = 1"), ["context.epsilom is not a field"]),
        (_toml(context=UNIFORM + "\nEpsilon = 1"), ["context.Epsilon is not a field"]),
        (_toml(context=UNIFORM + "\nrows2 = 1"), ["context.rows2 is not a field"]),
        (
            _toml(context=UNIFORM + '\nsensitive = ["park"]'),
            ["context.sensitive does not apply", "'uniform'"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = 1'),
            ["context.sensitive is missing", "list of labels"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = 1\nsensitive = ["zoo"]'),
            ["sensitive contains 'zoo'", "domain"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = 1\nsensitive = "park"'),
            ["context.sensitive must be a list"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = 1\nsensitive = ["park", "park"]'),
            ["sensitive", "twice"],
        ),
        (
            _toml(context='kind = "high-low"\nepsilon = 1\nsensitive = { column = "x" }'),
            ["context.sensitive refers to column 'x'", "the domain has no file"],
        ),
        (_toml(context=BLOCKS), ["context needs exactly one way to define blocks", "nearest"]),
        (
            _toml(GRID, BLOCKS + 'rows = 2\ncolumns = 2\nnearest = "x.csv"'),
            ["one way to define blocks"],
        ),
        (
            _toml(GRID, BLOCKS + "rows = 2"),
            ["context.rows and context.columns must be set together"],
        ),
        (
            _toml(GRID, BLOCKS + "columns = 2"),
            ["context.rows and context.columns must be set together"],
        ),
        (
            _toml(GRID, BLOCKS + "rows = 126\ncolumns = 1"),
            ["context", "rows must be an integer from 1 to 125"],
        ),
        (
            _toml(GRID, BLOCKS + "rows = 2\ncolumns = 0"),
            ["context", "columns must be an integer"],
        ),
        (_toml(context=BLOCKS + "rows = 2\ncolumns = 2"), ["context.rows", "kind grid"]),
        (
            _toml(context=BLOCKS + 'nearest = "x.csv"'),
            ["context.nearest needs a domain of kind grid or h3"],
        ),
        (_toml(context=BLOCKS + "parents = 2"), ["context.parents needs a domain of kind h3"]),
        (_toml(GRID, BLOCKS + "parents = 2"), ["context.parents needs a domain of kind h3"]),
        (
            _toml(GRID, BLOCKS + 'nearest = "missing.csv"'),
            ["context.nearest: missing.csv cannot be read"],
        ),
        (
            _toml(context=BLOCKS + 'column = "topic"'),
            ["context.column refers to column 'topic'", "the domain has no file"],
        ),
        (_toml(context=BLOCKS + "block_of = [1, 2]"), ["block_of has 2 entries", "3 labels"]),
        (
            _toml(context=BLOCKS + "block_of = { park = 1 }"),
            ["block_of must contain each of the 3 labels"],
        ),
        (_toml(context=BLOCKS + "block_of = [1, 2, 2.5]"), ["context.block_of must be"]),
        (_toml(context='kind = "matrix"'), ["context.matrix is missing", "rows of numbers"]),
        (_toml(context='kind = "matrix"\nmatrix = [[0, 1], [1]]'), ["context", "square"]),
        (
            _toml(context='kind = "matrix"\nmatrix = [[0, 1], [1, 0]]'),
            ["context", "2 rows", "3 labels"],
        ),
        (_toml(context='kind = "matrix"\nmatrix = [[0, -1], [1, 0]]'), ["context", "negative"]),
        (_toml(context='kind = "matrix"\nmatrix = [[1, 1], [1, 0]]'), ["context", "diagonal"]),
        (
            _toml(context='kind = "matrix"\nmatrix = "missing.csv"'),
            ["context.matrix: missing.csv cannot be read"],
        ),
        (_toml(context='kind = "metric"\nepsilon = 1'), ["context.distances is missing"]),
        (
            _toml(tail='[mechanism]\ncode = "cyclic2"'),
            ["mechanism.code must be one of", "hadamard"],
        ),
        (
            _toml(tail="[mechanism]\nsensitive_share = 1.5"),
            ["mechanism.sensitive_share", "from 0 to 1; got 1.5"],
        ),
        (
            _toml(tail="[mechanism]\nsensitive_share = nan"),
            ["mechanism.sensitive_share", "from 0 to 1"],
        ),
        (
            _toml(tail='[mechanism]\nsensitive_share = "some"'),
            ["mechanism.sensitive_share", "from 0 to 1; got some"],
        ),
        (
            _toml(tail="[mechanism]\nsensitive_share = [1]"),
            ["mechanism.sensitive_share must be a number; got a list"],
        ),
        (_toml(tail="[mechanism]\nmax_bits = 0"), ["mechanism", "max_bits must be at least 2"]),
        (
            _toml(tail='[mechanism]\nmax_bits = "few"'),
            ["mechanism.max_bits must be an integer"],
        ),
        (_toml(tail="[extra]\na = 1"), ["extra is not a field"]),
        ("name = ", ["not valid TOML"]),
        ('name = "q"\nname = "r"', ["not valid TOML"]),
        (b'name = "caf\xe9"', ["UTF-8"]),
        ("x = " + "9" * 5000, ["TOML"]),
        ("x = " + "[" * 5000, ["TOML"]),
        ("x = " + "{a=" * 5000, ["TOML"]),
    ],
)
def test_errors_name_the_field_and_the_fix(tmp_path, text, said):
    message = _refused(tmp_path, text)
    for words in said:
        assert words in message
    for machine in (
        "Input should be",
        "Decimal",
        ".decimal",
        ".int ",
        ".str ",
        "NoneType",
        "list[",
        "Traceback",
    ):
        assert machine not in message


def test_labels_and_file_are_exclusive(tmp_path):
    _pages(tmp_path)
    assert "domain needs either labels or file, not both" in _refused(
        tmp_path, _toml(LABELS + '\nfile = "pages.csv"')
    )


def test_all_mistakes_are_reported_at_once(tmp_path):
    message = _refused(tmp_path, _toml(LABELS + "\nsouthh = 1", UNIFORM + "\nepsilom = 1", head=""))
    assert message.splitlines() == [
        "survey.toml: name is missing.",
        "survey.toml, line 5: domain.southh is not a field of a survey file. Did you mean south?",
        "survey.toml, line 9: context.epsilom is not a field of a survey file. "
        "Did you mean epsilon?",
    ]


def test_sensitive_column_must_contain_yes_or_no(tmp_path):
    _pages(tmp_path, PAGES.replace("yes", "perhaps"))
    context = 'kind = "high-low"\nepsilon = 1\nsensitive = { column = "private" }'
    assert "must contain yes or no; got 'perhaps'" in _refused(tmp_path, _toml(FILE, context))
    context = context.replace("private", "public")
    assert "domain.file has no column 'public'; its columns are label, topic" in _refused(
        tmp_path, _toml(FILE, context)
    )


@pytest.mark.parametrize(
    "content",
    [
        "latitude,longitude\n",
        "lat,lon\n1,2\n",
        "latitude,longitude\nnorth,2\n",
        "latitude,longitude\n1\n",
    ],
)
def test_bad_place_files_are_named(tmp_path, content):
    (tmp_path / "cities.csv").write_text(content)
    assert "context.nearest: cities.csv" in _refused(
        tmp_path, _toml(GRID, BLOCKS + 'nearest = "cities.csv"')
    )


@pytest.mark.parametrize(
    "content", ["", "0,1\n1\n", "0,x\n1,0\n", "0," + "1" * 200_000 + "\n1,0\n", '0,"1\n']
)
def test_bad_matrix_files_are_rejected(tmp_path, content):
    (tmp_path / "e.csv").write_text(content)
    labels = 'kind = "labels"\nlabels = ["no", "yes"]'
    assert "context" in _refused(tmp_path, _toml(labels, 'kind = "matrix"\nmatrix = "e.csv"'))


def test_read_toml_accepts_bytes(tmp_path):
    described = parse_survey_toml(_toml().encode(), tmp_path)
    assert (described.name, described.context.size, described.about["repeat"]) == ("q", 3, "once")


@pytest.mark.parametrize("edition", ["true", "1.0", "2.0", '"2"', "0", "3"])
def test_other_editions_are_rejected(tmp_path, edition):
    head = f'name = "lunch"\nedition = {edition}\n'
    sections = '[domain]\nkind = "range"\nsize = 3\n[context]\nkind = "uniform"\nepsilon = 1\n'
    with pytest.raises(InvalidSurvey, match="edition must be"):
        parse_survey_toml((head + sections).encode(), tmp_path)


UPLOADS = """
name = "households"
edition = {edition}
reports_per_upload = {number}
[domain]
kind = "labels"
labels = ["yes", "no"]
[context]
kind = "uniform"
epsilon = 1
"""


def test_a_file_says_how_many_reports_an_upload_contains(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(UPLOADS.format(edition=2, number=50))
    survey = Survey.load(path)
    assert json.loads(survey.resolved())["about"]["uploads"] == 50
    survey.save(tmp_path / "copy.toml")
    assert Survey.load(tmp_path / "copy.toml").resolved() == survey.resolved()
    # The number is not part of the promise.
    path.write_text(UPLOADS.format(edition=2, number=7))
    assert Survey.load(path).fingerprint == survey.fingerprint


@pytest.mark.parametrize(
    ("edition", "number", "message"),
    [
        (1, 50, "reports_per_upload is a field of edition 2"),
        (2, 0, "reports_per_upload must be an integer from 1 to 65,536"),
        (2, 65_537, "reports_per_upload must be an integer from 1 to 65,536"),
        (2, '"50"', "reports_per_upload"),
    ],
)
def test_other_numbers_of_reports_are_rejected(tmp_path, edition, number, message):
    path = tmp_path / "survey.toml"
    path.write_text(UPLOADS.format(edition=edition, number=number))
    with pytest.raises(InvalidSurvey, match=message):
        Survey.load(path)
