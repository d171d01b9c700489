"""The pages are reachable, their examples run, and the reference has every public name."""

import doctest
import importlib
import inspect
import re
import runpy
import shlex
import shutil
from functools import cache
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
from support.run_here import run_command, run_program

DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# --- how to install -------------------------------------------------------------------------------


def find_bare_installs(text: str) -> list[str]:
    """Return the commands that install Sfumato by its name, from an index that may not have it."""
    commands = re.findall(r"pip install [^`\n]+", text)
    return [command for command in commands if "sfumato" in command and " @ " not in command]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_install_commands_name_the_folder_or_the_wheel(page):
    assert not find_bare_installs(page.read_text("utf-8"))


def test_install_commands_by_name_are_detected():
    assert find_bare_installs("pip install 'sfumato[server]'\npip install sfumato pandas")
    assert not find_bare_installs("pip install '.[server]' or `pip install . pandas`")
    assert not find_bare_installs("pip install 'sfumato[server] @ file:///path/to/sfumato.whl'")


# --- blocks of a page -----------------------------------------------------------------------------


class Block(NamedTuple):
    """A fenced block, ``python`` or ``{code-block} python``, with its options."""

    language: str
    options: dict[str, str]
    lines: list[str]

    @property
    def has_examples(self) -> bool:
        return any(line.startswith(">>>") for line in self.lines)


OPTION = re.compile(r":([\w-]+): *(.*)")


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    blocks = []
    lines = iter(text.splitlines())
    for line in lines:
        if opening := re.fullmatch(r"(`{3,})(?:\{code-block\} *)?(\S*)", line.strip()):
            content = list(takewhile(lambda inner: inner.strip() != opening[1], lines))
            head = list(takewhile(bool, map(OPTION.fullmatch, content)))
            options = {option[1]: option[2] for option in head}
            blocks.append(Block(opening[2], options, content[len(head) :]))
    return blocks


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


def test_blocks_have_options():
    program, console = blocks_of(PAGE)
    assert program == Block("python", {"caption": "a.py"}, ["print(1)"])
    assert console == Block("console", {}, ["$ python a.py", "1"])


def test_options_end_at_the_first_other_line():
    (block,) = blocks_of("```{code-block} text\n:class: varies\nseen\n:caption: no option\n```")
    assert block == Block("text", {"class": "varies"}, ["seen", ":caption: no option"])


# --- every page is reachable ----------------------------------------------------------------------


def pages_without_toctree(docs: Path) -> set[str]:
    """Return the pages that cannot be reached through toctrees from the index."""
    pages = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("_build/")}
    reached = set()
    waiting = ["index"]
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


def test_pages_outside_all_toctrees_are_detected(tmp_path):
    shutil.copytree(
        DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "*.png", "*.py")
    )
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n")
    assert pages_without_toctree(tmp_path / "docs") - pages_without_toctree(DOCS) == {"lost"}


# --- examples run ---------------------------------------------------------------------------------


def python_that_never_runs(text: str) -> list[Block]:
    """Return Python blocks that are neither examples with >>> nor files that the page runs."""
    blocks = blocks_of(text)
    console = "\n".join("\n".join(block.lines) for block in blocks if block.language == "console")
    python = [block for block in blocks if block.language in {"python", "py", "pycon"}]
    return [
        block
        for block in python
        if not block.has_examples and f"$ python {block.options.get('caption', '?')}" not in console
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_python_on_a_page_runs(page):
    assert not python_that_never_runs(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "block", ["```python\nprint(1)\n```", "```{code-block} python\n:caption: b.py\nprint(1)\n```"]
)
def test_python_that_never_runs_is_detected(block):
    assert len(python_that_never_runs(PAGE + block)) == 1


def test_examples_on_pages_are_collected(pytestconfig):
    assert {"README.md", "docs"} <= set(pytestconfig.getini("testpaths"))
    options = pytestconfig.getini("addopts")
    assert "--doctest-glob=*.md" in options
    skipped = [
        ROOT / option.removeprefix("--ignore=")
        for option in options
        if option.startswith("--ignore=")
    ]
    assert not [
        name_of(page) for page in PAGES if any(page.is_relative_to(folder) for folder in skipped)
    ]


class Run(NamedTuple):
    """A command in a console block, and the output that the page shows."""

    command: str
    output: str
    numbers_vary: bool


def runs_of(block: Block) -> list[Run]:
    parts = re.split(r"^\$ (.+)\n?", "\n".join(block.lines), flags=re.MULTILINE)
    commands = parts[1::2]
    outputs = parts[2::2]
    numbers_vary = "varies" in block.options.get("class", "")
    return [
        Run(command, output, numbers_vary)
        for command, output in zip(commands, outputs, strict=True)
    ]


def run_page(page: Path, folder: Path) -> None:
    """Write the files of a page and run its commands, in order."""
    (folder / "tools").symlink_to(ROOT / "tools")
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if "caption" in block.options:
            content = "\n".join(block.lines) + "\n"
            (folder / block.options["caption"]).write_text(content, encoding="utf-8")
        elif block.language == "console":
            for run in runs_of(block):
                check_output(run, output_of(run.command, folder))


def output_of(command: str, folder: Path) -> str:
    """Run a command in this process: one that starts with `python` or `sfumato`."""
    program, *words = shlex.split(command)
    run = {"python": run_program, "sfumato": run_command}[program]
    result = run(*words, folder=folder, environment={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.code == 0, f"$ {command}\n{result.both}"
    return result.both


NUMBER = re.compile(r"(?:(?<!\w)-)?\d[\d,.]*")


def check_output(run: Run, output: str) -> None:
    """Compare outputs: `...` matches anything, and a number any other if numbers vary.

    A command that the page shows without output must print nothing.
    """
    expected = run.output
    actual = output
    if run.numbers_vary:
        expected = NUMBER.sub("#", expected)
        actual = NUMBER.sub("#", actual)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    checker = doctest.OutputChecker()
    matches = checker.check_output(f"{expected.strip()}\n", f"{actual.strip()}\n", flags)
    assert matches, f"$ {run.command}\nexpected:\n{run.output}\nprinted:\n{output}"


PAGES_WITH_COMMANDS = [
    page
    for page in PAGES
    if any(block.language == "console" for block in blocks_of(page.read_text("utf-8")))
]


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=name_of)
def test_commands_on_a_page_print_what_it_shows(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("\n1\n```", "\n2\n```"),
        ("print(1)", "print(1); raise SystemExit(1)"),
        ("$ python a.py", "$ python b.py"),
    ],
)
def test_wrong_pages_are_detected(tmp_path, true, false):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(true, false))
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


