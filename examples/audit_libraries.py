"""Audit well-known libraries for local differential privacy: the ε they claim, and a lower bound.

    python examples/audit_libraries.py --python PYTHON [--python PYTHON …]
        [--samples 300000] [--only TEXT]

Each PYTHON is an interpreter that has some of the libraries (pure-ldp, multi-freq-ldpy, opendp).
Their randomisers run there as black boxes, through `audit_adapters.py`. Those that do not start are
skipped. A bound above ε proves a violation at the confidence of the audit; a bound below it proves
nothing.
"""

import argparse
import subprocess
from pathlib import Path

from audit_adapters import RANDOMIZERS

import sfumato as sf
from sfumato.auditing import command_randomizer

ADAPTERS = Path(__file__).with_name("audit_adapters.py")
K = 8  # symbols
EPSILON = 1


def starts(command: list[str]) -> bool:
    """Return whether the library is installed and returns a report."""
    try:
        run = subprocess.run(
            command, input="0\n", capture_output=True, text=True, check=False, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0 and bool(run.stdout.strip())


def main() -> None:
    """Audit every randomiser that some interpreter can start, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python",
        action="append",
        required=True,
        help="an interpreter that has some of the libraries",
    )
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--only", default="", help="audit only names that contain this text")
    options = parser.parse_args()
    print(f"{'randomiser':<34} {'claimed':>8} {'at least':>9} {'resolution':>11}  verdict")
    for python in options.python:
        for name in RANDOMIZERS:
            command = [python, str(ADAPTERS), name, str(K), str(EPSILON)]
            if options.only in name and starts(command):
                print(line(name, command, options.samples), flush=True)


def line(name: str, command: list[str], samples: int) -> str:
    """Return the result for one randomiser.

    It shows the largest lower bound over all pairs, and the largest ε of any pair that the audit
    could have missed.
    """
    with command_randomizer(command) as randomize:
        result = sf.audit(randomize, sf.Uniform(K, EPSILON), samples=samples)
    worst = max(result.pairs, key=lambda pair: pair.bound)
    if result.violates:
        return f"{name:<34} {EPSILON:>8} {worst.bound:>9.3f} {'':>11}  violates"
    resolution = max(pair.resolution for pair in result.pairs)
    return f"{name:<34} {EPSILON:>8} {worst.bound:>9.3f} {resolution:>11.3f}  no violation found"


if __name__ == "__main__":
    main()
