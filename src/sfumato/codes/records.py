"""Read codes from their records."""

from collections.abc import Mapping

from sfumato.codes.code import Code
from sfumato.codes.cyclic import CyclicCode
from sfumato.codes.hadamard import HadamardCode
from sfumato.codes.singleton import ClearCode, RandomizedCode
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import record_kind
from sfumato.randomness import Epsilon

__all__ = ["RecordedCodes", "code_from_record"]

_CLASSES: tuple[type[Code], ...] = (ClearCode, HadamardCode, RandomizedCode, CyclicCode)
_CODE_KINDS: Mapping[str, type[Code]] = {cls.kind: cls for cls in _CLASSES}


def code_from_record(record: object, epsilon: Epsilon) -> Code:
    """Read any code from its record; only its ideal levels depend on ``epsilon``."""
    kind = record_kind(record, "a code of the mechanism")
    if kind not in _CODE_KINDS or not isinstance(record, Mapping):
        raise InvalidSurvey(f"code {kind!r} is not known to this version.")
    return _CODE_KINDS[kind].from_record(record, epsilon)


class RecordedCodes:
    """A family of codes read from records, each keyed by its number of symbols and its ε."""

    def __init__(self) -> None:
        self._codes: dict[tuple[int, Epsilon], Code] = {}

    def __contains__(self, key: tuple[int, Epsilon]) -> bool:
        return key in self._codes

    def read(self, record: object, size: int, epsilon: Epsilon) -> None:
        """Read the code that serves ``size`` symbols at ε."""
        self._codes[size, epsilon] = code_from_record(record, epsilon)

    @property
    def all_fit(self) -> bool:
        """Whether every code can serve its number of symbols."""
        return all(code.can_serve(size) for (size, _), code in self._codes.items())

    @property
    def word_bits(self) -> int:
        """The word length that all the codes use."""
        return next(iter(self._codes.values())).word_bits

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """Return the recorded code, or a code from its family for a different word length."""
        code = self._codes[points, epsilon]
        if code.word_bits == word_bits:
            return code
        return code.family(points, epsilon, word_bits)
