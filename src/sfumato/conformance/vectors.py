"""The test vectors, file by file: made from code, always the same to the byte."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from sfumato.conformance.bad_survey_cases import bad_surveys
from sfumato.conformance.batch_cases import bodies
from sfumato.conformance.budget_cases import budgets
from sfumato.conformance.canonical_cases import canonical_forms, fingerprints
from sfumato.conformance.case import Case
from sfumato.conformance.domain_cases import values
from sfumato.conformance.mechanism_cases import enumerations, samples
from sfumato.conformance.memory_cases import derivations
from sfumato.conformance.stranger_cases import strangers
from sfumato.foundation.files import write_atomically

__all__ = ["FILES", "cases_of", "file_bytes", "write_vectors"]

FILES: Mapping[str, Callable[[], Iterable[Case]]] = {
    "mechanisms.json": enumerations,
    "samples.json": samples,
    "canonical.json": lambda: chain(canonical_forms(), fingerprints()),
    "domains.json": values,
    "memory.json": derivations,
    "batches.json": bodies,
    "bad_surveys.json": bad_surveys,
    "budget.json": budgets,
    "strangers.json": strangers,
}
"""What each file holds."""


@cache
def cases_of(file: str) -> tuple[Case, ...]:
    """The cases of a file, in order: later ones speak of surveys that earlier ones load."""
    return tuple(FILES[file]())


def file_bytes(file: str) -> bytes:
    """A file as it is published: a list of cases, one in a line."""
    lines = ",\n".join(case.line() for case in cases_of(file))
    return f"[\n{lines}\n]\n".encode("ascii")


def write_vectors(folder: Path) -> list[Path]:
    """Write every file into a folder."""
    paths = [folder / file for file in FILES]
    for path in paths:
        write_atomically(path, file_bytes(path.name))
    return paths
