"""A question: what is asked under one name, and how its answers are protected."""

from dataclasses import dataclass, replace

from sfumato.contexts import Context
from sfumato.domains.domain import require_label
from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.foundation.notebook import FieldsView

__all__ = ["DEFAULT_QUESTION", "Question", "require_name"]

DEFAULT_QUESTION = "answer"
"""The name of a survey's only question, unless the survey names it."""

_MAX_NAME_LENGTH = 100


@dataclass(frozen=True)
class Question(FieldsView):
    """A question's name, and the context that protects its answers.

    A survey of one question may name it, which matters when its answers are a column of a table.

    >>> from sfumato.contexts import Uniform
    >>> Question("mode", Uniform(["car", "bus", "bike"], 1)).name
    'mode'
    """

    name: str
    context: Context

    def __post_init__(self) -> None:
        if not isinstance(self.context, Context):
            raise InvalidSurvey(
                "a survey needs a context, which lists the possible answers; got "
                f"{type(self.context).__name__}. For example: "
                'sf.Survey("vote", sf.Uniform(["no", "yes"], epsilon=1)). Pass people\'s answers '
                "to survey.privatize."
            )
        object.__setattr__(self, "name", require_name(self.name, "a question's name"))

    def for_edition(self, edition: int) -> "Question":
        """Return the question whose domain reads answers as surveys of an edition do."""
        domain = self.context.domain.for_edition(edition)
        if domain is self.context.domain:
            return self
        return replace(self, context=self.context.with_domain(domain))


def require_name(name: object, field: str) -> str:
    """Return a name of a survey or question if it is one line of printable text."""
    try:
        label = require_label(name, field)
    except InvalidContext as problem:
        raise InvalidSurvey(str(problem)) from None
    is_printable = isinstance(label, str) and label.isprintable() and label == label.strip()
    if not is_printable or len(str(label)) > _MAX_NAME_LENGTH:
        raise InvalidSurvey(
            f"{field} must be a single line of at most 100 printable characters, unique per "
            "question."
        )
    return str(label)
