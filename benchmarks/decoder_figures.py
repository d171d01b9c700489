"""Errors on record, so that a decoder can be compared with others without running them.

``decoder_figures.json`` has the total variation of each case, rival and tally. "previous default"
is the default decoder before it learned where a symbol lies. The prototypes are not in the project.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from sfumato.tally import Tally

__all__ = ["DecoderFigures", "case_key", "tally_checksum"]

PATH = Path(__file__).with_suffix(".json")
_CHECKSUMS = "tallies"


class DecoderFigures:
    """The errors on record: for each case, a list per rival, in the order of the tallies."""

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        self._cases: dict[str, dict[str, list[float]]] = {}
        if path.exists():
            self._cases = json.loads(path.read_text(encoding="utf-8"))

    def errors(self, case: str, rival: str, checksums: Sequence[int]) -> list[float]:
        """Return a rival's errors on these tallies, or an empty list if they are not on record."""
        record = self._cases.get(case, {})
        count = len(checksums)
        if record.get(_CHECKSUMS, [])[:count] != list(checksums):
            return []
        errors = record.get(rival, [])
        return errors[:count] if len(errors) >= count else []

    def record(
        self, case: str, rival: str, checksums: Sequence[int], errors: Sequence[float]
    ) -> None:
        """Put a rival's errors on record. Other tallies replace all figures of the case."""
        record = self._cases.setdefault(case, {})
        on_record = record.get(_CHECKSUMS, [])
        shared = min(len(on_record), len(checksums))
        if on_record[:shared] != list(checksums)[:shared]:
            record.clear()
            on_record = []
        record[_CHECKSUMS] = list(checksums if len(checksums) > shared else on_record)
        record[rival] = [float(f"{error:.5g}") for error in errors]

    def save(self) -> None:
        lines = []
        for case in sorted(self._cases):
            lines.append(f"{json.dumps(case)}: {json.dumps(self._cases[case], sort_keys=True)}")
        self._path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def case_key(group: str, name: str) -> str:
    return f"{group}/{name}"


def tally_checksum(tally: Tally) -> int:
    return crc32(tally.counts.astype("<i8").tobytes())
