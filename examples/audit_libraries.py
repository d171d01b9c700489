"""What an audit finds in well-known libraries for local differential privacy: ε claimed, and ε found.

    python examples/audit_libraries.py --python PYTHON [--python PYTHON …] [--samples 300000] [--only TEXT]

Each PYTHON is an interpreter that has some of the libraries (pure-ldp, multi-freq-ldpy, opendp); their randomisers run
there, as black boxes, by way of `audit_adapters.py`. Those that cannot be started are left out. A bound above ε is a
proof at the confidence of an audit; a bound below it proves nothing.
"""

import argparse
import subprocess
from pathlib import Path

from audit_adapters import RANDOMIZERS

import sfumato as sf
from sfumato.auditing import command_randomizer

ADAPTERS = Path(__file__).with_name("audit_adapters.py")
K, EPSILON = 8, 1


def starts(command: list[str]) -> bool:
    """Whether the library is there, and gives one report."""
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
    parser.add_argument("--only", default="", help="audit names that hold this text alone")
    chosen = parser.parse_args()
    print(f"{'randomiser':<34} {'claimed':>8} {'at least':>9} {'resolution':>11}  verdict")
    for python in chosen.python:
        for name in RANDOMIZERS:
            command = [python, str(ADAPTERS), name, str(K), str(EPSILON)]
            if chosen.only in name and starts(command):
                print(line(name, command, chosen.samples), flush=True)


def line(name: str, command: list[str], samples: int) -> str:
    """One randomiser: the largest lower bound of any pair, and what would have been seen for the least visible one."""
    with command_randomizer(command) as randomize:
        found = sf.audit(randomize, sf.Uniform(K, EPSILON), samples=samples)
    worst = max(found.pairs, key=lambda pair: pair.bound)
    if found.violates:
        return f"{name:<34} {EPSILON:>8} {worst.bound:>9.3f} {'':>11}  violates"
    resolution = max(pair.resolution for pair in found.pairs)
    return f"{name:<34} {EPSILON:>8} {worst.bound:>9.3f} {resolution:>11.3f}  no violation found"


if __name__ == "__main__":
    main()
