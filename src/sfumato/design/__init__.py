"""Design: from a context to a mechanism that keeps it."""

from sfumato.design.choose import mechanism_for
from sfumato.design.recognise import recognise

__all__ = ["mechanism_for", "recognise"]
