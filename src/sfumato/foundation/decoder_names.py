"""The decoders by name, without NumPy, so that ``sfumato --help`` stays fast.

The command, the aggregator, the dashboard and ``sfumato.estimation.decoders`` read this table. To
add a decoder, add a row.
"""

from typing import NamedTuple


class DecoderEntry(NamedTuple):
    """Where a decoder is, and how it is shown in a menu and in the help of the command.

    ``path`` is a module in ``sfumato.estimation.decoders`` and a class in it.
    """

    path: str
    title: str
    help: str


DECODER_NAMES = {
    "auto": DecoderEntry(
        "auto:Auto",
        "chosen by the reports",
        "empirical Bayes, as far as the reports themselves support it",
    ),
    "projection": DecoderEntry(
        "decoder:Projection",
        "projection",
        "the nearest distribution to the unbiased estimate",
    ),
    "likelihood": DecoderEntry(
        "likelihood:Likelihood",
        "likelihood",
        "the most likely distribution",
    ),
    "empirical-bayes": DecoderEntry(
        "empirical_bayes:EmpiricalBayes",
        "empirical Bayes",
        "shrunk as far as all symbols together suggest",
    ),
    "spatial-bayes": DecoderEntry(
        "empirical_bayes:SpatialBayes",
        "spatial Bayes (maps)",
        "the same, with the neighbours of each cell",
    ),
    "unbiased": DecoderEntry(
        "decoder:Unbiased",
        "unbiased, as it is",
        "right on average, entries may be negative",
    ),
}
"""Every decoder that you can choose by name, in the order of menus."""
