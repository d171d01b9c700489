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

_CODE_CLASSES: tuple[type[Code], ...] = (ClearCode, HadamardCode, RandomizedCode, CyclicCode)
_CLASS_BY_KIND: Mapping[str, type[Code]] = {cls.kind: cls for cls in _CODE_CLASSES}


def code_from_record(record: object, epsilon: Epsilon) -> Code:
    """Return the code stored in a record; only its ideal levels depend on ``epsilon``."""
    kind = record_kind(record, "a code of the mechanism")
    if kind not in _CLASS_BY_KIND or not isinstance(record, Mapping):
        raise InvalidSurvey(f"code {kind!r} is not supported by this version.")
    return _CLASS_BY_KIND[kind].from_record(record, epsilon)


class RecordedCodes:
    """A family of codes read from records, each keyed by its number of symbols and its ε."""

    def __init__(self) -> None:
        self._codes: dict[tuple[int, Epsilon], Code] = {}

    def __contains__(self, key: tuple[int, Epsilon]) -> bool:
        return key in self._codes

    def read(self, record: object, size: int, epsilon: Epsilon) -> None:
        """Read the code for ``size`` symbols and ``epsilon`` from a record, and add it."""
        self._codes[size, epsilon] = code_from_record(record, epsilon)

    @property
    def all_fit(self) -> bool:
        """Whether every code can serve its number of symbols."""
        return all(code.can_serve(size) for (size, _), code in self._codes.items())

    @property
    def word_bits(self) -> int:
        """The word length of the first code."""
        return next(iter(self._codes.values())).word_bits

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        """Return the recorded code, or a code from its family for a different word length."""
        code = self._codes[points, epsilon]
        if code.word_bits == word_bits:
            return code
        return code.family(points, epsilon, word_bits)
