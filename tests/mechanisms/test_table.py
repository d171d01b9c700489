"""Designed tables at scale: floats of a solver as integers, scores, certificates and files."""

import itertools
import json
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import sfumato as sf
from sfumato.contexts import Cone
from sfumato.errors import (
    ContextMismatch,
    InvalidContext,
    InvalidSurvey,
    NothingToLearn,
    PrivacyViolation,
)
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import TableResponse, mechanism_from_record
from sfumato.mechanisms.channel import IntegerChannel
from sfumato.mechanisms.dense import LeftInverse, are_independent_mod_prime
from sfumato.promises.exam import check_mechanism
from sfumato.randomness import within_odds
from support.lone_checker import check_file
from support.slow import slow_except

N = 1 << 64


# --- channels from a solver -----------------------------------------------------------------------


def planar(k, epsilon, seed=1):
    """Return distances of random points, scaled to a median of ε."""
    points = np.random.default_rng(seed).random((k, 2))
    distances = np.hypot(*(points[:, None] - points[None]).T)
    return np.round(distances / np.median(distances[distances > 0]) * epsilon, 6)


def nested_groups(k):
    """Return nearly equal pairs in groups at ε = 1, with ε = 20 between groups."""
    x = np.arange(k)
    E = np.where(x[:, None] // 2 == x // 2, 0.01, np.where(x[:, None] // 4 == x // 4, 1.0, 20.0))
    return np.where(np.eye(k), 0, E)


def free_symbols(k):
    """Return a matrix in which a few symbols promise nothing."""
    E = planar(k, 1)
    E[: k // 3] = inf
    return np.where(np.eye(k), 0, E)


def in_blocks(k):
    """Return two halves without promises between them."""
    half = np.arange(k) < k // 2
    return np.where(half[:, None] == half, planar(k, 1), inf)


def one_way(k):
    """Return a chain with smaller promises in one direction."""
    steps = np.subtract.outer(np.arange(k), np.arange(k))
    return np.where(steps > 0, 0.3 * steps, -0.9 * steps)


MATRICES = {
    **{f"uniform-{epsilon}": np.where(np.eye(8), 0, epsilon) for epsilon in (0.01, 0.1, 1, 5, 20)},
    **{f"planar-{epsilon}": planar(8, epsilon) for epsilon in (0.05, 1, 5)},
    "mixed": nested_groups(8),
    "owing-nothing": free_symbols(9),
    "blocks": in_blocks(8),
    "one-way": one_way(7),
    "free": np.where(np.eye(4), 0, inf),
}


def closed(E):
    E = E.copy()
    for z in range(len(E)):
        E = np.minimum(E, E[:, z, None] + E[None, z, :])
    return E


def channel(E, outputs, seed=0):
    """Return a channel from edges of the cone.

    Its columns are ``r = max_{x in S} e^−E[x, ·]`` for random sets S, with weights that add up
    to 1.
    """
    source = np.random.default_rng(seed)
    E = closed(E)
    sets = source.random((outputs, len(E))) < source.uniform(0.2, 0.8, (outputs, 1))
    sets[np.arange(outputs), source.integers(len(E), size=outputs)] = True
    Q = np.array([np.exp(-E[members]).max(axis=0) for members in sets]).T
    Q *= len(E) / outputs / Q.sum(axis=0)
    for _ in range(6):
        ratios = Q / Q.mean(axis=0)
        Q = Q * np.maximum(1 + np.linalg.lstsq(ratios @ Q.T, 1 - Q.sum(axis=1))[0] @ ratios, 0.1)
    assert np.abs(Q.sum(axis=1) - 1).max() < 1e-13
    return Q


def add_noise(Q, by, seed=3):
    return Q * (1 + by * np.random.default_rng(seed).uniform(-1, 1, Q.shape))


def design_table(name, outputs=60, **options):
    E = MATRICES[name]
    return TableResponse.from_floats(
        sf.PrivacyMatrix(E), add_noise(channel(E, outputs), 1e-9), **options
    )


def least_risk(Q, p=None):
    """Return the risk of the best unbiased estimate at p.

    Take 1 out of M by hand: floats would lose a small ε.
    """
    p = np.full(len(Q), 1 / len(Q)) if p is None else p
    q = p @ Q
    centred = (Q - q)[:, q > 0]
    return np.trace(np.linalg.inv(1 + centred / q[q > 0] @ centred.T)) - p @ p


# --- rounding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [0, 1e-9])
@pytest.mark.parametrize("name", MATRICES)
def test_rounded_design_keeps_its_context_and_risk(name, by):
    Q = channel(MATRICES[name], 60)
    table = TableResponse.from_floats(sf.PrivacyMatrix(MATRICES[name]), add_noise(Q, by))
    sf.certify(table)
    assert all(sum(table.integer_row(x)) == N for x in range(table.inputs))
    assert least_risk(table.matrix()) == pytest.approx(least_risk(Q), rel=1e-7 if by else 1e-9)
    assert np.abs(table.matrix() - Q).max() < 1e-8


@pytest.mark.parametrize("name", ["uniform-0.01", "planar-1", "mixed"])
def test_plain_rounding_breaks_the_promise(name):
    """Counterexample: nearest integers, with the remainder on the largest entry."""
    E = MATRICES[name]
    rows = []
    for row in add_noise(channel(E, 60), 1e-9):
        integers = [round(Fraction(q) * N) for q in row]
        integers[int(row.argmax())] += N - sum(integers)
        rows.append(integers)
    with pytest.raises(PrivacyViolation):
        sf.certify(TableResponse(sf.PrivacyMatrix(E), rows))


def test_many_outputs_and_symbols():
    E = planar(24, 1)
    Q = channel(E, 300)
    table = TableResponse.from_floats(sf.Metric(E), add_noise(Q, 1e-9))
    assert table.outputs == 300
    assert sf.certify(table).slack < 1e-12
    assert least_risk(table.matrix()) == pytest.approx(least_risk(Q), rel=1e-7)


def _naive_lift(column, context):
    """Add a unit wherever a promise is broken, until none is."""
    column = list(column)
    changed = True
    while changed:
        changed = False
        for x, x2 in itertools.permutations(range(len(column)), 2):
            while not within_odds(column[x], column[x2], context.exact_epsilon(x, x2)):
                column[x2] = column[x2] + 1
                changed = True
    return column


@pytest.mark.parametrize("name", MATRICES)
def test_lift_integers_matches_a_naive_loop(name):
    context = sf.PrivacyMatrix(MATRICES[name])
    columns = np.random.default_rng(5).integers(0, 60, (30, context.size)).astype(object)
    columns[:5] = 0
    columns[1, 0] = 1
    lifted = Cone.from_context(context).lift_integers(columns)
    assert lifted.tolist() == [_naive_lift(column, context) for column in columns.tolist()]


def test_lift_integers_follows_implied_and_very_weak_promises():
    """The cone is that of the closure; any finite promise forbids reports of one symbol only."""
    chain = Cone.from_context(sf.PrivacyMatrix([[0, 1, 20], [1, 0, 1], [20, 1, 0]]))
    start = np.array([[1000, 0, 0]], dtype=object)
    assert chain.lift_integers(start).tolist() == [[1000, 368, 136]]
    far = Cone.from_context(sf.Metric([[0, 10**6], [10**6, 0]], 1))
    start = np.array([[N, 0], [0, 0]], dtype=object)
    assert far.lift_integers(start).tolist() == [[N, 1], [0, 0]]


def test_indistinguishable_symbols_get_equal_rows():
    context = sf.PrivacyMatrix([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    Q = np.array([[0.6, 0.4], [0.6, 0.4], [0.3, 0.7]]) + 1e-9 * np.array([[1, -1], [-1, 1], [0, 0]])
    table = TableResponse.from_floats(context, Q)
    sf.certify(table)
    assert table.integer_row(0) == table.integer_row(1)


def test_exact_rows_stay_exact():
    identity = TableResponse.from_fractions(sf.Uniform(2, inf), [[1, 0], [0, 1]])
    assert [identity.integer_row(x) for x in (0, 1)] == [[N, 0], [0, N]]
    inside = TableResponse.from_fractions(sf.Uniform(2, 1), [["0.6", "0.4"], ["0.45", "0.55"]])
    nearest = [[round(Fraction(q) * N) for q in row] for row in (("0.6", "0.4"), ("0.45", "0.55"))]
    assert [inside.integer_row(x) for x in (0, 1)] == nearest
    assert inside.with_word_bits(12).with_word_bits(13).integer_row(0) == [
        2 * n for n in inside.with_word_bits(12).integer_row(0)
    ]


@pytest.mark.parametrize("name", MATRICES)
def test_short_words_give_a_coarser_table_that_keeps_the_context(name):
    table = design_table(name)
    for bits in (14, 18, 32):
        short = table.with_word_bits(bits)
        sf.certify(short)
        assert all(sum(short.integer_row(x)) == 1 << bits for x in range(short.inputs))
    assert np.abs(short.matrix() - table.matrix()).max() < 1e-5


def test_word_too_short_for_a_table_is_rejected():
    with pytest.raises(NothingToLearn, match="8-bit words are too short"):
        design_table("uniform-0.01").with_word_bits(8)


def test_rare_reports_are_dropped():
    Q = channel(MATRICES["planar-1"], 30)
    wider = np.insert(Q, [0, 7], 1e-14, axis=1)
    assert TableResponse.from_floats(sf.PrivacyMatrix(MATRICES["planar-1"]), wider).outputs == 30
    assert (
        TableResponse.from_fractions(
            sf.Uniform(2, 1), [["0.5", 0, "0.5"], ["0.4", 0, "0.6"]]
        ).outputs
        == 3
    )


@pytest.mark.parametrize(
    ("Q", "said"),
    [
        ([[0.5, 0.5]], "2 symbols"),
        ([[0.5, 0.5, 0]] * 3, "2 symbols"),
        ([0.5, 0.5], "matrix of probabilities"),
        ([[0.5, np.nan], [0.5, 0.5]], "matrix of probabilities"),
        ([[1.1, -0.1], [0.5, 0.5]], "matrix of probabilities"),
        ([[0.5, 0.5], [0.5, 0.50001]], "row 1 is off by 1e-05"),
    ],
)
def test_floats_that_are_not_a_channel_are_rejected(Q, said):
    with pytest.raises(InvalidContext, match=said):
        TableResponse.from_floats(sf.Uniform(2, 1), Q)


def test_floats_that_break_the_context_are_rejected():
    with pytest.raises(ContextMismatch, match="does not satisfy the context"):
        TableResponse.from_floats(sf.Uniform(2, 1), [[0.74, 0.26], [0.26, 0.74]])


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 63, 64])
@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 8, 9, 40])
def test_bisection_matches_counting(outputs, bits):
    source = np.random.default_rng(outputs)
    total = 1 << bits
    rows = []
    for _ in range(12):
        ends = [
            [0, 1, total - 1, total, int(source.integers(total, dtype=np.uint64))][i]
            for i in source.integers(5, size=outputs - 1)
        ]
        ends = [0, *sorted(ends), total]
        rows.append([b - a for a, b in itertools.pairwise(ends)])
    words = sorted(
        {
            0,
            total - 1,
            *(end + i for row in rows for end in itertools.accumulate(row) for i in (-1, 0, 1)),
        }
    )
    words = [word for word in words if 0 <= word < total]
    for x, row in enumerate(rows):
        counted = [
            sum(end <= word for end in list(itertools.accumulate(row))[:-1]) for word in words
        ]
        symbols = np.full(len(words), x, dtype=np.uint64)
        assert (
            IntegerChannel(rows, bits).choose(symbols, np.array(words, dtype=np.uint64)).tolist()
            == counted
        )


