"""The decoders, by class and by name. Construct one to set its parameters."""

from collections.abc import Callable, Mapping
from importlib import import_module

from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.auto import Auto
from sfumato.estimation.decoders.decoder import Decoded, Decoder, Projection, Unbiased
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes, SpatialBayes
from sfumato.estimation.decoders.likelihood import Likelihood
from sfumato.foundation.decoder_table import DECODER_TABLE

__all__ = [
    "DECODERS",
    "Auto",
    "Decoded",
    "Decoder",
    "EmpiricalBayes",
    "Likelihood",
    "Projection",
    "SpatialBayes",
    "Unbiased",
    "get_decoder",
]


def _load(path: str) -> Callable[[], Decoder]:
    """Return the class at a path such as ``auto:Auto``."""
    module, _, class_name = path.partition(":")
    decoder: Callable[[], Decoder] = getattr(import_module(f"{__name__}.{module}"), class_name)
    return decoder


DECODERS: Mapping[str, Callable[[], Decoder]] = {
    name: _load(entry.path) for name, entry in DECODER_TABLE.items()
}
"""The class of each name in ``foundation/decoder_table.py``."""


def get_decoder(decoder: str | Decoder) -> Decoder:
    """Return the decoder of that name, or the decoder itself.

    >>> get_decoder("projection")
    Projection(name='projection')
    """
    if not isinstance(decoder, str):
        if callable(getattr(decoder, "decode", None)):
            return decoder
        raise InvalidArgument(f"decoder must be a name or a decoder; got {type(decoder).__name__}.")
    if decoder not in DECODERS:
        raise InvalidArgument(
            f"decoder must be one of {', '.join(DECODER_TABLE)}; got {decoder!r}."
        )
    return DECODERS[decoder]()
