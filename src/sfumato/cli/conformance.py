"""`sfumato conformance`: test a client written in any language."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say, show_status
from sfumato.cli.options import Json

if TYPE_CHECKING:
    from sfumato.conformance import FileResult

_MAX_FAILURES_SHOWN = 3  # per file


def conformance(
    client: Annotated[
        list[str],
        typer.Argument(
            metavar="CLIENT",
            help="Command that starts the client. If the command has options, put -- before it.",
        ),
    ],
    file: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only the cases in this file, e.g. canonical.json."),
    ] = None,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Test a client with the test vectors, over the line protocol of the client specification.

    Exits 1 if an answer is wrong or missing.

    Examples:
      sfumato conformance ./my-client

      sfumato conformance -- node conformance.js --quiet

    """
    from sfumato.conformance import FILES, examine

    files = file or FILES
    for name in files:
        if name not in FILES:
            raise typer.BadParameter(f"--file must be one of {', '.join(FILES)}; got {name}.")
    results = []
    with show_status("testing the client") as show:
        for result in examine(client, patience, files):
            show(f"{result.file}: {result.passed} of {result.cases}")
            results.append(result)
    conforms = all(result.passed == result.cases for result in results)
    say(json.dumps(_to_dict(results, conforms)) if as_json else _to_text(results, conforms))
    if not conforms:
        raise typer.Exit(1)


def _to_dict(results: "list[FileResult]", conforms: bool) -> dict[str, object]:
    files = []
    for result in results:
        fields = {
            "file": result.file,
            "cases": result.cases,
            "passed": result.passed,
            "ended": result.ended or None,
            "failures": [vars(failure) for failure in result.failures],
        }
        files.append(fields)
    return {"conforms": conforms, "files": files}


def _to_text(results: "list[FileResult]", conforms: bool) -> str:
    lines = [f"{'file':<18} {'cases':>6} {'passed':>7}"]
    for result in results:
        lines.append(f"{result.file:<18} {result.cases:>6} {result.passed:>7}")
    for result in results:
        lines += _failure_lines(result)
    lines.append("")
    if conforms:
        lines.append("The client conforms: every answer is correct.")
    else:
        lines.append("The client does not conform.")
    return "\n".join(lines)


def _failure_lines(result: "FileResult") -> list[str]:
    lines = []
    for failure in result.failures[:_MAX_FAILURES_SHOWN]:
        location = f" at {failure.place}" if failure.place else ""
        lines += [
            "",
            f"{result.file}, case {failure.number} ({failure.about}){location}",
            f"  expected  {failure.expected}",
            f"  got       {failure.actual}",
        ]
    hidden_count = len(result.failures) - _MAX_FAILURES_SHOWN
    if hidden_count > 0:
        lines += ["", f"{result.file}: {hidden_count} more failures"]
    if result.ended:
        lines += ["", f"{result.file}: {result.ended}. The remaining cases were skipped."]
    return lines
