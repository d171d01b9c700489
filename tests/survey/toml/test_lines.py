"""The line of each key: right, or not given."""

import tomllib

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.survey.toml.lines import find_lines

DOCUMENT = '''# a comment = 1
name = "q" # [not.a.section]
text = """
title = "inside"
[domain]
quotes: ""\\""" """
'literal' = \'\'\'
x = 1
it''s''\'\'\'
"quoted \\u00e9.key" = 1
a.b . "c d" = 2
moment = 2026-01-01 10:00:00

[domain]   # comment
labels = [ "a]", # ]
  'b',
  [1, 2], { x = 1, y.z = [3,
  4] },
]
empty = []
[context.deep]
repeat = { every = "week", distinct = 3 }
[[question]]
name = "first"
[question.domain]
size = 3
[[ question ]]
name = "second"
  [question.domain]
  size = 4
'''

LINES = {
    ("name",): 2,
    ("text",): 3,
    ("literal",): 7,
    ("quoted é.key",): 10,
    ("a",): 11,
    ("a", "b"): 11,
    ("a", "b", "c d"): 11,
    ("moment",): 12,
    ("domain",): 14,
    ("domain", "labels"): 15,
    ("domain", "labels", 0): 15,
    ("domain", "labels", 1): 16,
    ("domain", "labels", 2): 17,
    ("domain", "labels", 2, 0): 17,
    ("domain", "labels", 2, 1): 17,
    ("domain", "labels", 3): 17,
    ("domain", "labels", 3, "x"): 17,
    ("domain", "labels", 3, "y"): 17,
    ("domain", "labels", 3, "y", "z"): 17,
    ("domain", "labels", 3, "y", "z", 0): 17,
    ("domain", "labels", 3, "y", "z", 1): 18,
    ("domain", "empty"): 20,
    ("context",): 21,
    ("context", "deep"): 21,
    ("context", "deep", "repeat"): 22,
    ("context", "deep", "repeat", "every"): 22,
    ("context", "deep", "repeat", "distinct"): 22,
    ("question",): 23,
    ("question", 0): 23,
    ("question", 0, "name"): 24,
    ("question", 0, "domain"): 25,
    ("question", 0, "domain", "size"): 26,
    ("question", 1): 27,
    ("question", 1, "name"): 28,
    ("question", 1, "domain"): 29,
    ("question", 1, "domain", "size"): 30,
}


def paths_in(data, path=()):
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else ()
    if isinstance(data, list):
        items = enumerate(data)
    for step, value in items:
        yield from paths_in(value, (*path, step))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_key_has_its_line(line_end):
    text = DOCUMENT.replace("\n", line_end)
    assert set(paths_in(tomllib.loads(text))) == set(LINES)
    assert find_lines(text) == LINES


def test_lines_are_not_given_if_in_doubt():
    assert find_lines("a = [1979-05-27 07:32:00, 2]") != {}
    for text in ("a", "a = ", "[a", 'a = "', "a = 1 2 ]", "x" * 2**23, "a = " + "[" * 10**5):
        assert find_lines(text) == {}


VALUES = st.recursive(
    st.integers(-9, 9) | st.booleans() | st.text(max_size=6) | st.sampled_from(["[a]", "x = 1\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(data=st.dictionaries(st.text(max_size=5), VALUES, max_size=4), multiline=st.booleans())
def test_random_documents(data, multiline):
    """Cut off after its line, a document has the key; cut off before it, it does not."""
    text = tomli_w.dumps(data, multiline_strings=multiline)
    lines = find_lines(text)
    assert set(lines) == set(paths_in(tomllib.loads(text)))
    rows = text.split("\n")
    for path, line in lines.items():
        above = _parse_or_none("\n".join(rows[: line - 1]))
        if above is not None:
            assert path not in set(paths_in(above))
        through = _parse_or_none("\n".join(rows[:line]))
        if through is not None and not isinstance(path[-1], int):
            assert path in set(paths_in(through))


def _parse_or_none(text):
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
