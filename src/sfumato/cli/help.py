"""The layout of help texts: commands in groups, and examples that can be pasted."""

import inspect
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter

CONTEXT_SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 1_000,  # the help is as wide as the terminal, not just 80 columns
}

_TYPE = re.compile(r"<(\w+)[^>]*>")  # as Typer writes types, such as <int range>
_TYPE_NOUNS = {"int": "N", "float": "NUMBER"}
_EXAMPLES = re.compile(r"^Examples?:(.*)", re.MULTILINE | re.DOTALL)


class HelpCommand(TyperCommand):
    """A command whose help shows each example on a line of its own."""

    def format_help_text(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the text and the examples of the command's docstring."""
        _write_help_text(self.help, formatter)

    def collect_usage_pieces(self, ctx: "Context") -> list[str]:
        """Return the usage line in the common notation: SURVEY ANSWERS... [CLIENT]..."""
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = _argument_name(parameter)
                pieces.append(name if parameter.required else f"[{name}]")
        return pieces

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the arguments and the options, with TEXT, N or NUMBER for what they take."""
        rows_of_heading: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            names, text = record
            if parameter.param_type_name == "argument":
                rows_of_heading["Arguments"].append((_argument_name(parameter), text))
            else:
                rows_of_heading["Options"].append((_TYPE.sub(_type_noun, names), text))
        for heading, rows in rows_of_heading.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class HelpGroup(TyperGroup):
    """A group of commands whose help lists the commands under headings.

    The heading of a command is its ``rich_help_panel``.
    """

    def format_help_text(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the text and the examples of the group's docstring."""
        _write_help_text(self.help, formatter)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write each command with its summary, under the heading of its group."""
        rows_of_heading: dict[str, list[tuple[str, str]]] = {}
        name_width = max(map(len, self.commands))
        for name, command in self.commands.items():
            heading = getattr(command, "rich_help_panel", None)
            rows = rows_of_heading.setdefault(heading or "Commands", [])
            summary = command.get_short_help_str(limit=formatter.width)
            rows.append((name.ljust(name_width), summary))
        for heading, rows in rows_of_heading.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def show_help(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="The command to explain.")
    ] = None,
) -> None:
    """Show the help of a command, or list all commands.

    Examples:
      sfumato help estimate

      sfumato help paper synthetic

    """
    context = ctx.find_root()
    for name in names or []:
        group = context.command
        if not isinstance(group, TyperGroup):
            context.fail(f"{context.command_path!r} has no subcommands.")
        group.resolve_command(context, [name])  # an unknown name is an error
        command = group.commands[name]
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
        context.resilient_parsing = False  # an unknown subcommand is an error
    typer.echo(context.get_help())


def _argument_name(argument: "Parameter") -> str:
    name = str(argument.metavar or argument.name)
    return f"{name}..." if argument.nargs == -1 else name


def _type_noun(match: re.Match[str]) -> str:
    return _TYPE_NOUNS.get(match[1], "TEXT")


def _write_help_text(help_text: str | None, formatter: "HelpFormatter") -> None:
    """Write text, wrapped to the terminal, and then its examples, which are never wrapped."""
    text = inspect.cleandoc(help_text or "")
    match = _EXAMPLES.search(text)
    prose = text[: match.start()] if match else text
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(prose.strip())
    if match:
        _write_examples(match[1].splitlines(), formatter)


def _write_examples(lines: Iterable[str], formatter: "HelpFormatter") -> None:
    examples = [line.strip() for line in lines if line.strip()]
    heading = "Examples" if len(examples) > 1 else "Example"
    with formatter.section(heading):
        for example in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
