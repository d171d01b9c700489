"""How often an audit finds faults that single reports do not show.

    python -m benchmarks.audit_sequences

Each client has exactly the channel of randomised response in every report, with ε = 1. In one, the
second report of two uses the uniform number of the first, turned around. Another one's first report
after a start is the symbol. The third one has no fault. All audits have the confidence 0.999.
"""

import math

import numpy as np

import sfumato as sf
from sfumato.auditing.black_box import BatchBox
from sfumato.foundation.arrays import Symbols
from sfumato.simulation import SeededWords

RUNS = 50


class CoupledClient:
    """Randomised response, in which the second report of two may reuse randomness."""

    def __init__(self, k: int, seed: int, *, is_coupled: bool) -> None:
        Q = np.ones((k, k)) + (math.e - 1) * np.eye(k)
        self._channel = (Q / Q[0].sum()).cumsum(axis=1)
        self._rng = np.random.default_rng(seed)
        self._is_coupled = is_coupled

    def answer(self, symbols: Symbols) -> Symbols:
        """Return a report of each symbol, in order."""
        uniforms = self._rng.random(symbols.size)
        if self._is_coupled:
            seconds = uniforms[1::2]
            seconds[:] = 1 - uniforms[::2][: seconds.size]
        return (uniforms[:, None] > self._channel[symbols]).sum(axis=1)


def find_coupled(k: int, samples: int, seed: int, *, is_coupled: bool) -> bool:
    """Return whether an audit finds the client's successive reports at fault."""
    box = BatchBox(CoupledClient(k, seed, is_coupled=is_coupled).answer)
    audit = sf.audit(box, sf.Uniform(k, 1), samples=samples, source=SeededWords(seed))
    return bool(audit.sequence_violations)


def find_leak(k: int, restarts: int, seed: int, *, leaks: bool) -> bool:
    """Return whether an audit finds the client's first reports at fault."""
    client = CoupledClient(k, seed, is_coupled=False)

    def restart(symbol: int) -> int:
        return symbol if leaks else int(client.answer(np.array([symbol]))[0])

    box = BatchBox(client.answer, restart)
    audit = sf.audit(
        box, sf.Uniform(k, 1), samples=100 * k, restarts=restarts, source=SeededWords(seed)
    )
    return bool(audit.sequence_violations)


def main() -> None:
    """Print how many of the audits find each fault, and how many accuse the client without one."""
    for k in (2, 4, 8, 16):
        for samples in (5000, 10_000, 20_000, 100_000):
            if samples < 100 * k:
                continue
            detected = sum(find_coupled(k, samples, run, is_coupled=True) for run in range(RUNS))
            wrong = sum(find_coupled(k, samples, run, is_coupled=False) for run in range(RUNS))
            print(
                f"coupled: {k} symbols, {samples:,} samples: {detected} of {RUNS}; honest: {wrong}"
            )
        for restarts in (25, 50, 75, 100):
            detected = sum(find_leak(k, restarts, run, leaks=True) for run in range(RUNS))
            wrong = sum(find_leak(k, restarts, run, leaks=False) for run in range(RUNS))
            print(f"leaky: {k} symbols, {restarts} restarts: {detected} of {RUNS}; honest: {wrong}")


if __name__ == "__main__":
    main()
