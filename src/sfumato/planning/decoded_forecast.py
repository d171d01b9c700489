"""Predict the error of the decoded estimate, for which there is no formula.

Draw tallies from ``Qᵀ p``, decode them, and compare with p. The error that a plan states must hold
with the target's confidence for the next tally. Decoders adapt to the reports, so errors may be
very skewed, or come in two clusters, and no family of distributions describes them. The stated
error is therefore one of the drawn errors: the smallest t for which

    F(t) − 1.8 SE(F(t)) ≥ confidence

where F(t) estimates the probability of an error of at most t. With 600 draws and a confidence of
95%, the probability of staying within the stated error is 96% on average, with a standard deviation
of about 0.7% over draws. So it is hardly ever below 94%.

*Strata.* Decoding takes most of the time, and the unbiased estimate almost none. Where that is far
from p, so is usually the decoded estimate. So draw three times as many tallies as will be decoded,
and rank them by the error of the unbiased estimate. The first third is the *far* stratum, the rest
is the *near* one. Half of the decoded tallies come from each. Compared with decoding tallies at
random, this reduces the variance of F(t) by about a third, for every decoder.

*Few draws.* If even the largest drawn error is not enough for the above, as in large domains and
where the decoder averages models, the stated error is at least the bound for the next draw from a
normal distribution (Student, 1908). Then it holds more often than it has to.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sfumato.estimation import draw_tally
from sfumato.estimation.decoders import Auto, get_decoder
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import Mechanism
from sfumato.planning.predict import MAX_PEOPLE, Figures

__all__ = ["COMPARISON", "SEARCH", "THOROUGH", "DecodedForecast", "Effort", "ErrorSample"]

_FAR_SHARE = 1 / 3
_STRATUM_SHARES = np.array([_FAR_SHARE, 1 - _FAR_SHARE])
_MAX_DRAWS = 600
_MAX_DRAWS_OF_AVERAGES = 100
"""How many tallies are decoded where ``auto`` averages models. One takes about 0.15 s, a hundred
times as long as with other decoders."""

_MAX_FULLY_DRAWN_SIZE = 320
"""The number of symbols up to which that many tallies are decoded.

