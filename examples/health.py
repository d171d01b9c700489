"""What was your last prescription for? Four answers are sensitive, seven are not.

    python examples/health.py [label.html]

Plan how many people the survey needs, let that many simulated people answer, and write the privacy
label that goes with the consent form (health-label.html, unless you give another name).

The simulated people are distributed like the people in the United States who bought a prescribed
medicine in 2022, by therapeutic class: Agency for Healthcare Research and Quality, Medical
Expenditure Panel Survey, Household Component summary tables, "Number of people with purchase in
thousands (standard errors) by therapeutic class, United States". Figures of the federal government,
in the public domain. People who bought medicines of two classes are in both, so these are not
shares of people. For a simulation that does not matter.
"""

import sys
from pathlib import Path
from textwrap import fill

import numpy as np

import sfumato as sf
from sfumato.pages import label_page

PURCHASES = {  # thousands of people; the comments name the class as in the tables
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


def count_people_needed(context: sf.Context, guess: np.ndarray) -> int:
    """Return how many people are needed to know every share within a percentage point.

    This holds for each share in 95 of 100 surveys.
    """
    plan = sf.plan(context, error=0.01, measure="symbol", distribution=guess)
    print(f"{fill(plan.summary(), 110)}\n")
    needed = {row.name: row.figures.people for row in plan.rows if row.figures}
    print(f"Protecting all eleven answers equally would take {needed['classical']:,} people.")
    return needed[plan.chosen]


def show(estimate: sf.Estimate, truth: np.ndarray) -> None:
    """Print the shares in per cent, and the total of the sensitive ones with its own interval."""
    low, high = estimate.interval(0.95)
    print(f"\n{'last prescription':26} truth  estimate  95 % interval")
    for x, label in enumerate(estimate.labels):
        mark = "*" if label in SENSITIVE else " "
        shares = f"{100 * truth[x]:5.1f} {100 * estimate.unbiased[x]:9.1f}"
        print(f"{label:24} {mark} {shares}  {100 * low[x]:.1f} to {100 * high[x]:.1f}")
    total = estimate.total(SENSITIVE)
    ends = f"{100 * total.low:.1f} to {100 * total.high:.1f}"
    print(f"* sensitive; the four together: {100 * total.estimate:.1f} % ({ends}).")
    print(estimate.fit_result.verdict)


def main() -> None:
    """Plan, certify, collect, estimate, and write the label."""
    context = sf.HighLow(list(PURCHASES), SENSITIVE, epsilon=1)
    survey = sf.Survey(
        "prescriptions-2026",
        context,
        title="What was your last prescription for?",
        text="We want to know which medicines people need. "
        "Your phone blurs your answer before it sends anything.",
        contact="Example Health Survey, survey@example.org",
    )
    guess = np.array(list(PURCHASES.values())) / sum(PURCHASES.values())
    people = count_people_needed(context, guess)

    print(f"\n{survey.certify()}")
    odds = sf.posterior_odds(context, guess)
    print(odds.in_words(context.domain.labels.index("cancer"), 0))

    # Simulated people. Only they are seeded: reports are random, and differ from run to run.
    counts = np.random.default_rng(2026).multinomial(people, guess)
    answers = np.repeat(list(PURCHASES), counts)
    estimate = survey.estimate(survey.tally(survey.privatize(answers)))
    show(estimate, counts / people)

    page = Path(sys.argv[1] if len(sys.argv) > 1 else "health-label.html")
    page.write_text(label_page(survey), encoding="utf-8")
    print(f"\nThe privacy label for participants: {page}")


if __name__ == "__main__":
    main()
