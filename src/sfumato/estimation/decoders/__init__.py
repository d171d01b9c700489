"""The decoders by name. ``sfumato.decoders`` is this module: take one from it where parameters are wanted."""

from collections.abc import Callable, Mapping

from sfumato.errors import InvalidContext
from sfumato.estimation.decoders.auto import Auto
from sfumato.estimation.decoders.decoder import Decoded, Decoder, Projection, Unbiased
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes, SpatialBayes
from sfumato.estimation.decoders.likelihood import Likelihood

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
    "decoder_named",
]

DECODERS: Mapping[str, Callable[[], Decoder]] = {
    "auto": Auto,
    "projection": Projection,
    "likelihood": Likelihood,
    "empirical-bayes": EmpiricalBayes,
    "spatial-bayes": SpatialBayes,
    "unbiased": Unbiased,
}
"""The decoders by name."""


def decoder_named(decoder: str | Decoder) -> Decoder:
    """The decoder of that name; a decoder stands for itself.

    >>> decoder_named("projection")
    Projection(name='projection')
    """
    if not isinstance(decoder, str):
        if callable(getattr(decoder, "decode", None)):
            return decoder
        raise InvalidContext(
            f"decoder must be a name or a decoder; found {type(decoder).__name__}."
        )
    if decoder not in DECODERS:
        raise InvalidContext(f"decoder must be one of {', '.join(DECODERS)}; found {decoder!r}.")
    return DECODERS[decoder]()
