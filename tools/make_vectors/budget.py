"""Charges against a device's budget, for every kind of context.

The largest finite entry of a context is computed here pair by pair, as in the specification, and
not by the client's own code.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from pathlib import Path
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
from sfumato.foundation.inputs import NumberLike
from sfumato.mechanisms import Mechanism, mechanism_from_record
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, reject, survey_request

_SECRET = "5ec2e7" + "0" * 26
_OTHER_SECRET = "07e2" + "0" * 28
_LABELS = ["healthy", "hiv", "cancer", "depression"]
_TINY = Fraction(1, 10**12)
_DESIGNED_TABLES = json.loads(Path(__file__).with_name("designed_tables.json").read_text())


@dataclass(frozen=True)
class _Entry:
    """An entry in a ledger: a survey's fingerprint, the tag of a secret, and the data for its cost.

    Only format 1 has an ``account``.
    """

    survey: str
    context: Context
    times: int = 1
    secret: str = _SECRET
    account: str | None = None

    @property
    def cost(self) -> Fraction:
        """The largest finite entry of the context, multiplied by ``times``."""
        pairs = itertools.permutations(range(self.context.size), 2)
        entries = [self.context.exact_epsilon(x, x2) for x, x2 in pairs]
        return self.times * max(Fraction(entry) for entry in (0, *entries) if entry != inf)

    def to_record(self) -> dict[str, Any]:
        """Return the entry in format 2, or in format 1 if it has an account."""
        fields: dict[str, Any] = {"survey": self.survey, "secret": self.secret}
        if self.account is None:
            return {**fields, "cost": decimal_text(self.cost)}
        charge = {"times": self.times, "context": self.context.to_record()}
        return {"account": self.account, **fields, **charge}


def budgets() -> Iterator[Case]:
    """Yield charges for every kind of context, alone and after others."""
    for name, context in _contexts().items():
        survey = Survey(f"budget: {name}", context, _design(name, context))
        yield from _charges(survey, _Entry(survey.fingerprint, context))
    weekly = Uniform(_LABELS, "0.7")
    survey = Survey("budget: repeated", weekly, repeat={"every": "week", "distinct": 3})
    yield from _charges(survey, _Entry(survey.fingerprint, weekly, times=3))
    yield from _histories(Survey("budget: first", Uniform(_LABELS, 1)))


def _design(name: str, context: Context) -> Mechanism:
    """Return the designed mechanism. Those that a solver computed differ between processors."""
    if name in _DESIGNED_TABLES:
        return mechanism_from_record(_DESIGNED_TABLES[name], context)
    return design(context).mechanism


def _contexts() -> Mapping[str, Context]:
    """Return a context of every kind."""
    distances = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
    matrix: list[list[NumberLike]] = [
        [0, 1, "inf", 2],
        ["0.5", 0, 1, 1],
        [2, 2, 0, "inf"],
        [1, 1, 1, 0],
    ]
    return {
        "uniform": Uniform(_LABELS, 1),
        "in clear": Uniform(_LABELS, "inf"),
        "high-low": HighLow(_LABELS, ["hiv", "cancer"], "0.5"),
        "blocks": Blocks([0, 0, 1, 1], ["1/3", 2], domain=_LABELS),
        "blocks, across": Blocks([0, 0, 1, 1], "0.5", across=1, domain=_LABELS),
        "tiers": Tiers([0, 1, 1, 2], ["inf", 1, 2], domain=_LABELS),
        "metric": Metric(distances, "0.3", domain=_LABELS),
        "matrix": PrivacyMatrix(matrix, domain=_LABELS),
        "union": ContextUnion([Uniform(2, 1), HighLow(2, [0], 2)], [0, 1, 1, 0], domain=_LABELS),
    }


def _charges(survey: Survey, entry: _Entry) -> Iterator[Case]:
    """Yield charges alone and after other surveys, with exactly the cost as budget or a bit less.

    ``entry`` is the survey's entry in the ledger.
    """
    yield load(survey)
    three = Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 1, domain=_LABELS[:3])
    ledgers = {
        "nothing": [],
        "uniform": [_Entry("aa" * 32, Uniform(_LABELS, "0.25"), times=2)],
        "another pair": [
            _Entry("bb" * 32, HighLow(_LABELS, ["healthy"], 1)),
            _Entry("cc" * 32, Uniform(_LABELS, "inf")),
        ],
        "another domain": [_Entry("dd" * 32, three)],
    }
    for name, ledger in ledgers.items():
        about = f"{survey.name} after {name}"
        cost = _total_cost([*ledger, entry])
        if cost:
            yield _charge(f"{about}, just enough", entry, ledger, cost)
            yield _charge(f"{about}, a little less", entry, ledger, cost - _TINY)
        else:
            yield _charge(f"{about}: costs nothing", entry, ledger, 1)
    if survey.context.has_unprotected_pairs:
        about = f"{survey.name}: some pair is open, and the caller did not allow it"
        request = _charge(about, entry, [], None).request
        yield reject(about, {**request, "allow_clear": False}, "BudgetExceeded")


def _histories(survey: Survey) -> Iterator[Case]:
    """Yield charges after earlier charges, with different labels, and with format 1 ledgers."""
    yield load(survey)
    entry = _Entry(survey.fingerprint, survey.context)
    yield _charge("charged before: costs nothing", entry, [entry], 1)
    expensive = _Entry("aa" * 32, Uniform(_LABELS, 40))
    yield _charge("charged before: never refused", entry, [entry, expensive], 1)
    forgotten = [replace(entry, secret=_OTHER_SECRET)]
    yield _charge("charged under another secret: costs again", entry, forgotten, Fraction("1.9"))
    yield _charge("the same, with room", entry, forgotten, 2)
    label_lists = {
        "permuted": _LABELS[::-1],
        "one more": [*_LABELS, "other"],
        "one fewer": _LABELS[:3],
    }
    for name, labels in label_lists.items():
        ledger = [_Entry(f"{i}e" * 32, Uniform(labels, 1)) for i in range(4)]
        yield _charge(f"labels, {name}: no new account", entry, ledger, 4)
        yield _charge(f"labels, {name}: no budget", entry, ledger, None)
    accounts = [
        replace(entry, account=f"domain {'0' * 64}"),
        replace(entry, account="subject health"),
        _Entry("aa" * 32, Uniform(["a", "b"], 1), account=f"domain {'1' * 64}"),
        _Entry("bb" * 32, Uniform(_LABELS, "1.5"), account="subject health"),
    ]
    yield _charge("format 1: every account counts, each survey once", entry, accounts, 4)
    yield _charge("format 1: nothing is refilled", entry, accounts[2:], 3)
    for name, context in _contexts().items():
        ledger = [_Entry("cc" * 32, context, times=2, account="subject health")]
        cost = _total_cost([*ledger, entry])
        yield _charge(f"format 1, {name}", entry, ledger, cost)
        yield _charge(f"format 1, {name}, less", entry, ledger, cost - _TINY)
    # The labels of four questions form one domain, and each survey protects a different question.
    ledger = [_Entry(f"{i}f" * 32, _one_question(i)) for i in range(4)]
    yield _charge("surveys about other pairs of one domain", entry, ledger, 4)


def _one_question(index: int) -> Context:
    """Return a promise over the labels of four questions that is weak for only one of them."""
    question = (2 * index, 2 * index + 1)
    rows: list[list[str]] = [["0"] * 8 for _ in range(8)]
    for x, x2 in itertools.permutations(range(8), 2):
        rows[x][x2] = ("0", "1.95", "3.9")[(x in question) + (x2 in question)]
    return PrivacyMatrix(rows)


def _charge(
    about: str, entry: _Entry, ledger: Sequence[_Entry], budget: Fraction | int | None
) -> Case:
    """Build a case that charges ``entry`` to ``ledger``. A repeated charge is never rejected."""
    request = survey_request(
        "charge",
        entry.survey,
        secret=_SECRET,
        entries=[earlier.to_record() for earlier in ledger],
        budget=None if budget is None else decimal_text(budget),
        allow_clear=entry.context.has_unprotected_pairs,
    )
    earlier_costs = _costs(ledger)
    costs = {**earlier_costs, **_costs([entry])}
    is_new = len(costs) > len(earlier_costs)
    total = sum(costs.values())
    if is_new and budget is not None and total > budget:
        return reject(about, request, "BudgetExceeded")
    return accept(about, request, spent=str(total), entries=len(costs))


def _total_cost(entries: Sequence[_Entry]) -> Fraction:
    """Return the total cost of all surveys, regardless of their labels."""
    return sum(_costs(entries).values(), start=Fraction(0))


def _costs(entries: Sequence[_Entry]) -> dict[tuple[str, str], Fraction]:
    """Return the cost for each pair of survey and secret. Duplicates count once."""
    return {(entry.survey, entry.secret): entry.cost for entry in entries}
