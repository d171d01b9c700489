"""The decoders by name. ``sfumato.decoders`` is this module: take one from it where parameters are wanted."""

from collections.abc import Callable, Mapping

from sfumato.errors import InvalidContext
from sfumato.estimation.decoder import Decoded, Decoder, Projection, Unbiased

__all__ = ["DECODERS", "Decoded", "Decoder", "Projection", "Unbiased", "decoder_named"]

DECODERS: Mapping[str, Callable[[], Decoder]] = {"projection": Projection, "unbiased": Unbiased}
"""The decoders by name."""


def decoder_named(decoder: str | Decoder) -> Decoder:
    """The decoder of that name; a decoder stands for itself.

    >>> decoder_named("projection")
    Projection(name='projection')
    """
    if not isinstance(decoder, str):
        if callable(getattr(decoder, "decode", None)):
            return decoder
        raise InvalidContext(f"decoder must be a name or a decoder; found {type(decoder).__name__}.")
    if decoder not in DECODERS:
        raise InvalidContext(f"decoder must be one of {', '.join(DECODERS)}; found {decoder!r}.")
    return DECODERS[decoder]()
