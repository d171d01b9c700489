"""Show a correct call in the error that Python raises for wrong arguments."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["shows_call"]

P = ParamSpec("P")
R = TypeVar("R")


def shows_call(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: if its arguments do not fit, the error also shows ``call``.

    Python's own error says what is wrong with the arguments, but not how to correct them. Other
    errors are unchanged.

    >>> @shows_call("double(21)")
    ... def double(number):
    ...     return 2 * number
    >>> double(n=21)
    Traceback (most recent call last):
    TypeError: double() got an unexpected keyword argument 'n'. Call double(21).
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call_function(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError as error:
                if not _is_about_arguments(error):
                    raise
                problem = str(error).replace(".__init__()", "()")
            raise TypeError(f"{problem}. Call {call}.")

        return call_function

    return decorate


def _is_about_arguments(error: TypeError) -> bool:
    """Return whether the error was raised by the call itself, before the function started."""
    traceback = error.__traceback__
    return traceback is not None and traceback.tb_next is None