def test_only_numbers_may_vary():
    run = Run("c", "12 reports, 0.5 (0.25 to 1,000.5)", numbers_vary=True)
    check_output(run, "7 reports, 0.1 (0.2 to 9)")
    with pytest.raises(AssertionError):
        check_output(run, "7 tallies, 0.1 (0.2 to 9)")
    with pytest.raises(AssertionError):
        check_output(run._replace(numbers_vary=False), "7 reports, 0.1 (0.2 to 9)")


@pytest.mark.parametrize("numbers_vary", [False, True])
def test_commands_shown_without_output_print_nothing(numbers_vary):
    silent = Run("c", "", numbers_vary)
    check_output(silent, "")
    with pytest.raises(AssertionError):
        check_output(silent, "7 reports")
    check_output(silent._replace(output="..."), "7 reports")


# --- commands that do not run ---------------------------------------------------------------------

COMMAND = re.compile(
    r"(?:^ {4}|^|`|\$ |&& |\| )sfumato +((?:[a-z-]+)(?: [^`|\n#&)]*)?)", re.MULTILINE
)


sfumato_command = cache(typer.main.get_command)


def faults_of(call: str) -> list[str]:
    """Return the sub-commands and options of a call that do not exist."""
    command = sfumato_command(app)
    words = shlex.split(call, comments=True)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name == "--help":
            return []
        if name not in command.commands:
            return [f"there is no {name!r} in: sfumato {call}"]
        command = command.commands[name]
    valid = {"--help"}
    for parameter in command.params:
        valid.update(parameter.opts, parameter.secondary_opts)
    used = set()
    if "--" not in words:
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    return [f"there is no {option} in: sfumato {call}" for option in sorted(used - valid)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_exist(page):
    calls = [
        match[1].replace("…", "").strip()
        for match in COMMAND.finditer(page.read_text(encoding="utf-8"))
    ]
    assert not [fault for call in calls if not call.isupper() for fault in faults_of(call)]


def test_missing_commands_and_options_are_detected():
    text = (
        "Use `sfumato plan s.toml`:\n\n    sfumato paln s.toml\n    sfumato plan s.toml --eror 1\n"
    )
    calls = [match[1] for match in COMMAND.finditer(text)]
    assert [len(faults_of(call)) for call in calls] == [0, 1, 1]


# --- the reference --------------------------------------------------------------------------------


def documented_objects(text: str) -> list[object]:
    """Return the objects that the reference documents, found as Sphinx does."""
    return [
        find_object(kind, path)
        for kind, path in re.findall(r"^\.\. auto(\w+):: (\S+)", text, re.MULTILINE)
    ]


def find_object(kind: str, path: str) -> object:
    if kind == "module":
        return importlib.import_module(path)
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(home), name)


