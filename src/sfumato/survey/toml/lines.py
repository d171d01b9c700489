"""Find the line of each key in a TOML document.

``tomllib`` gives lines only for syntax errors. The scanner reads documents that ``tomllib`` has
accepted. If it meets anything unexpected, it gives no lines rather than wrong ones.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping

__all__ = ["Path", "find_lines"]

Path = tuple[str | int, ...]
"""The keys and the positions in arrays that lead to a value."""

_MAX_CHARACTERS = 2**22  # scanning a larger document would take seconds

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?=\n|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""{1,3}|'  # a closing delimiter may follow up to two more quotes
    r"'''.*?'''{1,3}|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'",
    re.DOTALL,
)
_PLAIN_VALUE = re.compile(r"[^\s,\]}#\"'\[{][^,\]}#\n]*")


class _Unexpected(Exception):
    """The scanner does not understand the document."""


def find_lines(text: str) -> Mapping[Path, int]:
    r"""Return the line of each key and array item, counted from 1; nothing if in doubt.

    >>> find_lines('name = "q"\n[domain]\nsize = 3')
    {('name',): 1, ('domain',): 2, ('domain', 'size'): 3}
    """
    if len(text) > _MAX_CHARACTERS:
        return {}
    try:
        return _Scanner(text).scan()
    except (_Unexpected, RecursionError, ValueError):
        return {}


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        self._lines: dict[Path, int] = {}
        self._array_lengths: dict[Path, int] = {}  # of arrays of tables

    def scan(self) -> Mapping[Path, int]:
        section: Path = ()
        self._skip(_BLANK)
        while self._position < len(self._text):
            if self._text.startswith("[", self._position):
                section = self._scan_header()
            else:
                self._scan_pair(section)
            # Only a comment may follow on the same line.
            self._skip(_REST_OF_LINE)
            self._skip(_BLANK)
        return self._lines

    def _scan_header(self) -> Path:
        """Scan ``[a.b]`` or ``[[a.b]]``; return the path of the table that it starts."""
        line = self._line()
        bracket = "[[" if self._text.startswith("[[", self._position) else "["
        self._position += len(bracket)
        keys = self._scan_keys()
        self._expect("]" * len(bracket))
        section: Path = ()
        for depth, key in enumerate(keys, 1):
            section = (*section, key)
            self._lines.setdefault(section, line)
            if bracket == "[[" and depth == len(keys):
                self._array_lengths[section] = self._array_lengths.get(section, 0) + 1
            if section in self._array_lengths:
                section = (*section, self._array_lengths[section] - 1)
                self._lines.setdefault(section, line)
        return section

    def _scan_pair(self, section: Path) -> None:
        """Scan ``a.b = value``."""
        line = self._line()
        keys = self._scan_keys()
        path = section
        for key in keys:
            path = (*path, key)
            self._lines.setdefault(path, line)
        self._expect("=")
        self._skip(_SPACE)
        self._scan_value(path)

    def _scan_keys(self) -> list[str]:
        keys = [self._scan_key()]
        while self._text.startswith(".", self._position):
            self._position += 1
            keys.append(self._scan_key())
        return keys

    def _scan_key(self) -> str:
        self._skip(_SPACE)
        if self._text.startswith(('"', "'"), self._position):
            quoted = self._match(_STRING)
            (key,) = tomllib.loads(f"{quoted} = 0")
        else:
            key = self._match(_BARE_KEY)
        self._skip(_SPACE)
        return key

    def _scan_value(self, path: Path) -> None:
        start = self._text[self._position : self._position + 1]
        if start == "[":
            self._scan_array(path)
        elif start == "{":
            self._scan_inline_table(path)
        elif start in ('"', "'"):
            self._match(_STRING)
        else:
            self._match(_PLAIN_VALUE)

    def _scan_array(self, path: Path) -> None:
        self._position += 1
        index = 0
        self._skip(_BLANK)
        while not self._text.startswith("]", self._position):
            self._lines[*path, index] = self._line()
            self._scan_value((*path, index))
            index += 1
            self._expect_separator("]")
        self._position += 1

    def _scan_inline_table(self, path: Path) -> None:
        self._position += 1
        self._skip(_BLANK)
        while not self._text.startswith("}", self._position):
            self._scan_pair(path)
            self._expect_separator("}")
        self._position += 1

    def _expect_separator(self, end: str) -> None:
        """Skip a comma, unless the array or table ends here."""
        self._skip(_BLANK)
        if not self._text.startswith(end, self._position):
            self._expect(",")
            self._skip(_BLANK)

    def _expect(self, token: str) -> None:
        if not self._text.startswith(token, self._position):
            raise _Unexpected
        self._position += len(token)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._position)
        if match is None:
            raise _Unexpected
        self._position = match.end()
        return match.group()

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._match(pattern)

    def _line(self) -> int:
        return bisect_left(self._line_ends, self._position) + 1
