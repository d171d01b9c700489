"""What a survey's reports may show, in plain words."""

from sfumato.contexts import Context
from sfumato.foundation.printable import printable

__all__ = ["disclosure_of"]

_MOST_LABELS = 30


def disclosure_of(context: Context) -> str:
    """Sentences for the person who is asked; empty where every pair of answers has a promise."""
    sentences = []
    symbols = context.unprotected()
    if symbols.size and symbols.size == context.size:
        return "Every answer is sent as it is."
    if symbols.size:
        shown = symbols[:_MOST_LABELS].tolist()
        # A label is its author's text: escape what would move a cursor or reverse a line.
        named = ", ".join(printable(str(context.domain.labels[x])) for x in shown)
        more = f" and {symbols.size - _MOST_LABELS:,} more" if symbols.size > _MOST_LABELS else ""
        sentences.append(f"These answers are sent as they are: {named}{more}.")
    if context.partly_open:
        sentences.append("A report may show to which group of answers yours belongs.")
    return " ".join(sentences)