def missing_from_reference(text: str) -> list[str]:
    documented = {id(item) for item in documented_objects(text)}
    modules = ("decoders", "simulation")  # described name by name
    public = {name: getattr(sfumato, name) for name in sfumato.__all__ if name not in modules}
    for name in sfumato.decoders.__all__:
        decoder = getattr(sfumato.decoders, name)
        if inspect.isclass(decoder):
            public[name] = decoder
    public["reports"] = sfumato.simulation.reports
    return [name for name, item in public.items() if id(item) not in documented]


def test_every_public_name_is_in_the_reference():
    assert not missing_from_reference((DOCS / "reference.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["survey.Survey", "designer.design", "estimation.decoders.Auto"])
def test_names_missing_from_the_reference_are_detected(name):
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.endswith(f":: sfumato.{name}"))
    missing_before = set(missing_from_reference(text))
    missing_after = set(missing_from_reference(text.replace(f"{line}\n", "\n")))
    assert missing_after - missing_before == {name.rpartition(".")[2]}


def without_docstring(owner: type) -> list[str]:
    """Return the public methods and properties without a docstring, inherited ones included."""
    members = inspect.getmembers(
        owner, lambda member: inspect.isroutine(member) or isinstance(member, property)
    )
    return [
        name for name, member in members if not name.startswith("_") and not inspect.getdoc(member)
    ]


PUBLIC_CLASSES = [name for name in sfumato.__all__ if inspect.isclass(getattr(sfumato, name))]


@pytest.mark.parametrize("name", PUBLIC_CLASSES)
def test_every_public_method_has_a_docstring(name):
    assert not without_docstring(getattr(sfumato, name))


def test_methods_without_docstrings_are_detected():
    class Silent:
        """A class with a docstring; its members have none."""

        def method(self): ...

        @property
        def trait(self): ...

    assert without_docstring(Silent) == ["method", "trait"]


def packages_missing_from(text: str) -> list[str]:
    """Return the packages that the layers on the architecture page omit."""
    layers = [line[:28] for line in text.splitlines() if line.startswith("    ")]
    named = {name for line in layers for name in re.findall(r"[a-z]+", line)}
    packages = (ROOT / "src" / "sfumato").glob("*/__init__.py")
    return sorted({package.parent.name for package in packages} - named)


def test_architecture_page_names_every_package():
    assert not packages_missing_from((DOCS / "architecture.md").read_text(encoding="utf-8"))


def test_packages_missing_from_the_architecture_page_are_detected():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert packages_missing_from(text.replace("\n    tables ", "\n    chairs ")) == ["tables"]


# --- pictures -------------------------------------------------------------------------------------

SVG_FILES = sorted(PICTURES.glob("*.svg"))


@pytest.mark.parametrize("picture", SVG_FILES, ids=lambda picture: picture.stem)
def test_picture_matches_its_script(picture, monkeypatch):
    monkeypatch.syspath_prepend(PICTURES)
    svg = runpy.run_path(str(picture.with_suffix(".py")))["picture"]().svg()
    assert svg == picture.read_text(encoding="utf-8"), (
        f"run {name_of(picture.with_suffix('.py'))} again"
    )


# --- test_proof_pages.py detects faults -----------------------------------------------------------


@pytest.fixture
def proofs(tmp_path, monkeypatch):
    copy = tmp_path / "proofs"
    shutil.copytree(DOCS / "proofs", copy)
    monkeypatch.setattr(test_proof_pages, "PROOFS", copy)
    return copy


MECHANISM = next(cls for cls in every_mechanism_class() if cls.kind == "binary")


def test_mechanisms_without_a_proof_are_detected(proofs):
    test_proof_pages.test_mechanism_links_to_its_proof_page(MECHANISM)
    (proofs / "binary.md").unlink()
    with pytest.raises(AssertionError, match=r"binary\.md"):
        test_proof_pages.test_mechanism_links_to_its_proof_page(MECHANISM)
    with pytest.raises(AssertionError):
        test_proof_pages.test_every_page_has_a_mechanism()


@pytest.mark.parametrize("heading", test_proof_pages.HEADINGS)
def test_missing_headings_are_detected(proofs, heading):
    page = proofs / "binary.md"
    page.write_text(
        page.read_text(encoding="utf-8").replace(f"## {heading}\n", "## Something else\n"),
        encoding="utf-8",
    )
    with pytest.raises(AssertionError):
        test_proof_pages.test_mechanism_links_to_its_proof_page(MECHANISM)


def test_mechanisms_that_do_not_name_their_proof_are_detected(proofs):
    silent = type("Silent", (), {"kind": "binary", "__doc__": "No proof is named."})
    with pytest.raises(AssertionError):
        test_proof_pages.test_mechanism_links_to_its_proof_page(silent)


def test_proofs_without_a_mechanism_are_detected(proofs):
    test_proof_pages.test_every_page_has_a_mechanism()
    (proofs / "orphan.md").write_text("# Orphan\n")
    with pytest.raises(AssertionError):
        test_proof_pages.test_every_page_has_a_mechanism()
