"""Help texts, the version and completion, as a terminal shows them."""

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer

from sfumato.cli.main import app
from sfumato.cli.survey_text import TEMPLATES
from support.command import run_process

GROUP = typer.main.get_command(app)
PAPER = GROUP.commands["paper"]
NAMES = [
    *((name,) for name in GROUP.commands),
    *(("paper", name) for name in PAPER.commands),
]
WIDTHS = (80, 120)


def help_text(*arguments, width=80):
    environment = {**os.environ, "COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"}
    result = run_process(*arguments, env=environment)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return result.stdout.decode()


def examples_in(text):
    """Return the lines between the heading of the examples and the next heading."""
    match = re.search(r"^Examples?:\n((?:  .*\n)+)", text, re.MULTILINE)
    assert match, text
    return [line.removeprefix("  ") for line in match[1].splitlines()]


def find_command(words):
    """Return the command that an example calls, and the remaining words."""
    command = GROUP
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return command, words


def options_of(command):
    options = {"-h", "--help"}
    for parameter in command.params:
        options.update(parameter.opts, parameter.secondary_opts)
    return options


def call_in(example):
    """Return the words after `sfumato` in an example, which may be part of a pipeline."""
    call = re.split(r"\bsfumato ", example, maxsplit=1)[1]
    return shlex.split(re.split(r" (?:\||&&|>|--) ", call)[0])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_examples_are_complete_lines(names, width):
    text = help_text(*names, "--help", width=width)
    docstring = find_group_or_command(names).help
    for example in examples_in(text):
        assert example in docstring  # on one line there, and on one line here
        assert re.match(r"(?:\S+ \S+ \| )?sfumato ", example)
        command, words = find_command(call_in(example))
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= options_of(command), example


def find_group_or_command(names):
    command = GROUP
    for name in names:
        command = command.commands[name]
    return command


def test_wrapped_example_is_detected():
    text = "Examples:\n  sfumato init --from answers.csv --column place --sensitive\n  a,b s.toml\n"
    assert not examples_in(text)[1].startswith("sfumato ")


@pytest.mark.parametrize("names", [(), ("paper",)], ids=["sfumato", "paper"])
def test_each_summary_is_one_complete_line(names):
    lines = help_text(*names, "--help").splitlines()
    assert max(map(len, lines)) <= 80
    group = find_group_or_command(names)
    for name, command in group.commands.items():
        rows = [line for line in lines if re.match(rf"  {name}  ", line)]
        assert len(rows) == 1
        summary = rows[0].split(maxsplit=1)[1]
        assert summary == command.short_help
        assert "…" not in summary and "..." not in summary


def test_commands_are_under_headings():
    text = help_text("--help")
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings == [
        "Options",
        "Prepare a survey",
        "Collect answers",
        "Read the results",
        "Show that the promise is kept",
        "Research and development",
        "Help",
    ]


def test_help_uses_the_width_of_the_terminal():
    narrow = help_text("init", "--help", width=80)
    wide = help_text("init", "--help", width=160)
    prose = [line for line in wide.splitlines() if "sfumato init" not in line]
    assert len(wide.splitlines()) < len(narrow.splitlines())
    assert 80 < max(map(len, prose)) <= 160


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_all_ways_to_ask_for_help_agree(call, names):
    texts = {call(*names, "--help").out, call(*names, "-h").out, call("help", *names).out}
    assert len(texts) == 1
    assert f"Usage: sfumato {' '.join(names)}" in texts.pop()


def test_help_without_a_command_lists_all(call):
    assert call("help").out == call("--help").out == call("-h").out


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("estmate",), "Did you mean 'estimate'"),
        (("init", "more"), "has no subcommands"),
        (("paper", "nonsense"), "No such command 'nonsense'"),
    ],
)
def test_help_for_an_unknown_command_exits_2(error_from, names, message):
    assert message in error_from("help", *names)


def test_version_is_that_of_the_package(call):
    result = call("--version")
    assert result.code == 0
    assert result.out == f"sfumato {version('sfumato')}\n"


