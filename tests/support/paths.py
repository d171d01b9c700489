"""Where things are in the repository."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "tools" / "check_certificate.py"
VECTORS = ROOT / "test-vectors"


def modules_in(folder) -> AbstractContextManager[object]:
    """Allow imports from a folder of programs, such as benchmarks, inside a `with` block."""
    return mock.patch.object(sys, "path", [str(folder), *sys.path])