# --- scores ---------------------------------------------------------------------------------------


def _exact(inverse, outputs):
    return np.array([[float(score) for score in inverse.column(y)] for y in range(outputs)]).T


@pytest.mark.parametrize(
    "crowd", [None, [1, 2, 4, 8, 16, 32, 64, 128, 256]], ids=["uniform", "skewed"]
)
@pytest.mark.parametrize("name", MATRICES)
def test_float_scores_match_exact_ones(name, crowd):
    table = design_table(name, crowd=crowd and crowd[: len(MATRICES[name])])
    exact = _exact(table.scores._inverse, table.outputs)
    assert table.scores._inverse._solve_in_floats() is not None
    assert np.abs(table.scores.matrix() - exact).max() <= 1e-11 * np.abs(exact).max()
    assert table.scores.leverage == pytest.approx(np.abs(exact).max(), rel=1e-11)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-4, 1e-6])
def test_uncertain_float_scores_fall_back_to_exact_ones(epsilon):
    E = np.where(np.eye(5), 0, epsilon)
    table = TableResponse.from_floats(sf.PrivacyMatrix(E), channel(E, 25))
    exact = _exact(table.scores._inverse, table.outputs)
    assert (table.scores._inverse._solve_in_floats() is None) == (epsilon < 1e-4)
    assert np.abs(table.scores.matrix() - exact).max() <= 1e-10 * np.abs(exact).max()


