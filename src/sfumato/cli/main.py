"""The `sfumato` command. Sub-commands import what they need when they run, so that --help is quick.

Exit codes: 0 done; 1 the answer is no (a privacy violation); 2 the call or the input is wrong.
"""

import io
import sys

import typer

from sfumato.cli import demo, estimate, init, privatize, simulate, verify
from sfumato.errors import PrivacyViolation, SfumatoError

__all__ = ["app", "run"]

app = typer.Typer(
    name="sfumato",
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
app.command(name="verify")(verify.verify)
app.command(name="privatize")(privatize.privatize)
app.command(name="estimate")(estimate.estimate)
app.command(name="simulate")(simulate.simulate)
app.command(name="demo")(demo.demo)


def run() -> None:
    """The entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show ε still gets the rest
    try:
        app()
    except PrivacyViolation as violation:
        _leave(f"PRIVACY VIOLATION: {violation}", 1)
    except SfumatoError as problem:
        _leave(str(problem), 2)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has had enough
        sys.exit(0)
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        _leave(f"{problem.strerror or problem}{where}", 2)


def _leave(message: str, code: int) -> None:
    print(f"sfumato: {message}", file=sys.stderr)
    sys.exit(code)
