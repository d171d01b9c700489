"""The `sfumato` command.

Subcommands import what they need when they run, so --help is fast. Exit codes: 0 for success, 1 for
a negative result (such as a privacy violation or an infeasible plan), 2 for all other failures.
"""

import io
import os
import sys
import warnings
from typing import Annotated, TextIO

import typer

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
    store,
    verify,
)
from sfumato.cli.console import notify, say
from sfumato.cli.help import CONTEXT_SETTINGS, HelpCommand, HelpGroup, show_help
from sfumato.errors import PrivacyViolation, SfumatoError
from sfumato.foundation.formatting import printable_lines


class _OutputClosed(Exception):
    """The process that reads the output closed the pipe. This is not an error."""


class _Commands(HelpGroup):
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
    context_settings=CONTEXT_SETTINGS,
    # A traceback must not show local variables, which may contain people's values.
    pretty_exceptions_enable=False,
)


def _show_version(is_requested: bool) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if not is_requested:
        return
    try:
        say(f"sfumato {version('sfumato')}")
    except PackageNotFoundError:  # the source folder is on the path, but was never installed
        say("sfumato (version unknown: not installed)")
    raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Context-aware local differential privacy: randomize answers and estimate a distribution.

    Start with `sfumato init`, `sfumato privatize` and `sfumato estimate`. `sfumato help COMMAND`
    explains a command and shows examples.
    """


_PREPARE = "Prepare a survey"
_COLLECT = "Collect answers"
_READ = "Read the results"
_CONVINCE = "Show that the promise is kept"
_RESEARCH = "Research and development"
_HELP = "Help"

# Each summary fits on one line of a terminal with 80 columns.
_COMMANDS = (
    ("init", init.init, _PREPARE, "Write a survey file, from a template or from your data."),
    ("plan", plan.plan, _PREPARE, "Compute how many people you need, or the error to expect."),
    ("simulate", simulate.simulate, _PREPARE, "Try a survey on data you already have."),
    ("compare", compare.compare, _PREPARE, "Compare a survey with classical mechanisms."),
    ("design", design.design, _PREPARE, "Compute the best mechanism for a privacy matrix."),
    ("privatize", privatize.privatize, _COLLECT, "Turn a file of answers into private reports."),
    ("send", send.send, _COLLECT, "Privatize answers and deliver them to an aggregator."),
    ("serve", serve.serve, _COLLECT, "Run an aggregator, which receives and counts reports."),
    ("estimate", estimate.estimate, _READ, "Estimate the shares of all answers from reports."),
    ("verify", verify.verify, _CONVINCE, "Prove that a survey keeps its promise."),
    ("check", verify.check, _CONVINCE, "Check a promise again with an independent program."),
    ("audit", audit.audit, _CONVINCE, "Look for privacy violations in a client's reports."),
    ("label", verify.label, _CONVINCE, "Write a privacy label for participants."),
    ("demo", demo.demo, _RESEARCH, "Map one million simulated homes under three promises."),
    ("conformance", conformance.conformance, _RESEARCH, "Test a client in any language."),
)
for _name, _command, _heading, _summary in _COMMANDS:
    app.command(_name, cls=HelpCommand, rich_help_panel=_heading, short_help=_summary)(_command)
app.add_typer(
    store.app,
    name="store",
    rich_help_panel=_COLLECT,
    short_help="Leave a flood out of the results; manage bulk senders.",
)
app.add_typer(
    paper.app,
    name="paper",
    rich_help_panel=_RESEARCH,
    short_help="Reproduce the figures of the paper behind Sfumato.",
)
app.command("help", cls=HelpCommand, rich_help_panel=_HELP, short_help="Explain a command.")(
    show_help
)


def run() -> None:
    """Run the command. Convert exceptions to messages and exit codes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Replace characters that the terminal cannot show, such as ε, instead of failing.
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        _run_app()


def _run_app() -> None:
    try:
        app(prog_name="sfumato")
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


_show_python_warning = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning from Sfumato as a plain sentence, without a path or a line of code."""
    if category.__module__.startswith("sfumato."):
        notify(f"sfumato: {message}")
    else:
        _show_python_warning(message, category, filename, lineno, file, line)


def _exit(message: str, code: int) -> None:
    # Indent continuation lines, so text from a survey cannot look like a message from Sfumato.
    lines = printable_lines(message).replace("\n", "\n  ")
    print(f"sfumato: {lines}", file=sys.stderr)
    sys.exit(code)
