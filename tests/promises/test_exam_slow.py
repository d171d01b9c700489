"""The exam over many sizes and ε, and large claims row by row: this takes minutes."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.promises import structure
from sfumato.promises.exam import check_mechanism

pytestmark = pytest.mark.slow


def frames(k, epsilon, code):
    yield sf.PlainResponse(sf.Uniform(k, epsilon), code)
    for block_of in ([x % 3 for x in range(k)], [x * x % 7 for x in range(k)], list(range(k))):
        yield sf.BlockResponse(sf.Blocks(block_of, epsilon), code)
    for sensitive in ([0], range(0, k, 2), range(k)):
        yield sf.HighLowResponse(sf.HighLow(k, sensitive, epsilon), code)


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode], ids=lambda code: code.kind)
@pytest.mark.parametrize("epsilon", [0.2, 1, 3, 8])
@pytest.mark.parametrize("k", range(1, 33))
def test_every_frame_of_every_size_passes_the_exam(k, epsilon, code):
    for mechanism in frames(k, epsilon, code):
        check_mechanism(mechanism)


@pytest.mark.parametrize(
    "context",
    [
        sf.Uniform(43_750, 1),
        sf.Blocks(np.arange(43_750) // 25, 1),
        sf.HighLow(43_750, range(1000), 1),
    ],
    ids=repr,
)
def test_every_row_of_a_large_mechanism_is_as_claimed(context, monkeypatch):
    monkeypatch.setattr(structure, "RANDOM_ROW_COUNT", 50_000)
    certificate = sf.certify(sf.mechanism_for(context, code="hadamard"))
    assert certificate.rows == 43_750
