"""All the text that an error could leak."""

import traceback


def full_error_text(error):
    """Return what an error and all errors behind it say, and the traceback that a log would show."""
    texts = []
    current = error
    while current is not None:
        texts += [str(current), repr(current), repr(current.args), repr(vars(current))]
        current = current.__cause__ or current.__context__
    return "\n".join([*texts, *traceback.format_exception(error)])
