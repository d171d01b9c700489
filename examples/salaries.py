"""What does your household earn? Reports hide neighbouring bands better than distant ones.

    python examples/salaries.py

Each step between bands costs ε = 1, up to 4. No formula is known for this privacy matrix, so a
mechanism is computed for it. The analyst wants two figures with honest error bars: the share of
households above a threshold, and the band of the median.

The simulated households are distributed like those of the United States in 2018: U.S. Census
Bureau, American Community Survey, 1-year estimates, table S1901, "Income in the past 12 months".
Figures of the federal government, in the public domain. The bureau's median was 61,937 dollars.
"""

import numpy as np

import sfumato as sf

HOUSEHOLDS = 20_000
MAX_EPSILON = 4
PER_CENT = {  # of 121,520,180 households; rounded, they add up to 100.1
    "under $10,000": 6.3,
    "$10,000 to $14,999": 4.3,
    "$15,000 to $24,999": 9.0,
    "$25,000 to $34,999": 8.9,
    "$35,000 to $49,999": 12.4,
    "$50,000 to $74,999": 17.4,
    "$75,000 to $99,999": 12.6,
    "$100,000 to $149,999": 15.0,
    "$150,000 to $199,999": 6.6,
    "$200,000 and more": 7.6,
}
BANDS = list(PER_CENT)


def fading_promise() -> sf.PrivacyMatrix:
    """Return ε = 1 for each step between two bands.

    Without a maximum, next to nothing would be promised between the lowest and the highest band.
    """
    steps = sf.Metric.from_points([[band] for band in range(len(BANDS))], epsilon=1).matrix()
    return sf.PrivacyMatrix(np.minimum(steps, MAX_EPSILON), domain=BANDS)


def median_bands(estimate: sf.Estimate) -> list[str]:
    """Return the bands that may contain the median.

    A band is excluded if fewer than half of all households are in it or below, or if half of them
    are below it already. Each of these is wrong once in 40 surveys, so the right band is among the
    others in 95 of 100.
    """
    bands = []
    below = 0.0  # the low end of the share below the band
    for index, band in enumerate(BANDS):
        total = estimate.total(BANDS[: index + 1])
        if below < 0.5 <= total.high:
            bands.append(band)
        below = total.low
    return bands


def main() -> None:
    """Design a mechanism, collect, and estimate totals and the median."""
    context = fading_promise()
    guess = np.array(list(PER_CENT.values())) / sum(PER_CENT.values())
    design = sf.design(context, prior=guess)
    survey = sf.Survey(
        "income-2026", context, design.mechanism, title="What does your household earn in a year?"
    )
    print(f"{design.summary()}\n{survey.certify()}")
    even = sf.posterior_odds(context, [1 / len(BANDS)] * len(BANDS))
    for other in (6, 9):  # the next band, and the highest
        print(even.in_words(5, other))

    # Simulated households. Only they are seeded: reports are random, and differ from run to run.
    counts = np.random.default_rng(2026).multinomial(HOUSEHOLDS, guess)
    estimate = survey.estimate(survey.tally(survey.privatize(np.repeat(BANDS, counts))))

    truth = counts / HOUSEHOLDS
    low, high = estimate.interval(0.95)
    classical = sf.mechanism_for(sf.Uniform(context.domain, 1))
    margins = 1.96 * np.sqrt(classical.scores.variances(truth, HOUSEHOLDS))
    print(f"\n{'income':22} truth  estimate  95 % interval   if all pairs were equally hidden")
    for x, band in enumerate(BANDS):
        ends = f"{100 * low[x]:.1f} to {100 * high[x]:.1f}"
        shares = f"{100 * truth[x]:5.1f} {100 * estimate.unbiased[x]:9.1f}"
        print(f"{band:22} {shares}  {ends:>13}   ± {100 * margins[x]:.1f}")

    rich = estimate.total(BANDS[7:])
    ends = f"95 % interval {100 * rich.low:.1f} to {100 * rich.high:.1f}"
    right = f"the truth is {100 * truth[7:].sum():.1f}"
    print(f"\nHouseholds with $100,000 and more: {100 * rich.estimate:.1f} % ({ends}; {right})")
    print(f"The median lies in: {' or '.join(median_bands(estimate))}")
    ratio = classical.scores.risk(guess) / design.mechanism.scores.risk(guess)
    print(f"With ε = 1 between all bands, you would need {ratio:.1f} times as many households.")


if __name__ == "__main__":
    main()
