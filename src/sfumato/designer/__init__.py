"""Design: from a context to a mechanism that keeps it."""

from sfumato.designer.choose import mechanism_for
from sfumato.designer.recognise import recognise

__all__ = ["mechanism_for", "recognise"]
