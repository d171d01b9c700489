"""Tallies: they add up exactly, refuse strangers, and their files appear whole or not at all."""

import os
import zipfile

import numpy as np
import pytest

from sfumato.contexts import Uniform
from sfumato.errors import InvalidSetting, InvalidTally, ReportRejected, WrongSurvey
from sfumato.mechanisms import PlainResponse
from sfumato.tally import Tally, tally_batches
from support.slow import slow_except

FINGERPRINT = "a" * 64


def _tally(reports, outputs=5, fingerprint=FINGERPRINT):
    return Tally.from_reports(reports, outputs=outputs, fingerprint=fingerprint)


def _names(directory):
    return sorted(path.name for path in directory.iterdir())


# --- counting ------------------------------------------------------------------------------------


def test_reports_are_counted():
    tally = _tally([0, 2, 2, 4])
    assert tally.counts.tolist() == [1, 0, 2, 0, 1]
    assert (tally.reports, tally.outputs, tally.fingerprint) == (4, 5, FINGERPRINT)


@pytest.mark.parametrize(
    "reports",
    [
        [0, 2, 2],
        (0, 2, 2),
        np.array([0, 2, 2]),
        np.array([0, 2, 2], dtype=np.uint8),
        np.array([0, 9, 2, 9, 2])[::2],
    ],
    ids=["list", "tuple", "array", "narrow array", "strided array"],
)
def test_reports_may_come_in_any_row(reports):
    assert _tally(reports) == _tally([0, 2, 2])


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64, np.int8])
def test_narrow_reports_are_compared_with_many_outputs(dtype):
    assert _tally(np.array([100], dtype=dtype), outputs=70_000).counts[100] == 1


@pytest.mark.parametrize("nothing", [[], (), np.array([]), np.array([], dtype=np.uint32)])
def test_an_empty_batch_is_a_tally_of_nothing(nothing):
    tally = _tally(nothing)
    assert tally.counts.tolist() == [0] * 5
    assert tally.reports == 0
    assert tally + _tally([1]) == _tally([1])


def test_the_last_report_is_counted_and_the_next_is_rejected():
    assert _tally([4]).counts.tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(ReportRejected):
        _tally([5])


@pytest.mark.parametrize("report", [739137, -739137, 2**31, 2**53, 2**63, 2**64 - 1])
def test_impossible_report_errors_give_position_not_value(report):
    with pytest.raises(
        ReportRejected, match=r"0\.\.4; 1 of 4 are not \(the first is at position 2\)"
    ) as caught:
        _tally(
            np.array([0, 1, report, 2])
            if abs(report) < 2**63
            else np.array([0, 1, report, 2], dtype=np.uint64)
        )
    assert str(report) not in str(caught.value) + repr(caught.value.args)


@pytest.mark.parametrize(
    "reports",
    [
        [0.0, 1.0],
        [float("nan")],
        ["1"],
        [b"1"],
        [True, False],
        [None],
        [2**64],
        [2**100, 0],
        [[0, 1], [2, 3]],
        [[0, 1], [2]],
        3,
        "0",
        None,
        {0: 1},
        np.array([1, 2], dtype=object),
    ],
    ids=repr,
)
def test_reports_must_be_a_row_of_integers(reports):
    with pytest.raises(ReportRejected):
        _tally(reports)


def test_one_bad_report_rejects_the_batch():
    with pytest.raises(ReportRejected, match="position 1"):
        tally_batches(iter([[0, 1], [2, 99]]), outputs=5, fingerprint=FINGERPRINT)


def test_a_stream_of_batches_counts_like_one_batch():
    batches = ([0, 2], [], np.array([2], dtype=np.uint32), (4,))
    for stream in (batches, iter(batches), (batch for batch in batches)):
        assert tally_batches(stream, outputs=5, fingerprint=FINGERPRINT) == _tally([0, 2, 2, 4])


def test_a_mechanism_counts_lists_arrays_and_iterators_alike():
    mechanism = PlainResponse(Uniform(3, 1.0))
    expected = mechanism.tally(np.array([0, 3, 3, 1], dtype=np.uint32))
    assert expected.counts.tolist() == [1, 1, 0, 2]
    for reports in (
        [0, 3, 3, 1],
        (0, 3, 3, 1),
        [[0, 3], [3, 1]],
        iter([[0], [3, 3, 1]]),
        [np.array([0, 3, 3, 1])],
    ):
        assert mechanism.tally(reports) == expected
    assert mechanism.tally([]) == mechanism.tally(iter([])) == mechanism.tally([[], []])
    with pytest.raises(ReportRejected, match="position 3"):
        mechanism.tally([0, 1, 2, mechanism.outputs])


# --- adding up -----------------------------------------------------------------------------------


A = _tally([0, 0, 1])
B = _tally([4])
C = _tally([2, 1, 2, 3])


