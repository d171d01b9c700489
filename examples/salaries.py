"""What does your household earn? Neighbouring bands are hard to tell apart, rich and poor are not.

    python examples/salaries.py

Each step between bands costs ε = 1, up to 4: that is a privacy matrix for which no formula is known, so a mechanism
is computed for it. The analyst wants two things, both with honest error bars: the share of households above a
threshold, and the band of the median.

The pretend households are spread like those of the United States in 2018: U.S. Census Bureau, American Community
Survey, 1-year estimates, table S1901, "Income in the past 12 months". Figures of the federal government, in the public
domain. The bureau's median was 61,937 dollars.
"""

import numpy as np

import sfumato as sf

HOUSEHOLDS, CAP = 20_000, 4
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
    """ε = 1 for each step between two bands. Without a ceiling, nothing would be promised between the ends."""
    steps = sf.Metric.of_points([[band] for band in range(len(BANDS))], epsilon=1).matrix()
    return sf.PrivacyMatrix(np.minimum(steps, CAP), domain=BANDS)


def median_bands(estimate: sf.Estimate) -> list[str]:
    """The bands that the median may lie in.

    A band is ruled out if surely less than half of all households lie in it or below, or surely half of them lie
    below it already. Each can go wrong once in 40 surveys, so the right band is among the others in 95 of 100.
    """
    upto = [estimate.total(BANDS[: band + 1]) for band in range(len(BANDS))]
    enough = [total.high >= 0.5 for total in upto]
    not_yet = [True, *(total.low < 0.5 for total in upto[:-1])]
    return [
        band for band, above, below in zip(BANDS, enough, not_yet, strict=True) if above and below
    ]


def main() -> None:
    """Design a mechanism, ask, and read totals and the median."""
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

    # Pretend households. Only the crowd is seeded: reports are random, and differ from run to run.
    crowd = np.random.default_rng(2026).multinomial(HOUSEHOLDS, guess)
    estimate = survey.estimate(survey.tally(survey.privatize(np.repeat(BANDS, crowd))))

    truth, (low, high) = crowd / HOUSEHOLDS, estimate.interval(0.95)
    classical = sf.mechanism_for(sf.Uniform(context.domain, 1))
    other = 1.96 * np.sqrt(classical.scores.variances(truth, HOUSEHOLDS))
    print(f"\n{'income':22} truth  estimate  95 % interval   if all pairs were hidden alike")
    for x, band in enumerate(BANDS):
        ends = f"{100 * low[x]:.1f} to {100 * high[x]:.1f}"
        print(
            f"{band:22} {100 * truth[x]:5.1f} {100 * estimate.unbiased[x]:9.1f}  {ends:>13}   ± {100 * other[x]:.1f}"
        )

    rich = estimate.total(BANDS[7:])
    print(f"\nHouseholds with $100,000 and more: {100 * rich.estimate:.1f} % ", end="")
    print(
        f"(95 % interval {100 * rich.low:.1f} to {100 * rich.high:.1f}; the truth is {100 * truth[7:].sum():.1f})"
    )
    print(f"The median lies in: {' or '.join(median_bands(estimate))}")
    ratio = classical.scores.risk(guess) / design.mechanism.scores.risk(guess)
    print(
        f"Hiding every band from every other by ε = 1 would take {ratio:.1f} times as many households."
    )


if __name__ == "__main__":
    main()
