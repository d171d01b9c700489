"""What a device's ledger allows: charges against a budget, for every kind of context.

The largest finite entry of a context is searched pair by pair here, as the specification says it, and not by the
client's own code.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from sfumato.conformance import Case
from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
)
from sfumato.designer import design
from sfumato.foundation.canonical import decimal_text
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, refuse

__all__ = ["budgets"]

_SECRET = "5ec2e7" + "0" * 26
_OTHER_SECRET = "07e2" + "0" * 28
_L = ["healthy", "hiv", "cancer", "depression"]
_TINY = Fraction(1, 10**12)


@dataclass(frozen=True)
class _Entry:
    """An entry of a ledger: a survey's fingerprint, the tag of a secret, and its cost."""

    survey: str
    times: int
    context: Context
    secret: str = _SECRET

    @property
    def cost(self) -> Fraction:
        """``times`` the largest finite entry, pair by pair."""
        pairs = itertools.permutations(range(self.context.size), 2)
        entries = [self.context.exact_epsilon(x, x2) for x, x2 in pairs]
        return self.times * max(
            (Fraction(entry) for entry in entries if entry != inf), default=Fraction(0)
        )

    def record(self) -> dict[str, Any]:
        """The entry in format 2."""
        return {"survey": self.survey, "secret": self.secret, "cost": decimal_text(self.cost)}

    def first_record(self, account: str) -> dict[str, Any]:
        """The entry in format 1."""
        named = {"account": account, "survey": self.survey, "secret": self.secret}
        return {**named, "times": self.times, "context": self.context.record()}


def budgets() -> Iterator[Case]:
    """Charges of every kind of context, alone and after others."""
    for survey in _surveys():
        yield load(survey)
        yield from _charges(survey)
    first = Survey("budget: first", Uniform(_L, 1))
    yield load(first)
    yield from _histories(first)


def _surveys() -> Iterator[Survey]:
    """A survey of every kind."""
    for name, context in _kinds().items():
        yield Survey(f"budget: {name}", context, design(context).mechanism)
    yield Survey("budget: repeated", Uniform(_L, "0.7"), repeat={"every": "week", "distinct": 3})


def _kinds() -> Mapping[str, Context]:
    """A context of every kind."""
    return {
        "uniform": Uniform(_L, 1),
        "in clear": Uniform(_L, "inf"),
        "high-low": HighLow(_L, ["hiv", "cancer"], "0.5"),
        "blocks": Blocks([0, 0, 1, 1], ["1/3", 2], domain=_L),
        "blocks, across": Blocks([0, 0, 1, 1], "0.5", across=1, domain=_L),
        "tiers": Tiers([0, 1, 1, 2], ["inf", 1, 2], domain=_L),
        "metric": Metric(
            [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]], "0.3", domain=_L
        ),
        "matrix": PrivacyMatrix(
            [
                ["0", "1", "inf", "2"],
                ["0.5", "0", "1", "1"],
                ["2", "2", "0", "inf"],
                ["1", "1", "1", "0"],
            ],
            domain=_L,
        ),
        "union": ContextUnion([Uniform(2, 1), HighLow(2, [0], 2)], [0, 1, 1, 0], domain=_L),
    }


def _one_question(number: int) -> Context:
    """Eight labels for four questions, and a promise that is weak for one of the questions alone."""
    own = (2 * number, 2 * number + 1)
    rows = []
    for x in range(8):
        inside = [
            "0" if x == x2 else "3.9" if x in own and x2 in own else "1.95" for x2 in range(8)
        ]
        rows.append(inside if x in own else ["1.95" if x2 in own else "0" for x2 in range(8)])
    return PrivacyMatrix(rows)


def _charges(survey: Survey) -> Iterator[Case]:
    """One survey, alone and after others of the same domain and of another, at its exact price and just below."""
    repeat: Any = survey.description.about["repeat"]
    times = 1 if repeat == "once" else repeat["distinct"]
    own = _Entry(survey.fingerprint, times, survey.context)
    before = {
        "nothing": [],
        "uniform": [_Entry("aa" * 32, 2, Uniform(_L, "0.25"))],
        "another pair": [
            _Entry("bb" * 32, 1, HighLow(_L, ["healthy"], 1)),
            _Entry("cc" * 32, 1, Uniform(_L, "inf")),
        ],
        "another domain": [
            _Entry("dd" * 32, 1, Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 1, domain=_L[:3]))
        ],
    }
    for name, entries_before in before.items():
        spent = _total_cost([*entries_before, own])
        listed = [entry.record() for entry in entries_before]
        if not spent:
            yield _charge(
                f"{survey.name} after {name}: costs nothing", survey, listed, own, "1", spent
            )
            continue
        enough = decimal_text(spent)
        yield _charge(
            f"{survey.name} after {name}, just enough", survey, listed, own, enough, spent
        )
        less = decimal_text(spent - _TINY)
        yield _charge(
            f"{survey.name} after {name}, a little less", survey, listed, own, less, spent
        )
    if survey.context.leaves_open:
        request = _request(survey, [], None, allow_clear=False)
        yield refuse(
            f"{survey.name}: some pair is open, and the caller did not allow it",
            request,
            "BudgetExceeded",
        )