def test_tallies_add_up_in_any_order_to_the_same_integers():
    assert A + B == B + A
    assert (A + B) + C == A + (B + C) == sum([C, A, B]) == sum([A, B, C])
    assert (A + B + C).counts.tolist() == [2, 2, 2, 1, 1]


def test_adding_an_empty_tally_changes_nothing():
    assert A + _tally([]) == A
    assert sum([A]) == A


def test_addition_does_not_change_its_terms():
    before = A.counts.tolist()
    A + B + C
    assert A.counts.tolist() == before


def test_equal_tallies_hash_alike_and_others_differ():
    assert hash(_tally([1, 0])) == hash(_tally([0, 1]))
    assert _tally([0]) != _tally([1])
    assert _tally([0]) != _tally([0], outputs=6)
    assert _tally([0]) != _tally([0], fingerprint="b" * 64)
    assert _tally([0]) != [1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "stranger",
    [_tally([0], fingerprint="b" * 64), _tally([0], outputs=6), _tally([], fingerprint="")],
)
def test_tally_of_another_fingerprint_is_rejected(stranger):
    for add in (lambda: A + stranger, lambda: stranger + A, lambda: sum([A, stranger])):
        with pytest.raises(WrongSurvey, match="mechanism or survey that produced the reports"):
            add()


def test_tally_of_another_mechanism_is_rejected():
    mechanism = PlainResponse(Uniform(3, 1.0))
    scores = PlainResponse(Uniform(3, 1.1)).scores
    for use in (
        scores.unbiased,
        scores.standard_errors,
        scores.paper_estimate,
        scores.observed_shares,
    ):
        with pytest.raises(WrongSurvey):
            use(mechanism.tally([0, 1]))


@pytest.mark.parametrize("other", [1, 0.0, None, [1, 0, 0, 0, 0], np.zeros(5)], ids=repr)
def test_only_tallies_are_added(other):
    with pytest.raises(TypeError):
        A + other


# --- what counts can be --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts",
    [
        [-1, 2],
        [0.5, 1.0],
        [1.0, 2.0],
        [float("nan")],
        [[1, 2], [3, 4]],
        [],
        5,
        ["1"],
        [True, False],
        [None],
        [2**64],
        [2**63],
        [2**62, 1],
        [2**61, 2**61, 1],
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.array([2**63, 2**63], dtype=np.uint64),
        np.full(8, 2**61),
    ],
    ids=range(17),
)
def test_impossible_counts_are_rejected(counts):
    with pytest.raises(InvalidTally):
        Tally(counts, FINGERPRINT)


@pytest.mark.parametrize("counts", [[2**62], [2**61, 2**61], [2**62 - 1, 1, 0], [0, 0]])
def test_counts_up_to_2_to_the_62_are_exact(counts):
    tally = Tally(counts, FINGERPRINT)
    assert tally.counts.tolist() == counts
    assert tally.reports == sum(counts)


@pytest.mark.parametrize(
    ("a", "b"), [([2**62], [1]), ([2**62], [2**62]), ([2**61, 2**61], [1, 0]), ([2**62, 0], [0, 1])]
)
def test_overflowing_sums_are_rejected(a, b):
    with pytest.raises(InvalidTally, match=r"at most 2\^62"):
        Tally(a, FINGERPRINT) + Tally(b, FINGERPRINT)


def test_counts_cannot_be_changed():
    counts = np.array([1, 2, 3])
    tally = Tally(counts, FINGERPRINT)
    counts[0] = 99
    assert tally.counts.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        tally.counts[0] = 99
    with pytest.raises(AttributeError):
        tally.counts = counts
    assert not np.shares_memory(tally.counts, counts)


def test_repr_is_short():
    assert repr(_tally([0, 1])) == "Tally(2 reports, 5 outputs, fingerprint=aaaaaaaaaaaa…)"


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tally",
    [
        _tally([0, 2, 2]),
        _tally([]),
        Tally([2**62, 0], FINGERPRINT),
        _tally([0], outputs=1, fingerprint="café ☕"),
    ],
    ids=["some", "none", "many", "accents"],
)
@pytest.mark.parametrize("name", ["tally.npz", "tally", "a tally.with.dots"])
def test_saved_tally_loads_from_the_exact_path(tmp_path, tally, name):
    path = tmp_path / name
    tally.save(path)
    assert _names(tmp_path) == [name]
    assert Tally.load(path) == tally
    assert Tally.load(str(path)).counts.dtype == np.int64


def test_saving_again_replaces_the_file(tmp_path):
    A.save(tmp_path / "tally.npz")
    B.save(tmp_path / "tally.npz")
    assert Tally.load(tmp_path / "tally.npz") == B
    assert _names(tmp_path) == ["tally.npz"]


