"""Decoders, available by name and as classes. Instantiate a class to set its parameters."""

from collections.abc import Callable, Mapping
from importlib import import_module

from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.auto import Auto
from sfumato.estimation.decoders.decoder import Decoder, DecoderResult, Projection, Unbiased
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes
from sfumato.estimation.decoders.likelihood import Likelihood
from sfumato.foundation.decoder_table import DECODER_TABLE

__all__ = [
    "DECODERS",
    "Auto",
    "Decoder",
    "DecoderResult",
    "EmpiricalBayes",
    "Likelihood",
    "Projection",
    "Unbiased",
    "get_decoder",
]


def _load_class(path: str) -> Callable[[], Decoder]:
    """Import and return the class at a path such as ``auto:Auto``."""
    module_name, _, class_name = path.partition(":")
    module = import_module(f"{__name__}.{module_name}")
    decoder_class: Callable[[], Decoder] = getattr(module, class_name)
    return decoder_class


DECODERS: Mapping[str, Callable[[], Decoder]] = {
    name: _load_class(entry.path) for name, entry in DECODER_TABLE.items()
}
"""The decoder class for each name in ``foundation/decoder_table.py``."""


def get_decoder(decoder: str | Decoder) -> Decoder:
    """Return the decoder with this name. If given a decoder object, return it unchanged.

    >>> get_decoder("projection")
    Projection()
    """
    if not isinstance(decoder, str):
        if callable(getattr(decoder, "decode", None)):
            return decoder
        raise InvalidArgument(
            f"decoder must be a name or a decoder object; got {type(decoder).__name__}."
        )
    if decoder not in DECODERS:
        raise InvalidArgument(
            f"decoder must be one of {', '.join(DECODER_TABLE)}; got {decoder!r}."
        )
    return DECODERS[decoder]()