def _charge(
    about: str,
    survey: Survey,
    entries_before: Sequence[Mapping[str, Any]],
    own: _Entry,
    budget: str | None,
    spent: Fraction,
) -> Case:
    request = _request(survey, entries_before, budget, allow_clear=survey.context.leaves_open)
    if budget is not None and spent > Fraction(budget):
        return refuse(about, request, "BudgetExceeded")
    names = {(entry["survey"], entry["secret"]) for entry in entries_before} | {
        (own.survey, own.secret)
    }
    return accept(about, request, {"spent": str(spent), "entries": len(names)})


def _request(
    survey: Survey,
    entries_before: Sequence[Mapping[str, Any]],
    budget: str | None,
    *,
    allow_clear: bool,
) -> dict[str, Any]:
    return {
        "op": "charge",
        "survey": survey.fingerprint,
        "secret": _SECRET,
        "entries": list(entries_before),
        "budget": budget,
        "allow_clear": allow_clear,
    }


# --- ledgers with a past ----------------------------------------------------------------------------------------------


def _histories(survey: Survey) -> Iterator[Case]:
    """A survey that was charged before; other labels; ledgers of format 1."""
    own = _Entry(survey.fingerprint, 1, survey.context)
    loud = _Entry("aa" * 32, 1, Uniform(_L, 40))
    yield _charge("charged before: costs nothing", survey, [own.record()], own, "1", Fraction(1))
    request = _request(survey, [own.record(), loud.record()], "1", allow_clear=False)
    yield accept("charged before: never refused", request, {"spent": "41", "entries": 2})
    forgotten = _Entry(own.survey, 1, own.context, _OTHER_SECRET)
    yield _charge(
        "charged under another secret: costs again",
        survey,
        [forgotten.record()],
        own,
        "1.9",
        Fraction(2),
    )
    yield _charge("the same, with room", survey, [forgotten.record()], own, "2", Fraction(2))
    for about, labels in {
        "permuted": _L[::-1],
        "one more": [*_L, "other"],
        "one fewer": _L[:3],
    }.items():
        entries_before = [_Entry(f"{i}e" * 32, 1, Uniform(labels, 1)).record() for i in range(4)]
        yield _charge(
            f"labels, {about}: no new account", survey, entries_before, own, "4", Fraction(5)
        )
        yield _charge(f"labels, {about}: no budget", survey, entries_before, own, None, Fraction(5))
    accounts = [
        own.first_record(f"domain {'0' * 64}"),
        own.first_record("subject health"),
        _Entry("aa" * 32, 1, Uniform(["a", "b"], 1)).first_record(f"domain {'1' * 64}"),
        _Entry("bb" * 32, 1, Uniform(_L, "1.5")).first_record("subject health"),
    ]
    yield _charge(
        "format 1: every account counts, each survey once",
        survey,
        accounts,
        own,
        "4",
        Fraction("3.5"),
    )
    yield _charge("format 1: nothing is refilled", survey, accounts[2:], own, "3", Fraction("3.5"))
    for name, kind in _kinds().items():
        earlier = _Entry("cc" * 32, 2, kind)
        spent = _total_cost([earlier, own])
        listed = [earlier.first_record("subject health")]
        yield _charge(f"format 1, {name}", survey, listed, own, decimal_text(spent), spent)
        yield _charge(
            f"format 1, {name}, less", survey, listed, own, decimal_text(spent - _TINY), spent
        )
    # One list of labels with many questions in it, of which each survey protects another: they are different facts.
    listed = [_Entry(f"{i}f" * 32, 1, _one_question(i)).record() for i in range(4)]
    yield _charge(
        "surveys about other pairs of one domain", survey, listed, own, "4", Fraction("16.6")
    )


def _total_cost(entries: Sequence[_Entry]) -> Fraction:
    """All surveys add up, whatever their labels are."""
    return sum((entry.cost for entry in entries), start=Fraction(0))
