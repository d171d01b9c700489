"""The `sfumato` command.

Subcommands import what they need when they run, so --help is fast. Exit codes: 0 for success, 1 for
a negative result (such as a privacy violation or an infeasible plan), 2 for all other failures.
"""

import io
import os
import sys

import typer
from typer.core import TyperGroup

from sfumato.cli import (
    audit,
    compare,
    conformance,
    demo,
    design,
    estimate,
    init,
    paper,
    plan,
    privatize,
    send,
    serve,
    simulate,
    verify,
)
from sfumato.cli.console import notify
from sfumato.errors import PrivacyViolation, SfumatoError
from sfumato.foundation.formatting import printable_lines


class _OutputClosed(Exception):
    """The process that reads the output closed the pipe. This is not an error."""


class _Commands(TyperGroup):
    """Reserves exit code 1 for negative results. Typer also uses it for closed pipes and Ctrl-D."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run a subcommand."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _OutputClosed from None
        except typer.Abort:
            notify("sfumato: stopped; nothing was written.")
            raise typer.Exit(2) from None


app = typer.Typer(
    name="sfumato",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    # A traceback must not show local variables, which may contain people's values.
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Context-aware local differential privacy: randomize answers and estimate a distribution."""


app.command(name="init")(init.init)
app.command(name="design")(design.design)
app.command(name="plan")(plan.plan)
app.command(name="verify")(verify.verify)
app.command(name="check")(verify.check)
app.command(name="audit")(audit.audit)
app.command(name="label")(verify.label)
app.command(name="privatize")(privatize.privatize)
app.command(name="estimate")(estimate.estimate)
app.command(name="simulate")(simulate.simulate)
app.command(name="compare")(compare.compare)
app.command(name="send")(send.send)
app.command(name="serve")(serve.serve)
app.command(name="demo")(demo.demo)
app.command(name="conformance")(conformance.conformance)
app.add_typer(paper.app, name="paper")


def run() -> None:
    """Run the command. Convert exceptions to messages and exit codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Replace characters that the terminal cannot show, such as ε, instead of failing.
            stream.reconfigure(errors="replace")
    try:
        app()
    except PrivacyViolation as violation:
        _exit(f"PRIVACY VIOLATION: {violation}", 1)
    except SfumatoError as problem:
        _exit(str(problem), 2)
    except _OutputClosed:
        # Discard the remaining output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _exit("not enough memory. Try fewer runs, or a smaller domain.", 2)
    except (KeyboardInterrupt, SystemExit):
        raise
    except OSError as problem:
        file_note = f" ({problem.filename})" if problem.filename else ""
        _exit(f"{problem.strerror or problem}{file_note}", 2)
    except Exception as problem:  # noqa: BLE001 - a traceback could show a person's value
        # Exit code 1 would wrongly suggest a privacy violation.
        name = type(problem).__name__
        _exit(f"internal error ({name}). Details are hidden: they may contain a person's value.", 2)


def _exit(message: str, code: int) -> None:
    # Indent continuation lines, so text from a survey cannot look like a message from Sfumato.
    lines = printable_lines(message).replace("\n", "\n  ")
    print(f"sfumato: {lines}", file=sys.stderr)
    sys.exit(code)
