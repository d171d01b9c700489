"""What a survey says that its reports may show, before a person answers."""

import pytest

import sfumato as sf
from sfumato.contexts import ContextUnion
from sfumato.survey.description import disclosure_text

GROUP = "A report may show which group of answers yours belongs to."
L = ["park", "café", "clinic", "bar"]


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (sf.Uniform(L, 1), ""),
        (sf.Blocks([0, 0, 1, 1], 1, across=2, domain=L), ""),
        (sf.Uniform(L, "inf"), "Every answer is sent as it is."),
        (sf.HighLow(L, ["clinic"], 1), "These answers are sent as they are: park, café, bar."),
        (sf.Blocks([0, 0, 1, 1], 1, domain=L), GROUP),
        (sf.Blocks([0, 0, 0, 1], 1, domain=L), f"These answers are sent as they are: bar. {GROUP}"),
        (sf.Tiers([0, 1, 1, 1], ["inf", 1], domain=L), "These answers are sent as they are: park."),
        (
            sf.PrivacyMatrix([["0", "1", "inf"], ["1", "0", "1"], ["1", "1", "0"]], domain=L[:3]),
            GROUP,
        ),
        (ContextUnion([sf.Uniform(2, 1), sf.Uniform(2, 1)], [0, 0, 1, 1], domain=L), GROUP),
    ],
    ids=[
        "uniform",
        "across",
        "in the clear",
        "high-low",
        "blocks",
        "alone in a block",
        "tiers",
        "matrix",
        "union",
    ],
)
def test_disclosure_names_unprotected_labels(context, words):
    assert disclosure_text(context) == words
    assert bool(words) == context.has_unprotected_pairs


def test_long_lists_are_truncated_with_a_count():
    words = disclosure_text(sf.HighLow(100, [0], 1))
    assert words.startswith("These answers are sent as they are: 1, 2, ")
    assert words.endswith(", 30 and 69 more.")


def test_control_characters_of_labels_are_escaped():
    context = sf.HighLow(["park\x1b[8m", "clinic", "\u202ebar"], ["clinic"], 1)
    words = "These answers are sent as they are: park\\x1b[8m, \\u202ebar."
    assert disclosure_text(context) == words


def test_a_matrix_with_one_open_row_shows_no_group():
    matrix = sf.PrivacyMatrix([[0, "inf", "inf"], [1, 0, 1], [1, 1, 0]], domain=L[:3])
    assert disclosure_text(matrix) == "These answers are sent as they are: park."
