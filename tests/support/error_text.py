"""All the text that an error could leak."""

import traceback


def full_error_text(error):
    """Return the text of an error, of all errors behind it, and of the traceback in a log."""
    texts = []
    current = error
    while current is not None:
        texts += [str(current), repr(current), repr(current.args), repr(vars(current))]
        current = current.__cause__ or current.__context__
    return "\n".join([*texts, *traceback.format_exception(error)])
