"""Tallies that one store exports and another imports: each counts every report at most once."""

from datetime import date

import numpy as np
import pytest

from sfumato.aggregator.store import Outcome
from sfumato.batches import TallyExport, parse_tally, tally_to_json
from sfumato.errors import InvalidTally, StoreFull
from sfumato.tally import Tally
from support.unrandomized import batch_id, batch_of, counts_of, unrandomized_survey

COUNTED = Outcome.COUNTED
REPLAYED = Outcome.REPLAYED
CONFLICT = Outcome.CONFLICT
OVERLAP = Outcome.OVERLAP


def export(store, survey, number):
    """A tally as another store gets it: handed out, written, read."""
    sent = store.export(survey.fingerprint, batch_id(number), survey.mechanism.outputs)
    return None if sent is None else parse_tally(tally_to_json(sent))


def reports_in(sent):
    return {
        int(report): int(sent.tally.counts[report]) for report in sent.tally.counts.nonzero()[0]
    }


def sent_of(survey, number, counts, covers=()):
    """A tally that somebody made: counts by report."""
    full = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    for report, count in counts.items():
        full[report] = count
    return TallyExport.from_tally(
        batch_id(number), Tally(full, survey.fingerprint), tuple(map(batch_id, covers))
    )


def test_exports_are_disjoint_and_add_up(store, survey):
    assert export(store, survey, 100) is None  # there is nothing to name
    store.commit([batch_of(survey, 1, 5, 6)])
    first = export(store, survey, 101)
    assert export(store, survey, 102) is None
    store.commit([batch_of(survey, 1, 5, 6), batch_of(survey, 2, 6, 9_000)])
    second = export(store, survey, 102)
    store.commit([batch_of(survey, 3, 7)])
    assert (reports_in(first), reports_in(second)) == ({5: 1, 6: 1}, {6: 1, 9_000: 1})
    assert counts_of(store, survey) == {5: 1, 6: 2, 7: 1, 9_000: 1}
    assert store.list_exports(survey.fingerprint) == [(batch_id(101), 2), (batch_id(102), 2)]
    assert store.read_status(survey.fingerprint).reports == 5


def test_exports_are_repeatable(store, survey):
    store.commit([batch_of(survey, 1, 5)])
    first = export(store, survey, 101)
    store.commit([batch_of(survey, 2, 6)])
    assert tally_to_json(export(store, survey, 101)) == tally_to_json(first)
    assert reports_in(export(store, survey, 102)) == {6: 1}


def test_closed_surveys_can_be_exported_but_accept_no_tally(store, new_store, survey):
    store.commit([batch_of(survey, 1, 5)])
    store.set_closed(survey.fingerprint)
    sent = export(store, survey, 101)
    other = new_store()
    other.set_closed(survey.fingerprint)
    assert other.import_tally(sent) is Outcome.CLOSED
    other.set_open(survey.fingerprint)
    assert other.import_tally(sent) is COUNTED


def test_a_tally_counts_once_in_each_store(store, new_store, survey):
    store.commit([batch_of(survey, 1, 5, 5), batch_of(survey, 2, 9_999)])
    sent = export(store, survey, 101)
    other = new_store()
    other.commit([batch_of(survey, 7, 5)])
    assert [other.import_tally(sent) for _ in range(3)] == [COUNTED, REPLAYED, REPLAYED]
    assert counts_of(other, survey) == {5: 3, 9_999: 1}
    assert other.read_status(survey.fingerprint).reports == 4
    assert other.read_status(survey.fingerprint).by_hour == (
        ("2026-11-15T17", 1),
    )  # when it was brought says nothing
    today = other.tally_between(survey.fingerprint, survey.mechanism.outputs, date.min, date.max)
    assert today.reports == 1
    assert store.import_tally(sent) is OVERLAP  # where it came from
    assert counts_of(store, survey) == {5: 2, 9_999: 1}


def test_other_content_under_a_known_identifier_is_a_conflict(store, survey):
    assert store.import_tally(sent_of(survey, 101, {5: 1})) is COUNTED
    assert store.import_tally(sent_of(survey, 101, {5: 2})) is CONFLICT
    assert store.import_tally(sent_of(survey, 101, {5: 1}, covers=[7])) is CONFLICT
    assert store.import_tally(sent_of(survey, 101, {5: 1})) is REPLAYED
    assert counts_of(store, survey) == {5: 1}