def _naive_scores(rows, denominator, crowd):
    """Return ``M⁻¹ Q G`` for two symbols, by Cramer's rule in fractions, with G exactly 1/q."""
    Q = [[Fraction(entry, denominator) for entry in row] for row in rows]
    q = [
        sum(Fraction(c, sum(crowd)) * row[y] for c, row in zip(crowd, Q, strict=True))
        for y in range(len(rows[0]))
    ]
    (a, b), (c, d) = [
        [sum(s * t / w for s, t, w in zip(r, r2, q, strict=True)) for r2 in Q] for r in Q
    ]
    inverse = [[d, -b], [-c, a]]
    return [
        [
            sum(i * row[y] for i, row in zip(mine, Q, strict=True)) / q[y] / (a * d - b * c)
            for y in range(len(q))
        ]
        for mine in inverse
    ]


@pytest.mark.parametrize("crowd", [[1, 1], [1, 9], [2**32, 1]])
def test_scores_match_the_formula(crowd):
    rows = [[20, 30, 14], [30, 11, 23]]
    expected = np.array(_naive_scores(rows, 64, crowd), dtype=float)
    result = LeftInverse(rows, 64, crowd)
    # The weights G have 16 bits.
    assert result.to_floats() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert _exact(result, 3) == pytest.approx(result.to_floats(), rel=1e-12)
    columns = [result.column(y) for y in range(3)]
    means = [
        [
            sum(Fraction(q, 64) * column[x] for q, column in zip(row, columns, strict=True))
            for x in (0, 1)
        ]
        for row in rows
    ]
    assert means == [[1, 0], [0, 1]]


