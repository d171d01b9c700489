"""Search the cyclic codes that come with Sfumato: `python tools/search_codes.py`, a quarter of an hour on two cores.

Writes src/sfumato/codes/searched.json anew; the same file every time. For every number of points up to 200 and a few
usual ε it looks for blocks whose risk is within 1 % of the bound of Ye and Barg, with as few blocks as that takes. Up
to 64 points all of them are kept; beyond, only where the ordinary search does not get there with 8 blocks.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from sfumato.codes.search import STEPS, best_sizes, flatness, pack, search, ye_barg_risk

EPSILONS = (0.25, 0.5, 1, 2, 3, 4)
SMALL, LARGE = 64, 200
GOOD, PROMISING = 1.01, 1.03
LONG = 4 * STEPS
HOME = Path(__file__).parent.parent / "src" / "sfumato" / "codes" / "searched.json"


@cache
def found(k, w, t, steps):
    base = search(k, w, t, steps)
    return flatness(base, k), base


def ratio(k, w, t, epsilon, steps):
    """The risk over the bound."""
    flatness, _ = found(k, w, t, steps)
    bound = ye_barg_risk(k, best_sizes(k, epsilon)[0], epsilon)
    return flatness * ye_barg_risk(k, w, epsilon) / bound


def counts(k, w):
    """The t to try: as many as three bits allow, and for few points 4, 8 and where a difference family could exist."""
    most = (8 << k.bit_length()) // k
    if k > SMALL:
        return {most}
    return {4, 8, most} | {t for t in range(1, most + 1) if t * w * (w - 1) % (k - 1) == 0}


def chosen(k, epsilon):
    """The (w, t) to keep for k and ε, or None."""
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
    """What to keep for k points."""
    sizes = {chosen(k, epsilon) for epsilon in EPSILONS} - {None}
    return {f"{k} {w} {t}": pack(found(k, w, t, LONG)[1]) for w, t in sorted(sizes)}


def main():
    stored = {}
    with ProcessPoolExecutor() as pool:
        for kept in pool.map(entries, range(2, LARGE + 1)):
            stored |= kept
            print(f"{len(stored)} codes", end="\r", flush=True)
    HOME.write_text(json.dumps(stored, indent=0) + "\n", encoding="utf-8")
    print(f"{len(stored)} codes in {HOME}")


if __name__ == "__main__":
    main()
