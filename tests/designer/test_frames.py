"""Frames with fitted codes: their gain over the paper's, and their distance from the optimum."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import GroupedContext
from sfumato.designer.frames import FrameGroup, frame_families, frame_risks
from sfumato.domains import as_domain
from sfumato.errors import ContextMismatch, InvalidArgument, NothingToLearn
from support.slow import slow_except

inf = math.inf


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes).tolist()


def contributions(mechanism):
    """Return ρ, the contribution of each symbol: ``risk(p) = ρ·p − ‖p‖²``."""
    return mechanism.adjoint(mechanism.scores.squares())


def at_uniform(mechanism):
    return mechanism.scores.risk(np.full(mechanism.inputs, 1 / mechanism.inputs))


# --- high-low against the paper -------------------------------------------------------------------


def paper_high_low(s, epsilon):
    """Return R_A and R_B of the paper's mechanism with the paper's estimator."""
    e = math.exp(epsilon)
    c = (e + 1) / (e - 1)
    return s * c**2, 2 * s * c**2 / (e + 1) + c


@pytest.mark.parametrize("share", [0.001, 0.1, 0.25, 0.5])
def test_single_sensitive_symbol_gains_at_least_fourfold(share):
    context = sf.HighLow(5, [0], 1)
    p = np.array([share, *[(1 - share) / 4] * 4])
    paper = sf.HighLowResponse(context).scores.paper_variances(p, 1)[0]
    risk = sf.mechanism_for(context).scores.variances(p, 1)[0]
    beta = 1 - 1 / math.e
    yes_probability = 1 - beta + beta * share
    mangat_risk = yes_probability * (1 - yes_probability) / beta**2
    assert risk == pytest.approx(mangat_risk, rel=1e-9)
    assert 4.3 <= paper / risk <= 6.2


@pytest.mark.parametrize(
    ("epsilon", "gain"), [(0.25, 1.25), (0.5, 1.31), (1, 1.56), (2, 2.7), (4, 7.7)]
)
@pytest.mark.parametrize("k", [11, 20, 1000])
def test_ten_sensitive_symbols_gain_in_worst_risk(epsilon, gain, k):
    rho = contributions(sf.mechanism_for(sf.HighLow(k, range(10), epsilon)))
    assert max(paper_high_low(10, epsilon)) / rho.max() == pytest.approx(gain, rel=0.03)
    # The largest loss: free symbols at ε = 2.
    assert rho[10:].max() <= paper_high_low(10, epsilon)[1] / 0.85


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1, 2, 4])
@pytest.mark.parametrize("s", [1, 2, 3, 6, 15])
def test_fitted_high_low_is_never_worse_than_hadamard(s, epsilon):
    context = sf.HighLow(s + 5, range(s), epsilon)
    best, hadamard, randomized = (
        sf.mechanism_for(context, code=code) for code in ("best", "hadamard", "randomized")
    )
    assert best.scores.worst_risk() <= min(
        hadamard.scores.worst_risk(), randomized.scores.worst_risk()
    ) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_sensitive_share_lowers_the_risk_there(epsilon):
    context = sf.HighLow(30, range(10), epsilon)
    shares = (0.0, 0.05, 0.3, 0.7, 1.0)
    fitted = {share: sf.mechanism_for(context, sensitive_share=share) for share in shares}
    for share in shares:
        p = np.full(30, (1 - share) / 20)
        p[:10] = share / 10
        least = min(
            mechanism.scores.risk(p) for mechanism in (*fitted.values(), sf.mechanism_for(context))
        )
        assert fitted[share].scores.risk(p) <= least * (1 + 1e-9)
        sf.certify(fitted[share], context)


def test_sensitive_share_changes_the_mechanism():
    """At ε = 1 and 10 of 30 symbols, larger sets are better where few people are sensitive."""
    context = sf.HighLow(30, range(10), 1)
    few = sf.mechanism_for(context, sensitive_share=0.05)
    worst = sf.mechanism_for(context)
    p = np.array([0.005] * 10 + [0.0475] * 20)
    assert few.scores.risk(p) < 0.97 * worst.scores.risk(p)
    assert few.scores.worst_risk() > worst.scores.worst_risk()


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_invalid_sensitive_share_raises(share):
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        sf.mechanism_for(sf.HighLow(9, range(4), 1), sensitive_share=share)


def test_sensitive_share_needs_a_high_low_context():
    for context in (sf.Uniform(4, 1), sf.Blocks(blocks(2, 2), 1), sf.Tiers(blocks(2, 2), [1, 2])):
        with pytest.raises(ContextMismatch, match="high-low"):
            sf.mechanism_for(context, sensitive_share=0.5)


# --- against the optimum --------------------------------------------------------------------------

# The least risk at uniform p of any private channel with an unbiased estimate, from a numerical
# search, to five digits, and by how much frames may exceed it.
OPTIMA = {
    "two levels (1, 2), 4+4": (sf.Blocks(blocks(4, 4), 1, across=2), 13.48954, 1.07),
    "two levels (1, 2), 3+3+3": (sf.Blocks(blocks(3, 3, 3), 1, across=2), 11.64580, 1.07),
    "two levels (1, 3), 3+3+3": (sf.Blocks(blocks(3, 3, 3), 1, across=3), 7.27132, 1.07),
    "two levels (2, 4), 4+4": (sf.Blocks(blocks(4, 4), 2, across=4), 2.34912, 1.07),
    "two levels (0.5, 1), 4+4": (sf.Blocks(blocks(4, 4), 0.5, across=1), 70.3624, 1.26),
    "two levels (0.25, 0.5), 3+3+3": (sf.Blocks(blocks(3, 3, 3), 0.25, across=0.5), 292.435, 1.26),
    "tiers of 1, 2 and none": (sf.Tiers(blocks(3, 3, 2), [1, 2, inf]), 8.57077, 1.27),
    "tiers of 0.5 and 2": (sf.Tiers(blocks(4, 4), [0.5, 2]), 41.9286, 1.27),
    "tiers of 1, 3 and none": (sf.Tiers(blocks(2, 4, 2), [1, 3, inf]), 4.47691, 1.27),
    "high-low, 4 of 8": (sf.HighLow(8, range(4), 1), 8.99147, 1.01),
    "high-low, 3 of 9": (sf.HighLow(9, range(3), 2), 1.87063, 1.01),
    "high-low, 6 of 9": (sf.HighLow(9, range(6), 0.5), 64.1317, 1.01),
}


@pytest.mark.parametrize("name", OPTIMA)
def test_frames_are_close_to_the_optimum(name):
    context, optimum, limit = OPTIMA[name]
    ratio = at_uniform(sf.mechanism_for(context)) / optimum
    assert 1 - 1e-4 <= ratio <= limit, ratio
    # The limit would detect a worse frame: the Hadamard code always exceeds it.
    assert at_uniform(sf.mechanism_for(context, code="hadamard")) / optimum > limit


# --- the choice -----------------------------------------------------------------------------------

SHELF = [
    (sf.Tiers(blocks(3, 4, 2), [1, 2, inf]), sf.GroupResponse),
    (sf.Tiers(blocks(3, 4), [1, inf]), sf.HighLowResponse),
    (sf.Blocks(blocks(3, 4), [1, 2]), sf.BlockResponse),
    (sf.Blocks(blocks(3, 4), 1, across=2), sf.GroupResponse),
    (sf.Blocks(blocks(4, 4), 0.5, across=1), sf.ProductResponse),
    (sf.Blocks(blocks(3, 3), 5, across=2), sf.GroupResponse),
    (sf.Blocks(blocks(3, 3), 2, across=1), sf.PlainResponse),
    (sf.union([sf.Tiers(blocks(2, 2), [1, 2]), sf.Uniform(3, 1)]), sf.UnionResponse),
]


NEARLY_UNIFORM = (sf.Blocks(blocks(4, 4), 1, across="1.01"), sf.ProductResponse)


@pytest.mark.parametrize(
    ("context", "frame"), [*SHELF, NEARLY_UNIFORM], ids=lambda value: repr(value)
)
def test_mechanism_for_chooses_the_frame_of_least_worst_risk(context, frame):
    mechanism = sf.mechanism_for(context)
    assert type(mechanism) is frame
    assert sf.certify(mechanism, context).slack >= 0
    matrix_context = sf.PrivacyMatrix(context.matrix().tolist())
    from_matrix = sf.mechanism_for(matrix_context)
    assert sf.certify(from_matrix, matrix_context).slack >= 0
    assert from_matrix.scores.worst_risk() == pytest.approx(mechanism.scores.worst_risk(), rel=1e-6)


@pytest.mark.parametrize(("context", "frame"), SHELF, ids=lambda value: repr(value))
@pytest.mark.parametrize("code", ["hadamard", "randomized", "cyclic"])
def test_named_code_is_used(context, frame, code):
    mechanism = sf.mechanism_for(context, code=code)
    sf.certify(mechanism, context)
    if code == "randomized":
        assert mechanism.bits <= sf.mechanism_for(context, code="hadamard").bits + 1


# Each frame once; the other contexts are slow.
@pytest.mark.parametrize("index", slow_except({1, 2, 3, 4, 6, 7}, range(len(SHELF))))
def test_max_bits_trades_risk_and_errors_name_the_minimum(index):
    context, _ = SHELF[index]
    longest = sf.mechanism_for(context)
    risks = [longest.scores.worst_risk()]
    least = None
    for bits in range(longest.bits - 1, -1, -1):
        try:
            mechanism = sf.mechanism_for(context, max_bits=bits)
        except InvalidArgument as refusal:
            least = least or str(refusal)
            continue
        assert least is None and mechanism.bits <= bits
        risks.append(mechanism.scores.worst_risk())
        sf.certify(mechanism, context)
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(risks))
    needed = int(least.split("at least ")[1].split()[0])
    assert sf.mechanism_for(context, max_bits=needed).bits == needed


class Pairs(GroupedContext):
    """A kind of context that the package does not know: pairs of neighbouring symbols."""

    kind = "pairs"

    def __init__(self, size, inside, outward):
        group_of = np.arange(size) // 2
        count = int(group_of[-1]) + 1
        super().__init__(
            as_domain(size), group_of, (Fraction(inside),) * count, (Fraction(outward),) * count
        )

    def to_record(self):
        return self._record()


def test_new_grouped_context_gets_a_frame():
    context = Pairs(6, inside=1, outward=2)
    frame = sf.mechanism_for(context)
    assert frame.kind == sf.mechanism_for(sf.Blocks([0, 0, 1, 1, 2, 2], 1, across=2)).kind
    assert sf.certify(frame, context)


def test_frame_families_are_equal_for_equal_groups():
    groups = sf.Blocks(blocks(5, 9, 5, 1), [1, 2, 1, 1], across=2).groups
    families = frame_families(groups, 3)
    assert len(families) == 4
    assert families[0] is families[2] and families[3] is RandomizedCode
    assert len(frame_families(sf.Tiers(blocks(5, 9, 5), [1, 2, inf]).groups, 3)) == 2


# --- properties -----------------------------------------------------------------------------------

EPSILONS = st.sampled_from(["0.1", "0.25", "0.5", "1", "1.5", "2", "3", "4"])
SIZES = st.lists(st.integers(1, 5), min_size=2, max_size=4)


@st.composite
def group_contexts(draw):
    sizes = draw(SIZES)
    m = len(sizes)
    kind = draw(st.sampled_from(["tiers", "blocks", "across", "high-low"]))
    epsilons = draw(st.lists(EPSILONS, min_size=m, max_size=m))
    if kind == "tiers":
        return sf.Tiers(
            blocks(*sizes), [*epsilons[1:], draw(st.sampled_from(["inf", epsilons[0]]))]
        )
    if kind == "high-low":
        return sf.HighLow(sum(sizes), range(sizes[0]), epsilons[0])
    return sf.Blocks(blocks(*sizes), epsilons, across=draw(EPSILONS) if kind == "across" else inf)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(group_contexts())
def test_frames_are_never_worse_than_a_plain_response(context):
    mechanism = sf.mechanism_for(context)
    sf.certify(mechanism, context)
    if context.exact_minimum < inf:
        plain = sf.mechanism_for(sf.Uniform(context.domain, context.exact_minimum))
        sf.certify(plain, context)
        assert mechanism.scores.worst_risk() <= plain.scores.worst_risk() * (1 + 1e-9)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(group_contexts(), st.randoms(use_true_random=False))
def test_risk_does_not_depend_on_the_order_of_symbols(context, random):
    E = context.matrix()
    order = list(range(context.size))
    random.shuffle(order)
    original, permuted = (sf.PrivacyMatrix(each.tolist()) for each in (E, E[np.ix_(order, order)]))
    mechanisms = [sf.mechanism_for(each) for each in (original, permuted)]
    sf.certify(mechanisms[1], permuted)
    # The risk of a product response depends slightly on which points form a block.
    near = (
        0.1 if any(isinstance(mechanism, sf.ProductResponse) for mechanism in mechanisms) else 1e-6
    )
    assert mechanisms[1].scores.worst_risk() == pytest.approx(
        mechanisms[0].scores.worst_risk(), rel=near
    )


# --- the closed form of frame risks ---------------------------------------------------------------


def naive_frame_risks(sizes, epsilons, families):
    """Return ρ of the simple estimate from the written-out channel and solved scores."""
    context = sf.Blocks(blocks(*sizes), epsilons[0], across=epsilons[1])
    mechanism = sf.GroupResponse(context, families)
    k = context.size
    rho = [mechanism.scores.paper_variances(unit, 1).sum() + 1 for unit in np.eye(k)]
    return [rho[start] for start in np.cumsum([0, *sizes[:-1]])]


@pytest.mark.parametrize("epsilons", [("0.5", "1"), ("1", "2"), ("2", "3")])
def test_frame_risks_match_exact_risks(epsilons):
    inside, outward = map(float, epsilons)
    flat = [FrameGroup(3, inside, outward, 0.5, 0.25), FrameGroup(4, inside, outward, 0.25, 0.0)]
    expected = naive_frame_risks([3, 4], epsilons, [HadamardCode, RandomizedCode])
    assert frame_risks(flat)[0] == pytest.approx(expected, rel=1e-9)


def test_frame_risks_accept_counted_groups():
    one = FrameGroup(5, 1, 2, 0.4, 0.1)
    two = FrameGroup(1, 1, 1, 1, 0)
    listed = frame_risks([one, one, one, two])
    grouped = frame_risks([FrameGroup(5, 1, 2, 0.4, 0.1, 3), two])
    assert (listed[0][0], listed[0][3], listed[1]) == pytest.approx(
        (*grouped[0], grouped[1]), rel=1e-12
    )


def test_zero_promises_raise():
    with pytest.raises(NothingToLearn):
        sf.mechanism_for(sf.PrivacyMatrix([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))


def test_large_groups_are_framed_in_time():
    """A frame with a group of 20,000 uses Singer's designs, without a search."""
    context = sf.Blocks([0] * 20_000 + [1] * 20_000, 1, across=Fraction(3, 2))
    mechanism = sf.mechanism_for(context)
    assert isinstance(mechanism, sf.GroupResponse)
    assert mechanism.bits <= math.ceil(math.log2(40_001)) + 4
    sf.certify(mechanism, context)
