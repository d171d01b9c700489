"""The designer: from a context to a mechanism that keeps it."""

from sfumato.designer.design import Design, design
from sfumato.designer.shelf.choose import mechanism_for
from sfumato.designer.shelf.recognise import recognise

__all__ = ["Design", "design", "mechanism_for", "recognise"]
