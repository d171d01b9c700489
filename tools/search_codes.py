"""Search for the cyclic codes that ship with Sfumato: `python tools/search_codes.py`.

The search takes a quarter of an hour on two cores. It overwrites src/sfumato/codes/searched.json
with the same content every time. For every number of points up to 200 and a few common values of
ε, it looks for the smallest number of blocks whose risk is within 1% of the bound of Ye and Barg.
Up to 64 points, it keeps every result. Beyond that, it keeps only those for which the regular
search would need more than 8 blocks.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from sfumato.codes.search import MAX_STEPS, best_sizes, flatness, pack, search, ye_barg_risk

EPSILONS = (0.25, 0.5, 1, 2, 3, 4)
MAX_SMALL_POINTS = 64
MAX_POINTS = 200
GOOD_RATIO = 1.01  # of the risk to the bound
PROMISING_RATIO = 1.03
LONG_STEPS = 4 * MAX_STEPS
OUTPUT = Path(__file__).parent.parent / "src" / "sfumato" / "codes" / "searched.json"


@cache
def search_once(k, w, t, steps):
    """Return the flatness of the best blocks found, and the blocks."""
    base = search(k, w, t, steps)
    return flatness(base, k), base


def risk_ratio(k, w, t, epsilon, steps):
    """Return the ratio of the risk to the bound."""
    flatness, _ = search_once(k, w, t, steps)
    bound = ye_barg_risk(k, best_sizes(k, epsilon)[0], epsilon)
    return flatness * ye_barg_risk(k, w, epsilon) / bound


def block_counts(k, w):
    """Return the values of t to try: the largest one that costs at most three more bits.

    For few points, also try 4, 8 and all t for which a difference family could exist.
    """
    max_t = (8 << k.bit_length()) // k
    if k > MAX_SMALL_POINTS:
        return {max_t}
    families = {t for t in range(1, max_t + 1) if t * w * (w - 1) % (k - 1) == 0}
    return {4, 8, max_t} | families


def choose(k, epsilon):
    """Return the (w, t) to keep for k and ε, or None."""
    sizes = best_sizes(k, epsilon)
    if sizes[0] == 1:
        return None  # randomized response is optimal
    if (
        k > MAX_SMALL_POINTS
        and min(risk_ratio(k, w, 8, epsilon, MAX_STEPS) for w in sizes) <= GOOD_RATIO
    ):
        return None
    candidates = sorted((t, w) for w in sizes for t in block_counts(k, w))
    promising = [
        (w, t)
        for t, w in candidates
        if t >= 8 or risk_ratio(k, w, t, epsilon, MAX_STEPS) <= PROMISING_RATIO
    ]
    best = None
    for w, t in promising:
        if best is None or risk_ratio(k, w, t, epsilon, MAX_STEPS) - 0.005 < risk_ratio(
            k, *best, epsilon, LONG_STEPS
        ):
            best = min(
                filter(None, (best, (w, t))),
                key=lambda code: risk_ratio(k, *code, epsilon, LONG_STEPS),
            )
        if risk_ratio(k, *best, epsilon, LONG_STEPS) <= GOOD_RATIO:
            break
    return best


def search_points(k):
    """Return the packed codes to keep for k points."""
    sizes = {choose(k, epsilon) for epsilon in EPSILONS} - {None}
    blocks = {}
    for w, t in sorted(sizes):
        _, base = search_once(k, w, t, LONG_STEPS)
        blocks[f"{k} {w} {t}"] = pack(base)
    return blocks


def main():
    packed_codes = {}
    with ProcessPoolExecutor() as pool:
        for blocks in pool.map(search_points, range(2, MAX_POINTS + 1)):
            packed_codes |= blocks
            print(f"{len(packed_codes)} codes", end="\r", flush=True)
    OUTPUT.write_text(json.dumps(packed_codes, indent=0) + "\n", encoding="utf-8")
    print(f"{len(packed_codes)} codes in {OUTPUT}")


if __name__ == "__main__":
    main()
