"""The public surface: these names and no others, and nothing heavy is loaded for them."""

import subprocess
import sys

import pytest

import sfumato
from sfumato import errors

NAMES = [
    "Audit",
    "BestCode",
    "BinaryResponse",
    "BlockResponse",
    "Blocks",
    "Certificate",
    "Client",
    "ComposedResponse",
    "Context",
    "ContextSum",
    "CyclicDesign",
    "Design",
    "Domain",
    "ErrorRegion",
    "Estimate",
    "GridDomain",
    "GroupResponse",
    "H3Domain",
    "HadamardCode",
    "HighLow",
    "HighLowResponse",
    "IntegerDomain",
    "Mechanism",
    "Metric",
    "PlainResponse",
    "Plan",
    "PrivacyLoss",
    "PrivacyMatrix",
    "ProcessedResponse",
    "ProductResponse",
    "RandomizedCode",
    "Survey",
    "TableResponse",
    "Tally",
    "Tiers",
    "Uniform",
    "UnionResponse",
    "audit",
    "certify",
    "check_mechanism",
    "compose",
    "decoders",
    "design",
    "error_region",
    "errors",
    "estimate",
    "mechanism_for",
    "plan",
    "posterior_odds",
    "privacy_loss",
]


MODULES = {"decoders": "sfumato.estimation.decoders", "errors": "sfumato.errors"}


def _loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after a statement."""
    program = f"{statement}\nimport sys; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_the_public_names_are_pinned():
    assert sorted(sfumato.__all__) == NAMES


def test_the_public_names_are_listed_in_order_and_once():
    assert sfumato.__all__ == sorted(set(sfumato.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_resolves_and_says_what_it_is(name):
    found = getattr(sfumato, name)
    assert found.__doc__
    assert found.__doc__.strip()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MODULES])
def test_every_public_name_is_the_thing_of_that_name(name):
    assert getattr(sfumato, name).__name__ == name
    assert getattr(sfumato, name).__module__.startswith("sfumato.")


@pytest.mark.parametrize(("name", "home"), MODULES.items())
def test_two_public_names_are_modules(name, home):
    assert getattr(sfumato, name).__name__ == home


def test_decoders_are_taken_by_name_or_as_objects():
    assert (
        sfumato.decoders.decoder_named("empirical-bayes").name
        == sfumato.decoders.EmpiricalBayes(bags=2).name
    )


def test_dir_lists_the_public_names():
    assert dir(sfumato) == NAMES


def test_a_star_import_gives_the_public_names():
    scope = {}
    exec("from sfumato import *", scope)  # noqa: S102 - the statement under test
    assert sorted(name for name in scope if not name.startswith("__")) == NAMES


@pytest.mark.parametrize("name", ["nonsense", "Survey2", "_private", "uniform"])
def test_an_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=name):
        getattr(sfumato, name)
    assert not hasattr(sfumato, name)


def test_using_a_name_loads_neither_pyarrow_nor_scipy():
    loaded = _loaded_by("import sfumato; sfumato.Uniform")
    assert "numpy" in loaded
    assert not {"pyarrow", "scipy", "pydantic", "typer", "rich"} & loaded


def test_privatising_and_projecting_loads_neither_pyarrow_nor_scipy():
    loaded = _loaded_by(
        "import sfumato as sf; m = sf.mechanism_for(sf.Uniform(3, 1)); t = m.tally(m.privatize([0, 1]))\n"
        "sf.estimate(m, t, decoder='projection')"
    )
    assert not {"pyarrow", "scipy"} & loaded


def test_the_names_of_decoders_load_neither_pyarrow_nor_scipy():
    assert not {"pyarrow", "scipy"} & _loaded_by("import sfumato; sfumato.decoders.Auto()")


def test_a_client_loads_neither_pyarrow_nor_scipy_nor_http():
    assert not {"pyarrow", "scipy", "urllib3"} & _loaded_by("import sfumato; sfumato.Client")


def test_importing_the_package_loads_no_numpy():
    assert "numpy" not in _loaded_by("import sfumato; dir(sfumato)")


def test_the_command_loads_no_numpy():
    loaded = _loaded_by("import sfumato.cli.main")
    assert "typer" in loaded
    assert not {"numpy", "pyarrow", "scipy", "cryptography"} & loaded


# --- errors ---------------------------------------------------------------------------------------------------------


ERRORS = [
    "BudgetExceeded",
    "ContextMismatch",
    "EngineStopped",
    "EntropyUnavailable",
    "ExamFailed",
    "InvalidBatch",
    "InvalidContext",
    "InvalidSurvey",
    "InvalidSymbols",
    "InvalidTable",
    "InvalidTally",
    "MissingExtra",
    "NoClosedForm",
    "NotDelivered",
    "NotEnoughReports",
    "NothingToLearn",
    "PrivacyViolation",
    "ReportRejected",
    "SfumatoError",
    "StoreFull",
    "StoreUnavailable",
    "UnknownValue",
    "WrongSurvey",
]


def test_the_errors_are_pinned():
    assert sorted(errors.__all__) == ERRORS


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_ours_and_stands_in_the_tree(name):
    error = getattr(errors, name)
    assert issubclass(error, errors.SfumatoError)
    assert error.__doc__
    assert name in errors.__doc__


@pytest.mark.parametrize("name", [name for name in ERRORS if f"{name} " in errors.__doc__])
def test_the_tree_says_which_errors_are_value_errors(name):
    line = next(line for line in errors.__doc__.splitlines() if f" {name} " in f"{line} ")
    assert ("(ValueError)" in line) == issubclass(getattr(errors, name), ValueError)


def test_a_missing_extra_is_an_import_error():
    assert issubclass(errors.MissingExtra, ImportError)


def test_a_privacy_violation_carries_its_proof():
    violation = errors.PrivacyViolation("broken", x=1, x2=2, output=3)
    assert (str(violation), violation.x, violation.x2, violation.output) == ("broken", 1, 2, 3)