def test_dependent_rows_have_no_scores():
    rows = [[2, 1, 1], [1, 2, 1], [3, 3, 2]]
    assert not are_independent_mod_prime(rows)
    assert are_independent_mod_prime([[2, 1, 1], [1, 2, 1], [3, 3, 3]])
    assert not are_independent_mod_prime([[1, 2], [1, 2]])
    assert are_independent_mod_prime([[0, 0, N], [0, N, 0], [1, 0, 0]])
    with pytest.raises(NothingToLearn, match="cannot be inverted"):
        LeftInverse(rows, 8, [1, 1, 1]).to_floats()


# --- crowds ---------------------------------------------------------------------------------------


def test_scores_have_least_variance_at_the_crowd():
    name = "planar-1"
    crowd = [1, 2, 3, 5, 8, 13, 21, 34]
    p = np.array(crowd) / sum(crowd)
    even = design_table(name)
    skewed = design_table(name, crowd=crowd)
    assert even.integer_row(0) == skewed.integer_row(0)
    assert skewed.scores.risk(p) == pytest.approx(least_risk(skewed.matrix(), p), rel=1e-4)
    assert even.scores.risk(p) > 1.001 * skewed.scores.risk(p)
    assert skewed.scores.risk(np.full(8, 1 / 8)) > 1.001 * even.scores.risk(np.full(8, 1 / 8))


