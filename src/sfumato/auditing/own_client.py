"""The package's own client as one that an audit can ask: ``python -m sfumato.auditing.own_client survey.toml``.

A symbol in a line of standard input, a report in a line of standard output. Every answer has fresh randomness: two
reports about one value cost twice, which is what an audit wants and a person does not.
"""

import sys
from io import BufferedReader, BufferedWriter
from typing import cast

from sfumato.survey import Survey

__all__ = ["answer", "main"]


def answer(survey: Survey, symbols: BufferedReader, reports: BufferedWriter) -> None:
    """Answer line after line, as many at a time as there are to be read."""
    rest = b""
    while read := symbols.read1(2**20):
        *lines, rest = (rest + read).split(b"\n")
        if lines:
            made = survey.mechanism.privatize([int(line) for line in lines])
            reports.write(b"".join(b"%d\n" % report for report in made.tolist()))
            reports.flush()


def main() -> None:
    """Answer for the survey that the first argument names, until there are no more symbols."""
    answer(
        Survey.load(sys.argv[1]),
        cast(BufferedReader, sys.stdin.buffer),
        cast(BufferedWriter, sys.stdout.buffer),
    )


if __name__ == "__main__":
    main()
