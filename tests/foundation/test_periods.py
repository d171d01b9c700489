"""Periods: every day is in one period, each has one name, and only recent ones are accepted."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.foundation.periods import PERIODS, period_name, period_start, recent_period

LAWS = settings(max_examples=200, deadline=None, derandomize=True, database=None)
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday
DAY = timedelta(days=1)

every = st.sampled_from(PERIODS)
days = st.dates(date(1, 1, 8), date(9999, 12, 20))


def noon(day):
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


NAMES = {
    ("day", datetime(2026, 11, 18, tzinfo=UTC)): "2026-11-18",
    ("week", datetime(2026, 11, 18, tzinfo=UTC)): "2026-W47",
    ("week", datetime(2026, 11, 15, 23, 59, 59, tzinfo=UTC)): "2026-W46",
    ("week", datetime(2027, 1, 3, tzinfo=UTC)): "2026-W53",
    ("week", datetime(2027, 1, 4, tzinfo=UTC)): "2027-W01",
    ("week", datetime(2024, 12, 30, tzinfo=UTC)): "2025-W01",
    ("month", datetime(2024, 2, 29, tzinfo=UTC)): "2024-02",
    ("year", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)): "2026",
    # The period is that of the moment in UTC, not of the local date.
    ("day", datetime(2026, 11, 18, 1, tzinfo=timezone(timedelta(hours=2)))): "2026-11-17",
    ("year", datetime(2026, 12, 31, 20, tzinfo=timezone(timedelta(hours=-5)))): "2027",
}


@pytest.mark.parametrize(("period", "name"), NAMES.items())
def test_names_are_those_of_iso_8601(period, name):
    assert period_name(*period) == name


@LAWS
@given(every, days)
@example("week", date(2020, 12, 31))
@example("month", date(2024, 2, 29))
def test_a_period_starts_with_the_first_day_of_its_name(length, day):
    name = period_name(length, noon(day))
    start = period_start(length, name)
    assert start <= day
    assert period_name(length, noon(start)) == name
    assert period_name(length, noon(start - DAY)) < name
    assert name.isascii()


@LAWS
@given(every, days, days)
def test_later_periods_sort_later(length, one, other):
    names = [period_name(length, noon(day)) for day in sorted((one, other))]
    assert names == sorted(names)


STARTS = {
    ("day", "2024-02-29"): date(2024, 2, 29),
    ("week", "2026-W01"): date(2025, 12, 29),
    ("week", "2020-W53"): date(2020, 12, 28),
    ("month", "2026-12"): date(2026, 12, 1),
    ("year", "0001"): date(1, 1, 1),
    ("year", "9999"): date(9999, 1, 1),
}


@pytest.mark.parametrize(("period", "start"), STARTS.items())
def test_starts(period, start):
    assert period_start(*period) == start


WRONG_NAMES = {
    "day": [
        "", "2026-11-1", "2026-11-018", "2026-02-29", "2026-13-01", "2026-00-01", "2026-11-00",
        "20261118", "2026-W47-3", "2026/11/18", "2026-11-18 ", " 2026-11-18", "2026-11-18\n",
        "0000-01-01", "-026-11-18", "+026-11-18", "٢٠٢٦-11-18", "２026-11-18", "2026−11−18",
        "2026-W47", "2026-11", "2026",
    ],
    "week": [
        "", "2026-W00", "2026-W54", "2025-W53", "2026-W1", "2026W046", "2026W46", "2026-w46",
        "2026-W+1", "2026-W 1", "2026-W1 ", "+026-W46", "-001-W01", "0000-W01", "2_26-W46",
        "9999-W53", "2026-W٤٦", "2026-46W", "2026_W46", "2026-W4\n", "2026-11-18", "2026-11",
        "2026",
    ],
    "month": [
        "", "2026-00", "2026-13", "2026-1", "2026/11", "202611", "0000-01", "2026-W4", "2026-1 ",
        "+026-11", "2026-W47", "2026",
    ],
    "year": ["", "0000", "26", "+026", "-001", "2_26", " 026", "026\n", "٢٠٢٦", "202６", "2026-11"],
}  # fmt: skip


@pytest.mark.parametrize("length", PERIODS)
def test_other_names_are_rejected(length):
    for name in WRONG_NAMES[length]:
        with pytest.raises(ValueError, match=r"."):
            period_start(length, name)
        assert not recent_period(length, name, NOW), name


# The oldest and the newest accepted period, and their neighbours.
LIMITS = {
    "day": ("2026-11-09", "2026-11-10", "2026-11-19", "2026-11-20"),
    "week": ("2026-W39", "2026-W40", "2026-W47", "2026-W48"),
    "month": ("2026-03", "2026-04", "2026-11", "2026-12"),
    "year": ("2018", "2019", "2026", "2027"),
}


@pytest.mark.parametrize("length", PERIODS)
def test_periods_are_recent_up_to_8_ago(length):
    names = LIMITS[length]
    accepted = [recent_period(length, name, NOW) for name in names]
    assert accepted == [False, True, True, False]


def test_a_clock_may_be_a_day_fast():
    sunday = datetime(2026, 11, 22, tzinfo=UTC)
    assert not recent_period("week", "2026-W48", sunday - timedelta(seconds=1))
    assert recent_period("week", "2026-W48", sunday)
    assert recent_period("year", "2027", datetime(2026, 12, 31, tzinfo=UTC))
    assert not recent_period("year", "2027", datetime(2026, 12, 30, 23, 59, tzinfo=UTC))


@LAWS
@given(every, st.integers(0, 7), st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)))
def test_the_last_eight_periods_are_always_recent(length, back, moment):
    now = moment.replace(tzinfo=UTC)
    day = now.date()
    for _ in range(back):
        day = period_start(length, period_name(length, noon(day))) - DAY
    assert recent_period(length, period_name(length, noon(day)), now)


@settings(LAWS, max_examples=40)
@given(every, st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)))
def test_few_periods_are_recent(length, moment):
    """A sender who invents periods can make only about ten cells."""
    now = moment.replace(tzinfo=UTC)
    day = now.date() + timedelta(days=800 if length in ("day", "week") else 4000)
    accepted = set()
    for _ in range(1100):
        name = period_name(length, noon(day))
        if recent_period(length, name, now):
            accepted.add(name)
        day = period_start(length, name) - DAY
        if day < date(1800, 1, 1):
            break
    assert 8 <= len(accepted) <= 10