Above, the number of draws falls with the cube of the number of symbols. The time for one draw
grows, and total errors over more symbols vary less from draw to draw.
"""

_SEARCH_TOLERANCE = 0.03  # of the logarithm of the mean error
_GOAL_TOLERANCE = 0.02  # a goal is met if the error is at most this fraction below it
_MAX_SECANT_STEPS = 12
_MIN_STEP = 1.01  # the least factor by which a number of people that is too small grows
_TINY = 1e-300  # avoids the logarithm of 0


@dataclass(frozen=True)
class Effort:
    """How many tallies to decode for one prediction, and how careful the stated error is.

    ``fraction``: the number of draws, as a fraction of those for the plan's own mechanism.
    ``min_draws``: the number of draws in the largest domains; even.
    ``margin``: how many standard errors F(t) must lie above the confidence. With 0, the probability
    of staying within the stated error is right on average over draws, but varies more.
    ``search_steps``: how often to correct the number of people for a goal.
    """

    fraction: float
    min_draws: int
    margin: float
    search_steps: int

    def draw_count(self, size: int, max_draws: int) -> int:
        """Return the number of draws for a domain with ``size`` symbols; it is even.

        ``max_draws``: the number of draws in small domains, for the plan's own mechanism.
        """
        share = min((_MAX_FULLY_DRAWN_SIZE / size) ** 3, 1.0)
        pairs = round(max_draws * share * self.fraction / 2)
        return max(2 * pairs, self.min_draws)


THOROUGH = Effort(1, 16, margin=1.8, search_steps=4)
"""For the mechanism that a plan is for."""

COMPARISON = Effort(1 / 6, 8, margin=0.0, search_steps=1)
"""For the mechanisms that it is compared with."""

SEARCH = Effort(1 / 20, 4, margin=0.0, search_steps=0)
"""For the search for a number of people, and for the curves of a chart."""


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """The errors of decoded tallies, in the two strata."""

    far: Floats
    near: Floats

    def mean(self, power: int = 1) -> float:
        """Estimate the mean of a power of the error."""
        means = np.array([np.mean(self.far**power), np.mean(self.near**power)])
        return float(_STRATUM_SHARES @ means)

    def bound(self, confidence: float, margin: float) -> float:
        """Return an error that the next tally exceeds with probability ``1 − confidence``."""
        errors = np.sort(np.concatenate([self.far, self.near]))
        probabilities, standard_errors = self._distribution(errors)
        # The next tally is one more draw: of m draws, the r-th has a fraction r/(m + 1) below it.
        probabilities = probabilities * errors.size / (errors.size + 1)
        enough = np.flatnonzero(probabilities - margin * standard_errors >= confidence)
        if enough.size and enough[0] < errors.size - 1:
            return float(errors[enough[0]])
        return max(float(errors[-1]), self._normal_bound(confidence))

    def _distribution(self, errors: Floats) -> tuple[Floats, Floats]:
        """Estimate the probability of at most each of these errors, with its standard error."""
        probabilities = np.zeros(errors.size)
        variances = np.zeros(errors.size)
        for share, stratum in zip(_STRATUM_SHARES, (self.far, self.near), strict=True):
            counts = np.searchsorted(np.sort(stratum), errors, side="right")
            probabilities += share * counts / stratum.size
            # Laplace's estimate: a fraction of 1 among the draws leaves some doubt, too.
            fractions = (counts + 1) / (stratum.size + 2)
            variances += share**2 * fractions * (1 - fractions) / stratum.size
        return probabilities, np.sqrt(variances)

    def _normal_bound(self, confidence: float) -> float:
        """Return the prediction bound for one more draw from a normal distribution."""
        from scipy.special import stdtrit

        m = self.far.size + self.near.size
        mean = self.mean()
        variance = max(self.mean(power=2) - mean**2, 0.0) * m / (m - 1)
        quantile = float(stdtrit(m - 1, confidence))
        return mean + quantile * math.sqrt(variance * (1 + 1 / m))


def _ignore_draw() -> None:
    """Do nothing after a draw."""


@dataclass(frozen=True, eq=False)
class DecodedForecast:
    """The error of the decoded estimate, predicted by drawing tallies.

    ``on_draw``: called after each decoded tally.
    """

    mechanism: Mechanism
    measure: str
    confidence: float
    p: Floats
    decoder: str
    effort: Effort = THOROUGH
    on_draw: Callable[[], None] = field(default=_ignore_draw, repr=False)
    _cache: dict[int, Figures] = field(default_factory=dict, repr=False)

    def at(self, people: int) -> Figures:
        """Return the figures for this number of people."""
        if people not in self._cache:
            self._cache[people] = self._predict(people)
        return self._cache[people]

    def near(self, people: int, known: Figures | None) -> Figures:
        """Return approximate figures from few draws, in proportion to figures that are known."""
        if people in self._cache:
            return self._cache[people]
        rough = self._search.at(people)
        if known is None:
            return rough
        rough_known = self._search.at(known.people)
        if rough_known.mean_error == 0 or rough_known.error == 0:
            return rough
        mean_ratio = known.mean_error / rough_known.mean_error
        # The mean varies less from draw to draw than the largest of a few errors.
        error = rough.mean_error * known.error / rough_known.mean_error
        return Figures(people, rough.mean_error * mean_ratio, error)

    def with_effort(self, effort: Effort) -> "DecodedForecast":
        """Return the same forecast with a different number of draws."""
        return replace(self, effort=effort, _cache={})

    def people_for(self, error: float, start: int) -> int | None:
        """Return about the smallest number of people for which at most this ``error`` is stated.

        The number is rounded up to three significant digits. Return ``None`` if even ``MAX_PEOPLE``
        people are too few. The search starts from ``start`` people. Mechanisms that a plan only
        compares may miss the goal by a little.

        First find the people that have a given mean error, with few draws. The ratio of the stated
        error to that mean hardly depends on the number of people, so the result is close. Then take
        secant steps with all draws.
        """
        rough = self._search.at(start)
        seems_unreachable = rough.mean_error * math.sqrt(start / MAX_PEOPLE) > error
        if seems_unreachable and self._search.at(MAX_PEOPLE).mean_error > error:
            return None
        ratio = rough.error / max(rough.mean_error, _TINY)
        guess = _round_up_to_three_digits(self._search.solve_mean(error / ratio, start))
        steps = _SecantSteps()
        enough_people: list[int] = []
        for _ in range(self.effort.search_steps):
            stated_error = self.at(guess).error
            if stated_error <= error:
                enough_people.append(guess)
                if guess == 1 or stated_error >= error * (1 - _GOAL_TOLERANCE):
                    break
            # Aim at the middle of the tolerance.
            log_excess = math.log(max(stated_error, _TINY) / error) + _GOAL_TOLERANCE / 2
            log_people = steps.next_point(math.log(guess), log_excess)
            guess = _round_up_to_three_digits(min(math.exp(max(log_people, 0.0)), MAX_PEOPLE))
        if enough_people:
            return min(enough_people)
        if self.effort is not THOROUGH:
            return guess
        return self._raise_until_enough(guess, error)

    def solve_mean(self, mean_error: float, start: int) -> float:
        """Return about the number of people with this mean error, at most ``MAX_PEOPLE``.

        Use the secant method on the logarithms of the number of people and of the error.
        """
        guess = float(start)
        steps = _SecantSteps()
        too_few_people = 1.0
        enough_people = float(MAX_PEOPLE)
        for _ in range(_MAX_SECANT_STEPS):
            log_excess = math.log(max(self.at(round(guess)).mean_error, _TINY) / mean_error)
            if log_excess <= 0:
                enough_people = guess
            else:
                too_few_people = guess
            if abs(log_excess) < _SEARCH_TOLERANCE or enough_people <= too_few_people * 1.01:
                break
            next_log_people = steps.next_point(math.log(guess), log_excess)
            if math.log(too_few_people) < next_log_people < math.log(enough_people):
                guess = math.exp(next_log_people)
            else:
                # The secant left the bracket and could cycle, so bisect.
                guess = math.sqrt(too_few_people * enough_people)
        return guess

    @cached_property
    def _search(self) -> "DecodedForecast":
        return self.with_effort(SEARCH)

    def _raise_until_enough(self, people: int, error: float) -> int | None:
        """Return a larger number of people for which at most this ``error`` is stated."""
        while people < MAX_PEOPLE:
            excess = self.at(people).error / error
            if excess <= 1:
                return people
            people = _round_up_to_three_digits(people * max(excess**2, _MIN_STEP))
        return None

    def _predict(self, people: int) -> Figures:
        sample = self._draw_errors(people)
        if self.measure == "l2":
            mean_error = math.sqrt(sample.mean(power=2))
        else:
            mean_error = sample.mean()
        return Figures(people, mean_error, sample.bound(self.confidence, self.effort.margin))

    def _draw_errors(self, people: int) -> ErrorSample:
        q = self.mechanism.forward(self.p)
        decoder = get_decoder(self.decoder)

        def decode_draws(draws: Symbols) -> Floats:
            errors = np.empty(draws.size)
            for index, draw in enumerate(draws.tolist()):
                tally = draw_tally(self.mechanism, q, people, draw)
                errors[index] = self._error(decoder.decode(self.mechanism, tally).frequencies)
                self.on_draw()
            return errors

        averages_models = isinstance(decoder, Auto) and decoder.averages_models(self.mechanism)
        max_draws = _MAX_DRAWS_OF_AVERAGES if averages_models else _MAX_DRAWS
        count = self.effort.draw_count(self.mechanism.inputs, max_draws)
        ranked = self._rank_draws(q, people, round(count / _FAR_SHARE))
        return ErrorSample(far=decode_draws(ranked[:count:2]), near=decode_draws(ranked[count::4]))

    def _rank_draws(self, q: Floats, people: int, count: int) -> Symbols:
        """Return the indices of ``count`` draws; the largest errors of the unbiased come first."""
        errors = np.empty(count)
        for draw in range(count):
            tally = draw_tally(self.mechanism, q, people, draw)
            errors[draw] = self._error(self.mechanism.scores.unbiased(tally))
        return np.argsort(-errors, kind="stable")

    def _error(self, frequencies: Floats) -> float:
        if self.measure == "tv":
            return total_variation(frequencies, self.p)
        return float(np.linalg.norm(frequencies - self.p))


class _SecantSteps:
    """The secant method for a decreasing function, which first falls as 1/√people."""

    def __init__(self) -> None:
        self._slope = -0.5
        self._last_point: tuple[float, float] | None = None

    def next_point(self, x: float, value: float) -> float:
        """Return where the function is 0, by its values at x and at the last x."""
        if self._last_point is not None and x != self._last_point[0]:
            secant = (value - self._last_point[1]) / (x - self._last_point[0])
            self._slope = min(max(secant, -1.0), -0.2)
        self._last_point = x, value
        return x - value / self._slope


def _round_up_to_three_digits(number: float) -> int:
    unit = 10 ** max(math.floor(math.log10(max(number, 1.0))) - 2, 0)
    return max(math.ceil(number / unit), 1) * unit
