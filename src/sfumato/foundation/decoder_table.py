"""The table of decoders. This module does not import NumPy, so ``sfumato --help`` stays fast.

The command line, the aggregator, the dashboard and ``sfumato.estimation.decoders`` read this table.
To add a decoder, add an entry here.
"""

from typing import Literal, NamedTuple

DecoderName = Literal["auto", "projection", "likelihood", "empirical-bayes", "unbiased"]
"""The names in ``DECODER_TABLE``, for type checkers and editors. A test keeps the two equal."""


class DecoderEntry(NamedTuple):
    """Where to find a decoder, and how menus and the command-line help describe it.

    ``path``: ``module:Class``, in the package ``sfumato.estimation.decoders``.
    ``title``: the menu entry.
    ``help``: the description in the command-line help.
    """

    path: str
    title: str
    help: str


DECODER_TABLE = {
    "auto": DecoderEntry(
        "auto:Auto",
        "automatic",
        "an average of smooth, clustered and unordered models, by the evidence of the reports",
    ),
    "projection": DecoderEntry(
        "decoder:Projection",
        "projection",
        "the distribution nearest to the unbiased estimate",
    ),
    "likelihood": DecoderEntry(
        "likelihood:Likelihood",
        "likelihood",
        "the most likely distribution",
    ),
    "empirical-bayes": DecoderEntry(
        "empirical_bayes:EmpiricalBayes",
        "empirical Bayes",
        "shrinks the estimates by an amount that is learned from all symbols",
    ),
    "unbiased": DecoderEntry(
        "decoder:Unbiased",
        "unbiased, unprocessed",
        "correct on average, but entries may be negative",
    ),
}
"""Every decoder that you can choose by name, in menu order."""
