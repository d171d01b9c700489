"""The public names are those of the stub, and load on first use."""

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sfumato
from sfumato import errors

NAMES = dir(sfumato)
MODULES = {
    "decoders": "sfumato.estimation.decoders",
    "errors": "sfumato.errors",
    "simulation": "sfumato.simulation",
}


def modules_loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after a statement."""
    program = (
        f"{statement}\nimport sys\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_stub_lists_each_public_name_once():
    stub = Path(sfumato.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    names = re.findall(r"^from \S+ import (\w+) as \1$", stub, re.MULTILINE)
    assert sorted(names) == NAMES
    assert len(names) == stub.count("import ")


def test_number_of_public_names():
    assert len(NAMES) == 52


@pytest.mark.parametrize("name", NAMES)
def test_public_names_resolve_and_have_docstrings(name):
    docstring = getattr(sfumato, name).__doc__
    assert docstring
    assert docstring.strip()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MODULES])
def test_public_names_match_their_objects(name):
    assert getattr(sfumato, name).__name__ == name
    assert getattr(sfumato, name).__module__.startswith("sfumato.")


@pytest.mark.parametrize(("name", "home"), MODULES.items())
def test_public_modules(name, home):
    assert getattr(sfumato, name).__name__ == home


def test_version_is_that_of_the_package():
    assert sfumato.__version__ == version("sfumato")


ANY_VALUE = {"value", "answers", "symbols", "budget", "words", "randomizer"}
"""Parameters that accept any value, or a column of any library."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MODULES])
def test_parameters_have_useful_types(name):
    signature = inspect.signature(getattr(sfumato, name))
    untyped = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation in (object, "object")
    ]
    assert set(untyped) <= ANY_VALUE


def test_decoder_names_match_their_classes():
    for name, decoder_class in sfumato.decoders.DECODERS.items():
        assert decoder_class.name == name


def test_all_lists_the_public_names():
    assert sfumato.__all__ == NAMES


def test_star_import_gives_the_public_names():
    scope = {}
    exec("from sfumato import *", scope)  # noqa: S102 - the statement under test
    assert sorted(name for name in scope if not name.startswith("__")) == NAMES


@pytest.mark.parametrize("name", ["nonsense", "Survey2", "_private", "uniform"])
def test_unknown_names_raise_attribute_errors(name):
    with pytest.raises(AttributeError, match=name):
        getattr(sfumato, name)
    assert not hasattr(sfumato, name)


def test_using_a_name_loads_neither_pyarrow_nor_scipy():
    loaded = modules_loaded_by("import sfumato; sfumato.Uniform")
    assert "numpy" in loaded
    assert not {"pyarrow", "scipy", "pydantic", "typer", "rich"} & loaded


def test_privatising_and_projecting_loads_neither_pyarrow_nor_scipy():
    loaded = modules_loaded_by(
        "import sfumato as sf; m = sf.mechanism_for(sf.Uniform(3, 1))\n"
        "t = m.tally(m.privatize([0, 1]))\n"
        "sf.estimate(m, t, decoder='projection')"
    )
    assert not {"pyarrow", "scipy"} & loaded


def test_decoders_load_neither_pyarrow_nor_scipy():
    assert not {"pyarrow", "scipy"} & modules_loaded_by("import sfumato; sfumato.decoders.Auto()")


def test_client_loads_neither_pyarrow_nor_scipy_nor_http():
    assert not {"pyarrow", "scipy", "urllib3"} & modules_loaded_by("import sfumato; sfumato.Client")


def test_importing_the_package_loads_no_numpy():
    assert "numpy" not in modules_loaded_by("import sfumato; dir(sfumato)")


def test_command_loads_no_numpy():
    loaded = modules_loaded_by("import sfumato.cli.main")
    assert "typer" in loaded
    assert not {"numpy", "pyarrow", "scipy", "cryptography"} & loaded


# --- errors ---------------------------------------------------------------------------------------


ERRORS = sorted(errors.__all__)


def test_all_lists_every_error():
    classes = inspect.getmembers(errors, inspect.isclass)
    own_classes = [name for name, kind in classes if kind.__module__ == errors.__name__]
    assert own_classes == ERRORS


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_documented_in_the_tree(name):
    error = getattr(errors, name)
    assert issubclass(error, errors.SfumatoError)
    assert error.__doc__
    assert name in errors.__doc__


@pytest.mark.parametrize("name", [name for name in ERRORS if f"{name} " in errors.__doc__])
def test_error_tree_marks_value_errors(name):
    line = next(line for line in errors.__doc__.splitlines() if f" {name} " in f"{line} ")
    assert ("(ValueError)" in line) == issubclass(getattr(errors, name), ValueError)


def test_missing_extra_is_an_import_error():
    assert issubclass(errors.MissingExtra, ImportError)


def test_privacy_violation_has_a_witness():
    violation = errors.PrivacyViolation("broken", x=1, x2=2, output=3)
    assert (str(violation), violation.x, violation.x2, violation.output) == ("broken", 1, 2, 3)
