"""What is audited: a black box that answers symbols with reports. And in which order it is asked.

A client may change with time, say by a public cohort that is another one every day, and keep its promise at every
moment. Asked for all of one symbol first and for the next one later, it would look as if its reports told the two
apart. So symbols are asked for in random order, in *blocks* of many symbols each. What changes from one block to the
next, whatever was asked, then meets all symbols alike.

Inside a block, a box that takes symbols one by one is asked for them in random order, too. One that takes a symbol and
a count is asked once for each symbol of the block, in a random order of the symbols.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import WordSource
from sfumato.survey import Survey

__all__ = ["BlackBox", "InRuns", "OneByOne", "Randomizer", "black_box"]

Randomizer = Callable[[int, int], Any]
"""``randomize(symbol, count)``: so many independent reports of a symbol, an array or a sequence of hashable things."""

_RUN = 128  # reports of a symbol that a function is asked for at a time, on average: fewer would cost more than they help
_BLOCK = 2**14  # symbols that are handed over at a time where they may be mixed


class BlackBox(Protocol):
    """Whatever can be asked for reports of symbols, a block at a time."""

    def block(self, symbols: int) -> int:
        """How many reports a block should have, of so many different symbols."""
        ...

    def answers(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, Any]]:
        """The reports of one block: of each of these symbols so many, asked for in an order that ``source`` draws."""
        ...


class InRuns:
    """A function of a symbol and a count."""

    def __init__(self, randomize: Randomizer) -> None:
        self._randomize = randomize

    def block(self, symbols: int) -> int:
        """Few enough of each symbol that little can change meanwhile."""
        return _RUN * symbols

    def answers(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, Any]]:
        """One call for each symbol that is wanted."""
        for row in _shuffled(np.flatnonzero(sizes), source).tolist():
            yield int(symbols[row]), self._randomize(int(symbols[row]), int(sizes[row]))


class OneByOne:
    """A function of many symbols that returns one report of each, in their order. It is a randomizer, too."""

    def __init__(self, reports: Callable[[Symbols], Sequence[Any] | np.ndarray[Any, Any]]) -> None:
        self._reports = reports

    def __call__(self, symbol: int, count: int) -> Any:  # noqa: ANN401 - whatever the box returns
        """So many reports of one symbol."""
        return self._reports(np.full(count, symbol))

    def block(self, symbols: int) -> int:
        """As many as are handed over at a time."""
        return _BLOCK

    def answers(
        self, symbols: Symbols, sizes: Symbols, source: WordSource
    ) -> Iterator[tuple[int, Any]]:
        """One call, with all symbols of the block in random order."""
        asked = _shuffled(np.repeat(symbols, sizes), source)
        reports = self._reports(asked)
        for symbol in symbols.tolist():
            places = np.flatnonzero(asked == symbol)
            yield (
                symbol,
                reports[places]
                if isinstance(reports, np.ndarray)
                else [reports[i] for i in places.tolist()],
            )


def black_box(audited: object, context: Context | None) -> tuple[BlackBox, Context]:
    """What is asked, and what is promised: of a mechanism or a survey ``privatize`` is all that is looked at."""
    if isinstance(audited, Survey | Mechanism):
        promise = audited.context if context is None else context
        if promise.size != audited.context.size:
            raise ContextMismatch(
                f"the context has {promise.size} symbols, and what is audited has {audited.context.size}."
            )
        mechanism = audited.mechanism if isinstance(audited, Survey) else audited
        return OneByOne(mechanism.privatize), promise
    if not callable(audited):
        raise InvalidContext(
            "randomize must be a function of a symbol and a count, a mechanism or a survey; "
            f"found {type(audited).__name__}."
        )
    if context is None:
        raise InvalidContext(
            "a function promises nothing by itself: pass the context that it should keep."
        )
    return audited if isinstance(audited, OneByOne) else InRuns(audited), context


def _shuffled(asked: Symbols, source: WordSource) -> Symbols:
    """The same in an order that words decide."""
    return asked[np.argsort(source.take(asked.size, 1)[:, 0], kind="stable")]
