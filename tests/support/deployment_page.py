"""The blocks of docs/deployment.md, to be run in order on a pretended machine."""

import re
from pathlib import Path

from support.paths import ROOT

PAGE = ROOT / "docs" / "deployment.md"
_HEADING = re.compile(r"#+ (.+)")
_FENCE = re.compile(r"```(?:\{code-block\} )?(\w*)")


def read_blocks():
    """Return the commands under each heading of the page, for those that have an `sh` block."""
    blocks = {}
    for heading, language, lines in _walk():
        if language == "sh":
            assert heading not in blocks, f"two blocks under {heading!r}: give each its heading"
            blocks[heading] = "\n".join(lines) + "\n"
    return blocks


def write_files(folder):
    """Write the files that the page shows with their names."""
    for _, language, lines in _walk():
        if language == "toml":
            name = lines[0].removeprefix(":caption: ")
            Path(folder, name).write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")


def _walk():
    """Yield the heading, the language and the lines of each fenced block."""
    heading = None
    language = None
    content = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if language is not None:
            if line == "```":
                yield heading, language, content
                language = None
            else:
                content.append(line)
        elif match := _FENCE.fullmatch(line):
            language = match[1]
            content = []
        elif match := _HEADING.fullmatch(line):
            heading = match[1]