def test_a_tally_of_an_unknown_survey_is_not_counted(store):
    assert (
        store.import_tally(sent_of(unrandomized_survey("elsewhere", 10), 101, {5: 1}))
        is Outcome.UNKNOWN
    )


def test_inner_and_outer_tallies_exclude_each_other(new_store, survey):
    leaf = new_store()
    middle = new_store()
    upper = new_store()
    other = new_store()
    leaf.commit([batch_of(survey, 1, 5)])
    small = export(leaf, survey, 101)
    assert middle.import_tally(small) is COUNTED
    middle.commit([batch_of(survey, 2, 6)])
    larger = export(middle, survey, 102)
    assert (larger.covers, reports_in(larger)) == ((batch_id(101),), {5: 1, 6: 1})
    assert upper.import_tally(larger) is COUNTED
    largest = export(upper, survey, 103)
    assert set(largest.covers) == {batch_id(101), batch_id(102)}

    assert [upper.import_tally(small), leaf.import_tally(larger), leaf.import_tally(largest)] == [
        OVERLAP
    ] * 3
    assert other.import_tally(largest) is COUNTED
    assert [other.import_tally(small), other.import_tally(larger)] == [OVERLAP] * 2
    assert [middle.import_tally(largest), middle.import_tally(larger)] == [OVERLAP] * 2
    assert counts_of(other, survey) == counts_of(middle, survey) == {5: 1, 6: 1}


def test_two_tallies_that_share_an_inner_one_overlap(new_store, survey):
    leaf = new_store()
    left = new_store()
    right = new_store()
    top = new_store()
    leaf.commit([batch_of(survey, 1, 5)])
    shared = export(leaf, survey, 101)
    for number, store in enumerate((left, right)):
        store.import_tally(shared)
        store.commit([batch_of(survey, 2 + number, 6 + number)])
    assert top.import_tally(export(left, survey, 102)) is COUNTED
    assert top.import_tally(export(right, survey, 103)) is OVERLAP
    assert counts_of(top, survey) == {5: 1, 6: 1}


def test_exports_cover_only_their_own_imports(store, survey):
    store.import_tally(sent_of(survey, 50, {5: 1}, covers=[40, 41]))
    first = export(store, survey, 101)
    store.commit([batch_of(survey, 1, 6)])
    second = export(store, survey, 102)
    assert set(first.covers) == {batch_id(number) for number in (40, 41, 50)}
    assert second.covers == ()


def test_empty_tallies_and_their_covers_are_remembered(store, survey):
    empty = sent_of(survey, 50, {}, covers=[40])
    assert [store.import_tally(empty), store.import_tally(empty)] == [COUNTED, REPLAYED]
    assert store.import_tally(sent_of(survey, 40, {5: 1})) is OVERLAP
    assert counts_of(store, survey) == {}
    assert export(store, survey, 101) is None


@pytest.mark.parametrize("more", [1, 2**40, 2**62])
def test_totals_are_at_most_2_to_the_62(store, survey, more):
    assert store.import_tally(sent_of(survey, 101, {5: 2**62})) is COUNTED
    for report in (5, 6):
        with pytest.raises(InvalidTally, match="2\\^62"):
            store.import_tally(sent_of(survey, 102, {report: more}))
    with pytest.raises(StoreFull, match="2\\^62"):
        store.commit([batch_of(survey, 1, 6)])
    assert counts_of(store, survey) == {5: 2**62}
    assert store.read_status(survey.fingerprint).reports == 2**62
    assert store.import_tally(sent_of(survey, 102, {})) is COUNTED  # what was refused left no trace


def test_the_largest_total_is_counted(store, survey):
    assert store.import_tally(sent_of(survey, 101, {5: 2**62 - 1})) is COUNTED
    assert store.commit([batch_of(survey, 1, 5)]) == [COUNTED]
    assert counts_of(store, survey) == {5: 2**62}
    assert reports_in(export(store, survey, 102)) == {5: 2**62}


def test_tallies_of_two_surveys_are_independent(store, survey):
    other = unrandomized_survey("other", 10)
    store.register(other)
    assert store.import_tally(sent_of(survey, 101, {5: 1})) is COUNTED
    assert store.import_tally(sent_of(other, 101, {6: 1})) is COUNTED
    assert (counts_of(store, survey), counts_of(store, other)) == ({5: 1}, {6: 1})
    assert reports_in(export(store, other, 102)) == {6: 1}
    assert reports_in(export(store, survey, 102)) == {5: 1}
