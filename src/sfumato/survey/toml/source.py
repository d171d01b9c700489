"""The text of a survey file, and the places in it that error messages refer to."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from sfumato.errors import InvalidSurvey
from sfumato.survey.toml.lines import Path, find_lines

__all__ = ["SurveySource"]

# The field at the start of a message: "context.epsilon must be …" or "context: epsilon must be …".
_FIELD = re.compile(r"(?P<field>[a-z_]+(?:\.[a-z_]+)*)(?:: (?P<argument>[a-z_]+))?")
_QUESTION: Path = ("question", 0)


@dataclass(frozen=True)
class SurveySource:
    """A survey file: the name that error messages use for it, and its text."""

    name: str
    text: str

    @cached_property
    def _lines(self) -> dict[Path, int]:
        return dict(find_lines(self.text))

    def line(self, path: Sequence[str | int]) -> int | None:
        """Return the line of a field, or of its section if the file does not contain the field.

        Parts of ``path`` that are not in the file are skipped.
        """
        path_in_file: Path = ()
        for part in path:
            if (*path_in_file, part) in self._lines:
                path_in_file = (*path_in_file, part)
        return self._lines.get(path_in_file)

    def locate(self, path: Sequence[str | int], message: str) -> str:
        """Return the message with the name of the file and the line of a field, if it has one."""
        line = self.line(path)
        place = self.name if line is None else f"{self.name}, line {line}"
        return f"{place}: {message}"

    def locate_message(self, message: str) -> str:
        """Return the message with the name of the file and the line of the field it starts with."""
        match = _FIELD.match(message)
        if match is None:
            return self.locate((), message)
        path: Path = tuple(match["field"].split("."))
        if match["argument"]:
            path = (*path, match["argument"])
        if path[0] == "question":
            path = (*_QUESTION, *path[1:])
        elif (path[0],) not in self._lines and _QUESTION in self._lines:
            # Messages about the only question leave out its section.
            path = (*_QUESTION, *path)
        return self.locate(path, message)

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Add the name of the file and lines to errors. Each line of a message is an error."""
        try:
            yield
        except InvalidSurvey as problem:
            messages = map(self.locate_message, str(problem).split("\n"))
            raise InvalidSurvey("\n".join(messages)) from problem
