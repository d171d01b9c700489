"""Objects that hold a mechanism, such as surveys, where a function needs a context or a mechanism.

Surveys are defined in a layer above. Here they are any object that has a context and a mechanism.
"""

from typing import Protocol

from sfumato.contexts import Context
from sfumato.errors import InvalidArgument
from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["MechanismHolder", "context_of", "mechanism_of", "require_context", "require_mechanism"]


class MechanismHolder(Protocol):
    """A context with a mechanism that satisfies it: a survey or a design."""

    @property
    def context(self) -> Context:
        """The promise."""
        ...

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that keeps the promise."""
        ...


def mechanism_of(value: object) -> Mechanism | None:
    """Return a mechanism, or the mechanism of a survey; ``None`` for anything else."""
    if isinstance(value, Mechanism):
        return value
    mechanism = getattr(value, "mechanism", None)
    return mechanism if isinstance(mechanism, Mechanism) else None


def require_context(value: object, call: str, example: str = "sf.Uniform(labels, 1)") -> None:
    """Raise ``InvalidArgument`` unless the first argument of a mechanism is a context.

    ``call`` is the correct call, such as ``PlainResponse(context)``, and ``example`` a context for
    it.
    """
    if not isinstance(value, Context):
        raise InvalidArgument(
            f"the first argument must be a context; got {type(value).__name__}. Call sf.{call} "
            f"with e.g. context = {example}."
        )


def context_of(value: object, call: str) -> Context:
    """Return a context, or the context of a mechanism or a survey.

    Raise ``InvalidArgument`` for anything else. ``call`` is the correct call, such as
    ``plan(context, error=0.05)``.
    """
    if isinstance(value, Context):
        return value
    context = getattr(value, "context", None)
    if isinstance(context, Context):
        return context
    raise InvalidArgument(
        "the first argument must be a context, a mechanism or a survey; got "
        f"{type(value).__name__}. Call sf.{call} with e.g. context = sf.Uniform(labels, 1)."
    )


def require_mechanism(value: object, call: str) -> Mechanism:
    """Return a mechanism, or the mechanism of a survey.

    Raise ``InvalidArgument`` for anything else. ``call`` is the correct call, such as
    ``certify(mechanism)``.
    """
    mechanism = mechanism_of(value)
    if mechanism is None:
        raise InvalidArgument(
            f"the first argument must be a mechanism or a survey; got {type(value).__name__}. Call "
            f"sf.{call} with e.g. mechanism = sf.mechanism_for(context)."
        )
    return mechanism
