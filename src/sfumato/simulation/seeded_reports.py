"""Reports from a seed: reproducible, and therefore NOT PRIVATE."""

from typing import Any, overload

import numpy as np

from sfumato.domains import Label
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Reports
from sfumato.foundation.correct_call import shows_call
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.survey import ReportBatch, Survey

__all__ = ["reports"]


@overload
def reports(
    randomizer: Survey,
    answers: Any,  # noqa: ANN401
    *,
    seed: int,
    missing: Label | None = None,
) -> ReportBatch: ...
@overload
def reports(randomizer: Mechanism, answers: Any, *, seed: int) -> Reports: ...  # noqa: ANN401
@shows_call("sf.simulation.reports(survey, answers, seed=1)")
def reports(
    randomizer: Survey | Mechanism,
    answers: Any,
    *,
    seed: int,
    missing: Label | None = None,
) -> ReportBatch | Reports:
    """Draw one report for each answer from a seed. NOT PRIVATE: the seed reveals all answers.

    Use this for experiments, tests and documentation, with data that is not secret. The same seed
    gives the same reports. A survey accepts answers and ``missing`` as its ``privatize`` method
    does. A mechanism accepts symbols, that is, integers; text is a label.

    >>> import sfumato as sf
    >>> survey = sf.Survey("lunch", sf.Uniform(["park", "clinic", "bar"], 1))
    >>> batch = sf.simulation.reports(survey, ["park", "bar"], seed=1)
    >>> batch == sf.simulation.reports(survey, ["park", "bar"], seed=1)
    True
    >>> sf.simulation.reports(survey.mechanism, ["park", "bar"], seed=1).tolist()
    [2, 0]
    """
    if isinstance(randomizer, Survey):
        return randomizer.privatize(answers, SeededWords(seed), missing=missing)
    if not isinstance(randomizer, Mechanism):
        raise InvalidArgument(
            f"reports needs a survey or a mechanism; got {type(randomizer).__name__}. Call "
            "sf.simulation.reports(survey, answers, seed=1)."
        )
    if missing is not None:
        raise InvalidArgument("missing needs a survey: a mechanism accepts symbols only.")
    symbols = answers
    if np.asarray(answers).dtype.kind in "UOT":
        symbols = randomizer.context.domain.symbols(answers)
    return randomizer.privatize(symbols, SeededWords(seed))
