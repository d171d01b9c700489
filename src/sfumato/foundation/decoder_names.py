"""The decoders by name, without NumPy, so that ``sfumato --help`` stays fast.

``sfumato.estimation.decoders`` holds the decoders themselves. The command, the aggregator and the
dashboard read this list.
"""

from typing import NamedTuple


class DecoderText(NamedTuple):
    """How a decoder is shown: in a menu, and in the help of the command."""

    title: str
    help: str


DECODER_NAMES = {
    "auto": DecoderText(
        "chosen by the reports",
        "empirical Bayes, as far as the reports themselves support it",
    ),
    "projection": DecoderText(
        "projection",
        "the nearest distribution to the unbiased estimate",
    ),
    "likelihood": DecoderText(
        "likelihood",
        "the most likely distribution",
    ),
    "empirical-bayes": DecoderText(
        "empirical Bayes",
        "shrunk as far as all symbols together suggest",
    ),
    "spatial-bayes": DecoderText(
        "spatial Bayes (maps)",
        "the same, with the neighbours of each cell",
    ),
    "unbiased": DecoderText(
        "unbiased, as it is",
        "right on average, entries may be negative",
    ),
}
"""Every decoder that you can choose by name, in the order of menus."""
