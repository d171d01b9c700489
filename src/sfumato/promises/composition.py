"""Composition: what two answers promise together."""

from collections.abc import Callable

from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.composed import ComposedResponse

__all__ = ["compose"]


def compose(first: Mechanism, second: Mechanism | Callable[[int], Mechanism]) -> ComposedResponse:
    """The mechanism that answers twice; ``second`` may depend on the first report (adaptive composition).

    What it promises is the sum of the two contexts, and ``certify`` checks it like any other promise: a second
    mechanism that breaks its own for a single first report is found wherever the sum is broken by it.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import BinaryResponse
    >>> from sfumato.promises import certify
    >>> twice = compose(BinaryResponse(Uniform(2, 1)), BinaryResponse(Uniform(2, 0.5)))
    >>> twice.outputs, certify(twice).promised_epsilon
    (4, 1.5)
    """
    return ComposedResponse(first, second)
