"""The test vectors, as the package ships them. ``tools/make_vectors`` writes the files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from sfumato.errors import MissingExtra

__all__ = ["FILES", "Case", "read_cases"]

FILES = (
    "mechanisms.json",
    "samples.json",
    "canonical.json",
    "domains.json",
    "memory.json",
    "batches.json",
    "bad_surveys.json",
    "budget.json",
    "strangers.json",
)


@dataclass(frozen=True)
class Case:
    """A request of the line protocol and its only right answer.

    ``about`` tells people what the case tries.
    """

    about: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@cache
def read_cases(file: str) -> tuple[Case, ...]:
    """Return the cases of a file in order: later cases use surveys that earlier ones load."""
    text = _folder().joinpath(file).read_text(encoding="ascii")
    return tuple(Case(**fields) for fields in json.loads(text))


def _folder() -> Traversable:
    """Find the vectors inside an installed package, or in the repository."""
    installed = files("sfumato.conformance").joinpath("test-vectors")
    if installed.is_dir():
        return installed
    in_repository = Path(__file__).parents[3] / "test-vectors"
    if in_repository.is_dir():
        return in_repository
    raise MissingExtra("the test vectors are missing from this installation. Reinstall Sfumato.")
