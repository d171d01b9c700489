"""The `sfumato` command. Sub-commands import what they need when they run, so that --help is quick.

Exit codes: 0 done; 1 the answer is no (a privacy violation, an infeasible plan); 2 the call or the input is wrong.
"""

import io
import os
import sys

import typer
from typer.core import TyperGroup

from sfumato.cli import (
    audit,
    check,
    compare,
    conformance,
    demo,
    design,
    estimate,
    init,
    label,
    paper,
    plan,
    privatize,
    send,
    serve,
    simulate,
    verify,
)
from sfumato.cli.console import warn
from sfumato.errors import PrivacyViolation, SfumatoError
from sfumato.foundation.printable import printable_lines

__all__ = ["app", "run"]


class _ReaderGone(Exception):
    """Whoever read our output has had enough: neither a wrong call nor a no."""


class _Commands(TyperGroup):
    """Keeps exit code 1 for answers that are no: by itself the library also gives it to closed pipes and to Ctrl-D."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run a sub-command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None
        except typer.Abort:
            warn("sfumato: stopped; nothing was written.")
            raise typer.Exit(2) from None


app = typer.Typer(
    name="sfumato",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    # Tracebacks of our own making never reach a user; others must not show local variables, which may be values.
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Context-aware local differential privacy: blur people's answers by degrees, recover the crowd."""


app.command(name="init")(init.init)
app.command(name="design")(design.design)
app.command(name="plan")(plan.plan)
app.command(name="verify")(verify.verify)
app.command(name="check")(check.check)
app.command(name="audit")(audit.audit)
app.command(name="label")(label.label)
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
    """The entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal that cannot show ε still gets the rest
    try:
        app()
    except PrivacyViolation as violation:
        _leave(f"PRIVACY VIOLATION: {violation}", 1)
    except SfumatoError as problem:
        _leave(str(problem), 2)
    except _ReaderGone:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is still buffered goes nowhere
        sys.exit(0)
    except MemoryError:
        _leave(
            "there is not enough memory for this; ask for fewer runs, or for a smaller domain.", 2
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        _leave(f"{problem.strerror or problem}{where}", 2)
    except Exception as problem:  # noqa: BLE001 - a traceback could hold a value, and exit code 1 means a violation
        _leave(
            f"something went wrong that should not have ({type(problem).__name__}). Nothing was written.",
            2,
        )


def _leave(message: str, code: int) -> None:
    # Further lines are indented, so that no text of a survey can pose as a line of its own.
    lines = printable_lines(message).replace("\n", "\n  ")
    print(f"sfumato: {lines}", file=sys.stderr)
    sys.exit(code)
