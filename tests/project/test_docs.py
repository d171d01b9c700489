"""The pages: all of them are reachable, what they show is run, and every public name is on them."""

import doctest
import importlib
import inspect
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.main

import sfumato
from project import test_proof_pages
from sfumato.cli.main import app
from support.mechanism_examples import every_mechanism_class
from support.paths import ROOT

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# --- blocks of a page -----------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A fenced block: ``python`` or ``{code-block} python``, with the options that stand at its head."""

    language: str
    options: dict[str, str]
    lines: list[str]

    @property
    def is_examples(self) -> bool:
        return any(line.startswith(">>>") for line in self.lines)


OPTION = re.compile(r":([\w-]+): *(.*)")


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, waiting = [], iter(text.splitlines())
    for line in waiting:
        if opening := re.fullmatch(r"(`{3,})(?:\{code-block\} *)?(\S*)", line.strip()):
            inside = []
            for inner in waiting:
                if inner.strip() == opening[1]:
                    break
                inside.append(inner)
            head = list(takewhile(bool, map(OPTION.fullmatch, inside)))
            found.append(
                Block(opening[2], {option[1]: option[2] for option in head}, inside[len(head) :])
            )
    return found


PAGE = """
```{code-block} python
:caption: a.py
print(1)
```

```console
$ python a.py
1
```
"""


def test_blocks_are_read_with_their_options():
    program, console = blocks_of(PAGE)
    assert program == Block("python", {"caption": "a.py"}, ["print(1)"])
    assert console == Block("console", {}, ["$ python a.py", "1"])


def test_options_end_where_the_first_line_is_none():
    (block,) = blocks_of("```{code-block} text\n:class: varies\nseen\n:caption: no option\n```")
    assert block == Block("text", {"class": "varies"}, ["seen", ":caption: no option"])


# --- every page can be found ----------------------------------------------------------------------------------------


def pages_without_toctree(docs: Path) -> set[str]:
    """Pages that no toctree leads to, from the index on."""
    pages = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("_build/")}
    reached, waiting = set(), ["index"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting.extend(children_of(docs, page))
    return pages - reached


def children_of(docs: Path, page: str) -> list[str]:
    folder = (docs / page).parent
    toctrees = [
        block
        for block in blocks_of((docs / f"{page}.md").read_text("utf-8"))
        if block.language == "{toctree}"
    ]
    entries = [line.strip() for block in toctrees for line in block.lines if line.strip()]
    files = [file for entry in entries for file in folder.glob(f"{entry}.md")]
    return [file.relative_to(docs).with_suffix("").as_posix() for file in files]


def test_every_page_is_in_a_toctree():
    assert not pages_without_toctree(DOCS)


def test_a_page_outside_all_toctrees_is_seen(tmp_path):
    shutil.copytree(
        DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "*.png", "*.py")
    )
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n")
    assert pages_without_toctree(tmp_path / "docs") - pages_without_toctree(DOCS) == {"lost"}


# --- what is shown is run -------------------------------------------------------------------------------------------


def python_that_nobody_runs(text: str) -> list[Block]:
    """Python blocks that are neither examples with >>> nor files with a name that the page runs."""
    blocks = blocks_of(text)
    run = "\n".join("\n".join(block.lines) for block in blocks if block.language == "console")
    python = [block for block in blocks if block.language in {"python", "py", "pycon"}]
    return [
        block
        for block in python
        if not block.is_examples and f"$ python {block.options.get('caption', '?')}" not in run
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_python_on_a_page_is_run(page):
    assert not python_that_nobody_runs(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "block", ["```python\nprint(1)\n```", "```{code-block} python\n:caption: b.py\nprint(1)\n```"]
)
def test_python_that_nobody_runs_is_seen(block):
    assert len(python_that_nobody_runs(PAGE + block)) == 1


def test_examples_on_pages_are_collected(pytestconfig):
    assert {"README.md", "docs"} <= set(pytestconfig.getini("testpaths"))
    options = pytestconfig.getini("addopts")
    assert "--doctest-glob=*.md" in options
    left_out = [
        ROOT / option.removeprefix("--ignore=")
        for option in options
        if option.startswith("--ignore=")
    ]
    assert not [
        name_of(page) for page in PAGES if any(page.is_relative_to(place) for place in left_out)
    ]


class Run(NamedTuple):
    """A command of a console block, and what the page says that it prints."""

    command: str
    output: str
    numbers_vary: bool


def runs_of(block: Block) -> list[Run]:
    cut = re.split(r"^\$ (.+)\n?", "\n".join(block.lines), flags=re.MULTILINE)
    numbers_vary = "varies" in block.options.get("class", "")
    return [
        Run(command, output, numbers_vary)
        for command, output in zip(cut[1::2], cut[2::2], strict=True)
    ]


def played(page: Path, folder: Path) -> None:
    """Write the files of a page and run its commands, in the order of the page, as its reader would."""
    (folder / "tools").symlink_to(ROOT / "tools")
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if "caption" in block.options:
            (folder / block.options["caption"]).write_text(
                "\n".join(block.lines) + "\n", encoding="utf-8"
            )
        elif block.language == "console":
            for run in runs_of(block):
                compare(run, printed_by(run.command, folder))


def printed_by(command: str, folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    surroundings = {
        **os.environ,
        "PATH": path,
        "PYTHONUTF8": "1",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    return done.stdout


def compare(run: Run, printed: str) -> None:
    """Word for word, `...` for anything; where numbers are drawn by chance, any number for any other.

    A command that is shown without output must print nothing.
    """
    expected, found = run.output, printed
    if run.numbers_vary:
        expected, found = (re.sub(r"\d[\d,.]*", "#", text) for text in (expected, found))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    agrees = doctest.OutputChecker().check_output(
        f"{expected.strip()}\n", f"{found.strip()}\n", flags
    )
    assert agrees, f"$ {run.command}\nexpected:\n{run.output}\nprinted:\n{printed}"


WITH_COMMANDS = [
    page
    for page in PAGES
    if any(block.language == "console" for block in blocks_of(page.read_text("utf-8")))
]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_the_commands_of_a_page_print_what_it_says(page, tmp_path):
    played(page, tmp_path)


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("\n1\n```", "\n2\n```"),
        ("print(1)", "print(1); raise SystemExit(1)"),
        ("$ python a.py", "$ python b.py"),
    ],
)
def test_a_page_that_is_wrong_is_seen(tmp_path, true, false):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(true, false))
    with pytest.raises(AssertionError):
        played(page, tmp_path)