def _half_written(file, **arrays):
    file.write(b"half a tally")
    raise OSError(28, "No space left on device")


def _interrupted(file, **arrays):
    file.write(b"half a tally")
    raise KeyboardInterrupt


def _cannot_sync(handle):
    raise OSError(5, "Input/output error")


FAILURES = {
    "disk full": (np, "savez", _half_written, OSError),
    "interrupted": (np, "savez", _interrupted, KeyboardInterrupt),
    "not on disk": (os, "fsync", _cannot_sync, OSError),
}


@pytest.mark.parametrize("existing", [False, True], ids=["new file", "existing file"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_failed_save_keeps_the_old_file_only(tmp_path, monkeypatch, failure, existing):
    where, what, failing, error = failure
    path = tmp_path / "tally.npz"
    if existing:
        A.save(path)
    monkeypatch.setattr(where, what, failing)
    with pytest.raises(error):
        B.save(path)
    monkeypatch.undo()
    assert _names(tmp_path) == (["tally.npz"] if existing else [])
    assert not existing or Tally.load(path) == A


def test_missing_folder_raises(tmp_path):
    with pytest.raises(InvalidSetting):
        A.save(tmp_path / "nowhere" / "tally.npz")
    with pytest.raises(FileNotFoundError):
        Tally.load(tmp_path / "nowhere.npz")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "tally.npz"
    A.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("share", range(20))
def test_a_truncated_file_is_refused(tmp_path, saved, share):
    path = tmp_path / "tally.npz"
    path.write_bytes(saved[: len(saved) * share // 20])
    with pytest.raises(InvalidTally, match=r"tally\.npz"):
        Tally.load(path)


@pytest.mark.parametrize("flip", slow_except({0x01, 0xFF}, [0x01, 0x80, 0xFF]))
def test_damaged_bytes_are_rejected_or_harmless(tmp_path, saved, flip):
    """Some bytes of a zip file (its dates, for one) mean nothing; no damage may raise another
    error or lie.
    """
    path = tmp_path / "tally.npz"
    refused = 0
    for place in range(len(saved)):
        path.write_bytes(saved[:place] + bytes([saved[place] ^ flip]) + saved[place + 1 :])
        try:
            assert Tally.load(path) == A, place
        except InvalidTally:
            refused += 1
        except Exception as other:  # noqa: BLE001 - say which byte it was
            pytest.fail(f"byte {place} ^ {flip:#x}: {type(other).__name__}: {other}")
    assert refused > len(saved) // 2


FOREIGN = {
    "empty": b"",
    "text": b"label,count\npark,3\n",
    "random bytes": bytes(range(256)) * 4,
    "a zip's first bytes": b"PK\x03\x04" + bytes(100),
    "an array's first bytes": b"\x93NUMPY\x01\x00",
    "a pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01K\x02\x86\x94.",
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "tally.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidTally, match=r"tally\.npz"):
        Tally.load(path)


def test_single_array_is_not_a_tally(tmp_path):
    np.save(tmp_path / "counts.npy", np.array([1, 2, 3]))
    with pytest.raises(InvalidTally):
        Tally.load(tmp_path / "counts.npy")


def test_other_zip_files_are_not_tallies(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("format", "1")
    with pytest.raises(InvalidTally):
        Tally.load(tmp_path / "other.zip")


GOOD = {"format": np.array(1), "fingerprint": np.array(FINGERPRINT), "counts": np.array([1, 2, 3])}
CHANGED = {
    "no format": {"format": None},
    "no fingerprint": {"fingerprint": None},
    "no counts": {"counts": None},
    "a later format": {"format": np.array(2)},
    "a format that is no number": {"format": np.array("1")},
    "a float as format": {"format": np.array(1.0)},
    "several formats": {"format": np.array([1, 1])},
    "several fingerprints": {"fingerprint": np.array([FINGERPRINT, "b"])},
    "a number as fingerprint": {"fingerprint": np.array(7)},
    "negative counts": {"counts": np.array([1, -2, 3])},
    "floats as counts": {"counts": np.array([1.0, 2.0])},
    "a table of counts": {"counts": np.array([[1, 2], [3, 4]])},
    "counts that overflow": {"counts": np.array([2**62, 1])},
    "pickled counts": {"counts": np.array([1, None], dtype=object)},
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
def test_almost_valid_tally_files_are_rejected(tmp_path, change):
    arrays = {name: array for name, array in (GOOD | change).items() if array is not None}
    np.savez(tmp_path / "tally.npz", **arrays)
    with pytest.raises(InvalidTally):
        Tally.load(tmp_path / "tally.npz")


def test_unchanged_tally_file_is_accepted(tmp_path):
    np.savez(tmp_path / "tally.npz", **GOOD)
    assert Tally.load(tmp_path / "tally.npz") == Tally([1, 2, 3], FINGERPRINT)