USAGE_LINES = {
    "init": "[OPTIONS] [SURVEY]",
    "plan": "[OPTIONS] SURVEY",
    "simulate": "[OPTIONS] SURVEY ANSWERS...",
    "compare": "[OPTIONS] ANSWERS",
    "design": "[OPTIONS] MATRIX.csv|SURVEY",
    "privatize": "[OPTIONS] SURVEY ANSWERS...",
    "send": "[OPTIONS] SURVEY ANSWERS",
    "serve": "[OPTIONS] [SURVEY...]",
    "estimate": "[OPTIONS] SURVEY REPORTS...",
    "verify": "[OPTIONS] SURVEY",
    "check": "[OPTIONS] FILE",
    "audit": "[OPTIONS] SURVEY [CLIENT...]",
    "label": "[OPTIONS] SURVEY",
    "demo": "[OPTIONS]",
    "conformance": "[OPTIONS] CLIENT...",
    "store": "[OPTIONS] COMMAND [ARGS]...",
    "paper": "[OPTIONS] COMMAND [ARGS]...",
    "help": "[OPTIONS] [COMMAND...]",
}


@pytest.mark.parametrize("name", GROUP.commands)
def test_usage_line_names_the_arguments(call, name):
    text = call(name, "--help").out
    assert text.splitlines()[0] == f"Usage: sfumato {name} {USAGE_LINES[name]}"
    if hasattr(GROUP.commands[name], "commands"):
        return  # a group lists its commands
    for argument in USAGE_LINES[name].split()[1:]:
        assert re.search(rf"^  {re.escape(argument.strip('[]'))} ", text, re.MULTILINE), argument


@pytest.mark.parametrize("arguments", [("privatize",), ("privatize", "lunch.toml"), ("check",)])
def test_missing_argument_is_named_with_the_usage_line(error_from, arguments):
    message = error_from(*arguments)
    name = arguments[0]
    assert message.startswith(f"Usage: sfumato {name} {USAGE_LINES[name]}\n")
    next_argument = USAGE_LINES[name].split()[len(arguments)].removesuffix("...")
    assert f"Missing argument '{next_argument}'" in message


def complete(line):
    """Return what bash offers for the last word of a line, which may be empty."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_SFUMATO_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = run_process(env=environment)
    assert result.stderr == b""
    return result.stdout.decode().split()


def test_completion_lists_commands():
    assert set(complete("sfumato p")) == {"plan", "privatize", "paper"}


DECODERS = ["auto", "projection", "likelihood", "empirical-bayes", "unbiased"]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("sfumato estimate survey.toml r.csv --decoder ", DECODERS),
        ("sfumato estimate survey.toml r.csv --decoder e", ["empirical-bayes"]),
        ("sfumato simulate --decoder ", DECODERS),
        ("sfumato plan --decoder p", ["projection"]),
        ("sfumato init --template ", list(TEMPLATES)),
        ("sfumato init --template y", ["yes-no"]),
        ("sfumato init --date ", ["day", "weekday", "hour", "month"]),
        ("sfumato init --missing ", ["refuse", "skip"]),
        ("sfumato privatize survey.toml a.csv --missing s", ["skip"]),
    ],
)
def test_completion_lists_the_values_of_an_option(line, values):
    assert complete(line) == values


def test_options_with_a_list_of_values_complete_them():
    """An option whose help names its values, as in day|weekday, offers them."""
    for names in NAMES:
        for parameter in find_group_or_command(names).params:
            values = str(parameter.metavar).split("|")
            if parameter.param_type_name == "argument" or len(values) == 1:
                continue
            offers = [item.value for item in parameter.shell_complete(None, "")]
            assert offers == [value for value in values if value.islower()], names


def test_completion_script_calls_sfumato():
    # Typer finds out which shell is running it, so a shell must.
    program = f"{shlex.quote(sys.executable)} -m sfumato --show-completion; exit"
    result = subprocess.run(
        ["/bin/bash", "-c", program], capture_output=True, text=True, check=True
    )
    assert "complete -o default -F _sfumato_completion sfumato" in result.stdout


@pytest.mark.parametrize("arguments", ["['--help']", "['help', 'init']", "['--version']"])
def test_help_does_not_import_numpy(arguments):
    program = (
        "import sys\n"
        f"sys.argv[1:] = {arguments}\n"
        "from sfumato.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "assert 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