def test_crowd_is_recorded_and_kept_at_other_word_sizes():
    table = design_table("planar-1", crowd=[1, 2, 3, 5, 8, 13, 21, 34])
    assert table.to_record()["crowd"] == ["1", "2", "3", "5", "8", "13", "21", "34"]
    assert table.with_word_bits(20).crowd == table.with_word_bits(64).crowd == table.crowd
    assert table.with_word_bits(64).fingerprint == table.fingerprint
    plain = design_table("planar-1")
    assert "crowd" not in plain.to_record()
    assert plain.fingerprint != table.fingerprint


def test_uniform_crowd_is_the_default():
    assert design_table("planar-1", crowd=[1] * 8).crowd is None
    assert (
        design_table("planar-1", crowd=np.ones(8, dtype=np.int64)).fingerprint
        == design_table("planar-1").fingerprint
    )


@pytest.mark.parametrize(
    ("crowd", "said"),
    [
        ([1, 2, 3], "each of the 2 symbols"),
        ([0, 1], "from 1 to 2\\^32"),
        ([1, 2**32 + 1], "from 1 to 2\\^32"),
        ([1.0, 2.0], "an integer from 1"),
        ([True, 2], "an integer from 1"),
        (["1", "2"], "an integer from 1"),
        ([4, 6], "multiples of 2"),
    ],
)
def test_invalid_crowd_is_rejected(crowd, said):
    with pytest.raises(InvalidContext, match=said):
        TableResponse(sf.Uniform(2, 1), [[3, 1], [1, 3]], word_bits=2, crowd=crowd)


def test_crowd_round_trip_and_invalid_crowds():
    context = sf.Uniform(2, 1)
    table = TableResponse.from_fractions(context, [["0.6", "0.4"], ["0.4", "0.6"]], crowd=[3, 7])
    record = json.loads(canonical_bytes(table.to_record()))
    assert mechanism_from_record(record, context).fingerprint == table.fingerprint
    for wrong in (["1", "1"], ["6", "14"], ["3"], ["3", "x"], ["3", "07"]):
        with pytest.raises((InvalidSurvey, InvalidContext)):
            mechanism_from_record({**record, "crowd": wrong}, context)
    with pytest.raises(InvalidSurvey, match="unknown"):
        mechanism_from_record({**record, "kind": "binary"}, context)


@pytest.mark.parametrize(("kind", "code"), [("table", 0), ("binary", 2)])
def test_checker_accepts_a_crowd_only_where_it_belongs(kind, code, tmp_path):
    table = TableResponse.from_fractions(
        sf.Uniform(2, 1), [["0.6", "0.4"], ["0.4", "0.6"]], crowd=[3, 7]
    )
    table.save(tmp_path / "table.json")
    saved = json.loads((tmp_path / "table.json").read_bytes())
    saved["mechanism"]["kind"] = kind
    assert _run_checker(saved, tmp_path)[0] == code


def _run_checker(saved, folder):
    path = folder / "saved.json"
    path.write_bytes(canonical_bytes(saved))
    return check_file(path)


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MATRICES)
def test_large_table_certificate_matches_a_plain_loop(name):
    table = design_table(name)
    context = sf.PrivacyMatrix(MATRICES[name])
    rows = [table.integer_row(x) for x in range(table.inputs)]
    slacks = [
        float(epsilon) - (np.log(q) - np.log(q2))
        for x, x2 in itertools.permutations(range(table.inputs), 2)
        if isinstance(epsilon := context.exact_epsilon(x, x2), Fraction)
        for q, q2 in zip(map(float, rows[x]), map(float, rows[x2]), strict=True)
        if q
    ]
    place = sf.certify(table).tightest
    assert (place is None) == (not slacks)
    if place is not None:
        assert float(place.promised) - place.realised == pytest.approx(min(slacks), abs=1e-13)
        assert (rows[place.x][place.output], rows[place.x2][place.output]) == (
            place.high,
            place.low,
        )
        assert context.exact_epsilon(place.x, place.x2) == place.promised


