"""What a client uploaded, read without the code under test."""

import json
from typing import NamedTuple

import numpy as np


class Upload(NamedTuple):
    id: bytes
    survey: str
    period: str
    reports: np.ndarray


def read_upload(body):
    """Read a batch in JSON, in either format."""
    fields = json.loads(body)
    return Upload(
        bytes.fromhex(fields["batch"]),
        fields["survey"],
        fields.get("period", ""),
        np.array(fields["reports"], dtype=np.uint32),
    )
