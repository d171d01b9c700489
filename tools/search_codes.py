"""Search the cyclic codes that come with Sfumato: `python tools/search_codes.py`.

The search takes a quarter of an hour on two cores. It replaces src/sfumato/codes/searched.json, and
writes the same file every time. For every number of points up to 200 and a few usual ε it looks for
blocks whose risk is within 1 % of the bound of Ye and Barg, with as few blocks as that takes. Up to
64 points it keeps all of them; beyond, only where the ordinary search needs more than 8 blocks.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from sfumato.codes.search import STEPS, best_sizes, flatness, pack, search, ye_barg_risk

EPSILONS = (0.25, 0.5, 1, 2, 3, 4)
SMALL = 64  # points
LARGE = 200
GOOD = 1.01  # risk over the bound
PROMISING = 1.03
LONG = 4 * STEPS
HOME = Path(__file__).parent.parent / "src" / "sfumato" / "codes" / "searched.json"


@cache
def search_once(k, w, t, steps):
    """Return the flatness of the best blocks, and the blocks."""
    base = search(k, w, t, steps)
    return flatness(base, k), base


def ratio(k, w, t, epsilon, steps):
    """Return the risk over the bound."""
    flatness, _ = search_once(k, w, t, steps)
    bound = ye_barg_risk(k, best_sizes(k, epsilon)[0], epsilon)
    return flatness * ye_barg_risk(k, w, epsilon) / bound


def counts(k, w):
    """Return the t to try: the most that three bits allow.

    For few points, also 4, 8 and where a difference family could exist.
    """
    most = (8 << k.bit_length()) // k
    if k > SMALL:
        return {most}
    families = {t for t in range(1, most + 1) if t * w * (w - 1) % (k - 1) == 0}
    return {4, 8, most} | families


def choose(k, epsilon):
    """Return the (w, t) to keep for k and ε, or None."""
    sizes = best_sizes(k, epsilon)
    if sizes[0] == 1:
        return None  # randomized response is optimal
    if k > SMALL and min(ratio(k, w, 8, epsilon, STEPS) for w in sizes) <= GOOD:
        return None
    tries = sorted((t, w) for w in sizes for t in counts(k, w))
    promising = [(w, t) for t, w in tries if t >= 8 or ratio(k, w, t, epsilon, STEPS) <= PROMISING]
    best = None
    for w, t in promising:
        if best is None or ratio(k, w, t, epsilon, STEPS) - 0.005 < ratio(k, *best, epsilon, LONG):
            best = min(
                filter(None, (best, (w, t))), key=lambda code: ratio(k, *code, epsilon, LONG)
            )
        if ratio(k, *best, epsilon, LONG) <= GOOD:
            break
    return best


def entries(k):
    """Return what to keep for k points."""
    sizes = {choose(k, epsilon) for epsilon in EPSILONS} - {None}
    blocks = {}
    for w, t in sorted(sizes):
        _, base = search_once(k, w, t, LONG)
        blocks[f"{k} {w} {t}"] = pack(base)
    return blocks


def main():
    stored = {}
    with ProcessPoolExecutor() as pool:
        for blocks in pool.map(entries, range(2, LARGE + 1)):
            stored |= blocks
            print(f"{len(stored)} codes", end="\r", flush=True)
    HOME.write_text(json.dumps(stored, indent=0) + "\n", encoding="utf-8")
    print(f"{len(stored)} codes in {HOME}")


if __name__ == "__main__":
    main()