@pytest.mark.parametrize(
    "name", ["uniform-0.01", "uniform-20", "planar-1", "mixed", "owing-nothing"]
)
def test_single_extra_word_is_detected(name, tmp_path):
    """Give x all the words that its promise allows at the tightest place, and then one more."""
    table = design_table(name)
    place = sf.certify(table).tightest
    rows = [table.integer_row(x) for x in range(table.inputs)]
    more = _words_too_many(place)
    largest = max(
        (y for y in range(table.outputs) if y != place.output), key=lambda y: rows[place.x][y]
    )
    for extra in (more - 1, more):
        moved = [list(row) for row in rows]
        moved[place.x][place.output] += extra
        moved[place.x][largest] -= extra
        others = [x2 for x2 in range(table.inputs) if x2 != place.x]
        kept = all(
            within_odds(moved[a][y], moved[b][y], table.context.exact_epsilon(a, b))
            for x2 in others
            for a, b in ((place.x, x2), (x2, place.x))
            for y in (place.output, largest)
        )
        broken = TableResponse(table.context, moved)
        broken.save(tmp_path / "table.json")
        verdict = _run_checker(json.loads((tmp_path / "table.json").read_bytes()), tmp_path)[0]
        if kept:
            assert sf.certify(broken)
            assert verdict == 0
        else:
            with pytest.raises(PrivacyViolation) as violation:
                sf.certify(broken)
            x = violation.value.x
            x2 = violation.value.x2
            y = violation.value.output
            assert not within_odds(moved[x][y], moved[x2][y], table.context.exact_epsilon(x, x2))
            assert verdict == 1
    assert not kept


def _words_too_many(place):
    """Return the least number of additional words at a place that breaks a promise."""
    kept = 0
    broken = place.high
    assert not within_odds(place.high + broken, place.low, place.promised)
    while broken - kept > 1:
        middle = (kept + broken) // 2
        if within_odds(place.high + middle, place.low, place.promised):
            kept = middle
        else:
            broken = middle
    return broken


# --- the exam -------------------------------------------------------------------------------------


EXAMINED = MATRICES.keys() - {"uniform-0.01", "uniform-0.1", "uniform-5", "planar-0.05"}


@pytest.mark.parametrize("name", slow_except(EXAMINED, MATRICES))
def test_designed_tables_pass_the_exam(name):
    crowd = [1 + x for x in range(len(MATRICES[name]))]
    assert check_mechanism(design_table(name, crowd=crowd)).word_bits <= 18


def test_table_with_more_than_512_outputs_passes_the_exam():
    E = planar(4, 1)
    report = check_mechanism(TableResponse.from_floats(sf.PrivacyMatrix(E), channel(E, 700)))
    assert report.passed[-1] == "sampler_matches_its_matrix"


@pytest.mark.slow
def test_sixty_four_symbols_and_fifteen_hundred_outputs():
    E = planar(64, 2)
    Q = channel(E, 1500)
    table = TableResponse.from_floats(sf.Metric(E), add_noise(Q, 1e-9))
    sf.certify(table)
    assert least_risk(table.matrix()) == pytest.approx(least_risk(Q), rel=1e-7)
    assert np.abs(table.scores.matrix() @ table.matrix().T - np.eye(64)).max() < 1e-9
    for y in (0, 700, 1499):
        assert table.scores.matrix()[:, y] == pytest.approx(
            [float(a) for a in table.scores.exact_column(y)], abs=1e-9 * table.scores.leverage
        )
