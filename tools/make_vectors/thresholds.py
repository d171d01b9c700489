"""The words at which an answer changes: where a client that is off by one gives itself away."""

import base64
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

__all__ = ["edges_of"]


def edges_of(mechanism: Mapping[str, Any], word: int) -> list[int]:
    """The thresholds in the record of a mechanism that its first (0) or second (1) word is compared with."""
    kind = mechanism["kind"]
    if kind == "union":
        return [edge for part in mechanism["parts"] for edge in edges_of(part, word)]
    if kind == "product":
        return _of_code(mechanism["codes"][word])
    if word == 1:
        return []
    if "rows" in mechanism:
        return [edge for row in mechanism["rows"] for edge in accumulate(map(int, row))]
    if kind == "groups":
        return _of_groups(mechanism)
    return [edge for code in mechanism["codes"] for edge in _of_code(code)]


def _of_code(code: Mapping[str, Any]) -> list[int]:
    raised = _raise_count(code)
    high = int(code["high"])
    if code["kind"] == "hadamard":
        # A coin from the high bits; the low bits are an output as they are.
        return [raised * high]
    return _of_levels(raised, code["outputs"], high, int(code["low"]))


def _of_levels(raised: int, outputs: int, high: int, low: int) -> list[int]:
    favoured = [i * high for i in range(1, raised + 1)]
    return [*favoured, *(raised * high + i * low for i in range(1, outputs - raised + 1))]


def _raise_count(code: Mapping[str, Any]) -> int:
    if code["kind"] == "hadamard":
        return int(code["outputs"]) // 2
    return len(base64.b64decode(code["base"])) // 4 if code["kind"] == "cyclic" else 1


def _of_groups(mechanism: Mapping[str, Any]) -> list[int]:
    """The cover of group after group, then words in clear; members read those of their own group and the clear ones."""
    kinds = [
        (mechanism["codes"][number], mechanism["levels"][number])
        for number in mechanism["code_of_group"]
    ]
    lengths = [code["outputs"] * int(level["cover"]) for code, level in kinds]
    starts = [0, *accumulate(lengths)]
    covered = starts[-1]
    thresholds = [covered, covered + int(mechanism["clear"])]
    for (code, level), start, length in zip(kinds, starts, lengths, strict=False):
        thresholds += [start + i * int(level["cover"]) for i in range(code["outputs"] + 1)]
        own = _of_levels(_raise_count(code), code["outputs"], int(level["high"]), int(level["low"]))
        thresholds += [start + edge if edge < length else covered + edge - length for edge in own]
    return thresholds