def test_only_numbers_may_vary():
    run = Run("c", "12 reports, 0.5 (0.25 to 1,000.5)", numbers_vary=True)
    compare(run, "7 reports, 0.1 (0.2 to 9)")
    with pytest.raises(AssertionError):
        compare(run, "7 tallies, 0.1 (0.2 to 9)")
    with pytest.raises(AssertionError):
        compare(run._replace(numbers_vary=False), "7 reports, 0.1 (0.2 to 9)")


@pytest.mark.parametrize("numbers_vary", [False, True])
def test_a_command_without_output_is_silent(numbers_vary):
    silent = Run("c", "", numbers_vary)
    compare(silent, "")
    with pytest.raises(AssertionError):
        compare(silent, "7 reports")
    compare(silent._replace(output="..."), "7 reports")


# --- commands that are only shown -----------------------------------------------------------------------------------

SHOWN = re.compile(
    r"(?:^ {4}|^|`|\$ |&& |\| )sfumato +((?:[a-z-]+)(?: [^`|\n#&)]*)?)", re.MULTILINE
)


def faults_of(call: str) -> list[str]:
    """What is wrong with a call of the command: sub-commands and options that do not exist."""
    command, words = typer.main.get_command(app), shlex.split(call, comments=True)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name == "--help":
            return []
        if name not in command.commands:
            return [f"there is no {name!r} in: sfumato {call}"]
        command = command.commands[name]
    known = {
        option
        for parameter in command.params
        for option in [*parameter.opts, *parameter.secondary_opts]
    }
    used = (
        {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        if "--" not in words
        else set()
    )
    return [
        f"there is no {option} in: sfumato {call}" for option in sorted(used - known - {"--help"})
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_exist(page):
    calls = [
        match[1].replace("…", "").strip()
        for match in SHOWN.finditer(page.read_text(encoding="utf-8"))
    ]
    assert not [fault for call in calls if not call.isupper() for fault in faults_of(call)]


def test_commands_that_do_not_exist_are_seen():
    text = (
        "Use `sfumato plan s.toml`:\n\n    sfumato paln s.toml\n    sfumato plan s.toml --eror 1\n"
    )
    calls = [match[1] for match in SHOWN.finditer(text)]
    assert [len(faults_of(call)) for call in calls] == [0, 1, 1]


# --- the reference --------------------------------------------------------------------------------------------------


def in_reference(text: str) -> list[object]:
    """What the reference documents: objects, looked up as Sphinx does."""
    return [
        looked_up(kind, path)
        for kind, path in re.findall(r"^\.\. auto(\w+):: (\S+)", text, re.MULTILINE)
    ]


def looked_up(kind: str, path: str) -> object:
    if kind == "module":
        return importlib.import_module(path)
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(home), name)


def missing_from_reference(text: str) -> list[str]:
    documented = in_reference(text)
    names = [name for name in sfumato.__all__ if name != "decoders"]
    missing = [
        name for name in names if not any(getattr(sfumato, name) is found for found in documented)
    ]
    decoders = [
        name
        for name in sfumato.decoders.__all__
        if inspect.isclass(getattr(sfumato.decoders, name))
    ]
    return missing + [
        name
        for name in decoders
        if not any(getattr(sfumato.decoders, name) is f for f in documented)
    ]


def test_every_public_name_is_in_the_reference():
    assert not missing_from_reference((DOCS / "reference.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["survey.Survey", "designer.design", "estimation.decoders.Auto"])
def test_a_name_that_is_missing_from_the_reference_is_seen(name):
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.endswith(f":: sfumato.{name}"))
    newly_missing = set(missing_from_reference(text.replace(f"{line}\n", "\n"))) - set(
        missing_from_reference(text)
    )
    assert newly_missing == {name.rpartition(".")[2]}


def without_docstring(owner: type) -> list[str]:
    """Public methods and properties that say nothing of themselves, nor does what they override."""
    members = inspect.getmembers(
        owner, lambda member: inspect.isroutine(member) or isinstance(member, property)
    )
    return [
        name for name, member in members if not name.startswith("_") and not inspect.getdoc(member)
    ]


PUBLIC_CLASSES = [name for name in sfumato.__all__ if inspect.isclass(getattr(sfumato, name))]


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_every_public_method_says_what_it_does(name):
    assert not without_docstring(getattr(sfumato, name))


def test_a_method_without_a_docstring_is_seen():
    class Silent:
        """Says something, but its members do not."""

        def method(self): ...

        @property
        def trait(self): ...

    assert without_docstring(Silent) == ["method", "trait"]


def packages_without_a_line(text: str) -> list[str]:
    """List the packages that the layers on the page of architecture do not name."""
    layers = [line[:28] for line in text.splitlines() if line.startswith("    ")]
    named = {name for line in layers for name in re.findall(r"[a-z]+", line)}
    packages = (ROOT / "src" / "sfumato").glob("*/__init__.py")
    return sorted({package.parent.name for package in packages} - named)


def test_the_architecture_page_names_every_package():
    assert not packages_without_a_line((DOCS / "architecture.md").read_text(encoding="utf-8"))


def test_a_package_missing_from_the_architecture_page_is_noticed():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert packages_without_a_line(text.replace("\n    tables ", "\n    chairs ")) == ["tables"]


# --- pictures -------------------------------------------------------------------------------------------------------

DRAWN = sorted(PICTURES.glob("*.svg"))


@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.stem)
def test_a_picture_is_as_its_script_draws_it(picture, monkeypatch):
    monkeypatch.syspath_prepend(PICTURES)
    drawn = runpy.run_path(str(picture.with_suffix(".py")))["picture"]().svg()
    assert drawn == picture.read_text(encoding="utf-8"), (
        f"run {name_of(picture.with_suffix('.py'))} again"
    )


# --- proofs: what test_proof_pages.py asks has teeth ----------------------------------------------------------------


@pytest.fixture
def proofs(tmp_path, monkeypatch):
    copy = tmp_path / "proofs"
    shutil.copytree(DOCS / "proofs", copy)
    monkeypatch.setattr(test_proof_pages, "PROOFS", copy)
    return copy


MECHANISM = next(cls for cls in every_mechanism_class() if cls.kind == "binary")


def test_a_mechanism_without_a_proof_is_seen(proofs):
    test_proof_pages.test_every_mechanism_has_a_proof_page_and_links_to_it(MECHANISM)
    (proofs / "binary.md").unlink()
    with pytest.raises(AssertionError, match=r"binary\.md"):
        test_proof_pages.test_every_mechanism_has_a_proof_page_and_links_to_it(MECHANISM)
    with pytest.raises(AssertionError):
        test_proof_pages.test_no_page_is_left_without_its_mechanism()


@pytest.mark.parametrize("heading", test_proof_pages.HEADINGS)
def test_a_proof_without_one_of_its_headings_is_seen(proofs, heading):
    page = proofs / "binary.md"
    page.write_text(
        page.read_text(encoding="utf-8").replace(f"## {heading}\n", "## Something else\n"),
        encoding="utf-8",
    )
    with pytest.raises(AssertionError):
        test_proof_pages.test_every_mechanism_has_a_proof_page_and_links_to_it(MECHANISM)


def test_a_mechanism_that_does_not_name_its_proof_is_seen(proofs):
    silent = type("Silent", (), {"kind": "binary", "__doc__": "No proof is named."})
    with pytest.raises(AssertionError):
        test_proof_pages.test_every_mechanism_has_a_proof_page_and_links_to_it(silent)


def test_a_proof_without_its_mechanism_is_seen(proofs):
    test_proof_pages.test_no_page_is_left_without_its_mechanism()
    (proofs / "orphan.md").write_text("# Orphan\n")
    with pytest.raises(AssertionError):
        test_proof_pages.test_no_page_is_left_without_its_mechanism()
