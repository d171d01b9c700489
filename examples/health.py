"""What was your last prescription for? Four answers are sensitive, seven are not: plan, ask, and tell people.

    python examples/health.py [label.html]

It asks how many people the survey needs, lets so many pretend people answer, and writes the page that belongs beside
the consent form (health-label.html, unless another name is given).

The pretend people are spread like the people in the United States who bought a prescribed medicine in 2022, by
therapeutic class: Agency for Healthcare Research and Quality, Medical Expenditure Panel Survey, Household Component
summary tables, "Number of people with purchase in thousands (standard errors) by therapeutic class, United States".
Figures of the federal government, in the public domain. Whoever bought of two classes is in both, so these are not
shares of people; for a pretend crowd they will do.
"""

import sys
from pathlib import Path
from textwrap import fill

import numpy as np

import sfumato as sf
from sfumato.pages import label_page

BOUGHT = {  # thousands of people; beside our words, the class as the tables name it
    "heart and circulation": 76_200,  # Cardiovascular Agents
    "pain and nerves": 77_888,  # Central Nervous System Agents
    "metabolism": 64_786,  # Metabolic Agents
    "an infection": 58_109,  # Anti-Infectives
    "skin, eyes or ears": 40_695,  # Topical Agents
    "breathing": 36_283,  # Respiratory Agents
    "stomach and bowels": 32_281,  # Gastrointestinal Agents
    "hormones": 46_613,  # Hormones/Hormone Modifiers
    "mental health": 39_501,  # Psychotherapeutic Agents
    "bladder or sexual health": 10_390,  # Genitourinary Tract Agents
    "cancer": 4_437,  # Antineoplastics
}
SENSITIVE = ["hormones", "mental health", "bladder or sexual health", "cancer"]


def planned(context: sf.Context, guess: np.ndarray) -> int:
    """How many people it takes to know every share to within a percentage point, in 95 of 100 surveys."""
    plan = sf.plan(context, error=0.01, measure="symbol", distribution=guess)
    print(f"{fill(plan.summary(), 110)}\n")
    needed = {row.name: row.figures.people for row in plan.rows if row.figures}
    print(f"Protecting all eleven answers alike would take {needed['classical']:,} people.")
    return needed[plan.chosen]


def show(estimate: sf.Estimate, truth: np.ndarray) -> None:
    """The shares in per cent, and the total of the sensitive ones with an interval of its own."""
    low, high = estimate.interval(0.95)
    print(f"\n{'last prescription':26} truth  estimate  95 % interval")
    for label, p, found, bottom, top in zip(
        estimate.labels, truth, estimate.unbiased, low, high, strict=True
    ):
        mark = "*" if label in SENSITIVE else " "
        print(
            f"{label:24} {mark} {100 * p:5.1f} {100 * found:9.1f}  {100 * bottom:.1f} to {100 * top:.1f}"
        )
    total = estimate.total(SENSITIVE)
    ends = f"{100 * total.low:.1f} to {100 * total.high:.1f}"
    print(
        f"* sensitive; the four together: {100 * total.estimate:.1f} % ({ends}). {estimate.fit_result.verdict}"
    )


def main() -> None:
    """Plan, promise, ask, estimate, and write the label."""
    context = sf.HighLow(list(BOUGHT), SENSITIVE, epsilon=1)
    survey = sf.Survey(
        "prescriptions-2026",
        context,
        title="What was your last prescription for?",
        text="We want to know which medicines people need. Your telephone blurs your answer before it sends anything.",
        contact="Example Health Survey, survey@example.org",
    )
    guess = np.array(list(BOUGHT.values())) / sum(BOUGHT.values())
    people = planned(context, guess)

    print(f"\n{survey.certify()}")
    odds = sf.posterior_odds(context, guess)
    print(odds.in_words(context.domain.labels.index("cancer"), 0))

    # Pretend people. Only the crowd is seeded: reports are random, and differ from run to run.
    crowd = np.random.default_rng(2026).multinomial(people, guess)
    answers = np.repeat(list(BOUGHT), crowd)
    estimate = survey.estimate(survey.tally(survey.privatize(answers)))
    show(estimate, crowd / people)

    page = Path(sys.argv[1] if len(sys.argv) > 1 else "health-label.html")
    page.write_text(label_page(survey), encoding="utf-8")
    print(f"\nThe privacy label, for the people who are asked: {page}")


if __name__ == "__main__":
    main()
