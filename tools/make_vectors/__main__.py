"""Write the test vectors to a folder: ``python -m tools.make_vectors test-vectors``."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sfumato.conformance import Case
from sfumato.foundation.files import write_atomically
from tools.make_vectors.bad_surveys import bad_surveys, untrusted_surveys
from tools.make_vectors.budget import budgets
from tools.make_vectors.canonical import canonical_forms
from tools.make_vectors.device import batches, derivations
from tools.make_vectors.domains import values
from tools.make_vectors.format_2 import bad_format_2, format_2
from tools.make_vectors.mechanisms import enumerations, samples

VECTORS: Mapping[str, Callable[[], Iterable[Case]]] = {
    "mechanisms.json": enumerations,
    "samples.json": samples,
    "canonical.json": canonical_forms,
    "domains.json": values,
    "memory.json": derivations,
    "batches.json": batches,
    "bad_surveys.json": bad_surveys,
    "budget.json": budgets,
    "strangers.json": untrusted_surveys,
    "format_2.json": format_2,
    "bad_format_2.json": bad_format_2,
}
"""The function that generates the cases for each file."""


def file_bytes(file: str) -> bytes:
    """Return the content of a file: a JSON list with one case per line."""
    lines = ",\n".join(map(_format_case, VECTORS[file]()))
    return f"[\n{lines}\n]\n".encode("ascii")


def main(folder: Path) -> None:
    """Write every file to ``folder``, creating it if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in VECTORS:
        path = folder / file
        write_atomically(path, file_bytes(file))
        print(path)


def _format_case(case: Case) -> str:
    fields = {"about": case.about, "request": case.request, "answer": case.answer}
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.make_vectors FOLDER")
    main(Path(sys.argv[1]))
