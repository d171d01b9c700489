"""The cases on which decoders are developed. ``held_out_cases.py`` has those that judge them.

Every crowd is a formula with a fixed seed, so these cases need no data. ``decoder_maps.py`` adds
maps. Unless a case says otherwise, ε is 1 and ``mechanism_for`` chooses the code.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import sfumato as sf
from decoder_case import DecoderCase
from sfumato.foundation.arrays import Floats

__all__ = ["cases_in_order", "cases_out_of_order", "cell_cases", "few_large_cases"]

ORDERED_PEOPLE = (10_000, 100_000, 1_000_000)
CELL_SYMBOLS = 1_000
CELL_BLOCKS = (1, 10, 20, 50, 100)
CELL_PEOPLE = (1_000, 8_000, 64_000, 512_000)
SHUFFLED = ("ages", "incomes", "incomes, heaped", "three bells", "ten steps", "degrees", "spikes")


# --- crowds in order ------------------------------------------------------------------------------


def cases_in_order() -> Iterator[DecoderCase]:
    """Yield 42 cases: 14 crowds, each with three numbers of people."""
    for name, p in crowds_in_order().items():
        yield from _plain_cases("ordered", name, p)


def cases_out_of_order() -> Iterator[DecoderCase]:
    """Yield crowds whose order says nothing, in a domain that has one."""
    crowds = crowds_in_order()
    for seed, name in enumerate(SHUFFLED):
        yield from _plain_cases("shuffled", name, _shuffle(crowds[name], seed))


def crowds_in_order() -> dict[str, Floats]:
    positions = np.arange(1_000)
    geometric = _normalize(0.95**positions)
    zipf = _normalize(1 / (positions + 1))
    return {
        "ages": 0.6 * bell(100, 0.3, 0.15) + 0.4 * bell(100, 0.65, 0.15),
        "incomes": incomes(),
        "incomes, heaped": heap(incomes(), {10: 0.2, 50: 0.1, 100: 0.2}),
        "three bells": three_bells(),
        "ten steps": _normalize(np.repeat([1.0, 1, 2, 1, 12, 1, 2, 1, 1, 1], 100)),
        "degrees": _normalize((positions + 1) ** -1.5),
        "geometric": geometric,
        "spikes": spikes(),
        "clumps": clumps(),
        "time of day": time_of_day(),
        "Zipf": zipf,
        "Zipf, shuffled": _shuffle(zipf, 1),
        "geometric, shuffled": _shuffle(geometric, 2),
        "uniform": np.full(1_000, 1 / 1_000),
    }


def bell(size: int, centre: float, width: float) -> Floats:
    """Return a normal density; the domain is the interval from 0 to 1."""
    positions = np.arange(size) / size
    return _normalize(np.exp(-0.5 * ((positions - centre) / width) ** 2))


def incomes() -> Floats:
    """Return a log-normal density with median 250."""
    middles = np.arange(1_000) + 0.5
    return _normalize(np.exp(-0.5 * (np.log(middles / 250) / 0.6) ** 2) / middles)


def heap(p: Floats, shares: dict[int, float]) -> Floats:
    """Return p if a share of all people round their answer to a multiple of each step."""
    positions = np.arange(p.size)
    result = (1 - sum(shares.values())) * p
    for step, share in shares.items():
        multiples = np.minimum((positions + step // 2) // step * step, p.size - 1)
        result += share * np.bincount(multiples, p, minlength=p.size)
    return result


def three_bells() -> Floats:
    wide = 0.4 * bell(1_024, 0.25, 0.08) + 0.4 * bell(1_024, 0.7, 0.08)
    return wide + 0.2 * bell(1_024, 0.5, 0.01)


def spikes() -> Floats:
    """Return 40 symbols with exponential weights, among 4,096."""
    rng = np.random.default_rng(1)
    places = rng.choice(4_096, 40, replace=False)
    p = np.zeros(4_096)
    p[places] = rng.exponential(size=40)
    return _normalize(p)


def clumps() -> Floats:
    """Return 12 narrow bells, among 4,096 symbols."""
    rng = np.random.default_rng(1)
    p = np.zeros(4_096)
    for _ in range(12):
        centre = rng.uniform(0, 1)
        width = rng.lognormal(np.log(5.5 / 4_096), 0.5)
        p += rng.gamma(2) * bell(4_096, centre, width)
    return _normalize(p)


def time_of_day() -> Floats:
    """Return two rush hours, a broad day and some people at any time, among 10,000 symbols."""
    morning = bell(10_000, 8.2 / 24, 0.7 / 24)
    evening = bell(10_000, 17.7 / 24, 1 / 24)
    day = bell(10_000, 13 / 24, 4 / 24)
    return 0.25 * morning + 0.25 * evening + 0.35 * day + 0.15 / 10_000


# --- few large symbols ----------------------------------------------------------------------------


def few_large_cases() -> Iterator[DecoderCase]:
    """Yield crowds of few symbols that are known well, and crowds near them in shape."""
    two = np.array([0.7, 0.3])
    rows = (
        ("two of 1,000, ε = 2", two, 1_000, 2, 1_000_000),
        ("two of 1,000, ε = 4", two, 1_000, 4, 1_000_000),
        ("two of 4,000, ε = 2", two, 4_000, 2, 1_000_000),
        ("ten of 1,000, ε = 2", _zipf(10), 1_000, 2, 1_000_000),
        ("thirty of 1,000, ε = 1", _zipf(30), 1_000, 1, 1_000_000),
        ("one of 256, ε = 2", np.ones(1), 256, 2, 10_000),
    )
    for name, large, size, epsilon, people in rows:
        p = _shuffle(np.concatenate([large, np.zeros(size - large.size)]), 5)
        yield DecoderCase("few-large", name, sf.Uniform(size, epsilon), p, people)
    blocks = sf.Blocks(np.arange(1_000) // 100, 1)
    yield DecoderCase("few-large", "ten blocks, Zipf, ε = 1", blocks, _zipf(1_000), 1_000_000)
    rng = np.random.default_rng(6)
    ordinary = {
        "Zipf(1)": _shuffle(_zipf(1_000), 7),
        "Zipf(1.5)": _shuffle(_normalize(_zipf(1_000) ** 1.5), 8),
        "Dirichlet(.05)": rng.dirichlet(np.full(1_000, 0.05)),
        "even": np.full(1_000, 1 / 1_000),
    }
    for name, p in ordinary.items():
        context = sf.Uniform(1_000, 2)
        yield DecoderCase("few-large", f"{name}, 1,000, ε = 2", context, p, 1_000_000)


# --- cells: shapes, blocks and people -------------------------------------------------------------


def cell_cases() -> Iterator[DecoderCase]:
    """Yield 80 cases with Hadamard response: 4 crowds, 5 numbers of blocks, 4 of people."""
    positions = np.arange(CELL_SYMBOLS)
    geometric = _normalize(0.95**positions)
    crowds = {
        "uniform": np.full(CELL_SYMBOLS, 1 / CELL_SYMBOLS),
        "Geo(.95)": geometric,
        "Geo(.95) shuffled": np.random.default_rng(2).permutation(geometric),
        "Zipf(1)": _zipf(CELL_SYMBOLS),
    }
    for crowd, p in crowds.items():
        for m in CELL_BLOCKS:
            blocks = positions // (CELL_SYMBOLS // m)
            context = sf.Uniform(CELL_SYMBOLS, 1) if m == 1 else sf.Blocks(blocks, 1)
            for people in CELL_PEOPLE:
                name = f"{crowd}, {m} blocks, {people:,}"
                yield DecoderCase("cells", name, context, p, people, code="hadamard")


# --- helpers --------------------------------------------------------------------------------------


def _plain_cases(group: str, name: str, p: Floats) -> Iterator[DecoderCase]:
    for people in ORDERED_PEOPLE:
        yield DecoderCase(group, f"{name}, {people:,}", sf.Uniform(p.size, 1), p, people)


def _zipf(size: int) -> Floats:
    return _normalize(1 / np.arange(1, size + 1))


def _shuffle(p: Floats, seed: int) -> Floats:
    return np.random.default_rng(seed).permutation(p)


def _normalize(weights: NDArray[np.floating]) -> Floats:
    return np.asarray(weights / weights.sum(), dtype=np.float64)
