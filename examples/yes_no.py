"""The paper's first question: "Have you used an illegal drug?" Only "yes" needs protection.

The privacy matrix says so. E[yes, no] = 1: no report raises the odds of "yes" against "no" by more
than e. E[no, yes] = inf: a report may prove a "no". The best mechanism for it is Mangat's response
(1994). Run it with: python examples/yes_no.py
"""

import sfumato as sf

ANSWERS = {"no": 1700, "yes": 300}  # 2,000 simulated people

context = sf.PrivacyMatrix([[0, "inf"], [1, 0]], domain=["no", "yes"])
survey = sf.Survey("drug-use-2026", context, title="Have you used an illegal drug?")
certificate = survey.certify()

print("How an answer becomes a report:")
print("               reports no  reports yes")
for answer, row in zip(context.domain.labels, survey.mechanism.matrix(), strict=True):
    print(f"  answers {answer:<4} {row[0]:11.4f} {row[1]:12.4f}")
print(certificate)

# On people's devices, on the server, on the analyst's desk.
answers = [answer for answer, people in ANSWERS.items() for _ in range(people)]
reports = survey.privatize(answers)
tally = survey.tally(reports)
estimate = survey.estimate(tally)

yes = context.domain.labels.index("yes")
low, high = estimate.interval(0.95)
print(f"\n{tally.reports} reports, of which {tally.counts[yes]} say yes.")
print(
    f"Share of yes: {100 * estimate.unbiased[yes]:.1f} % "
    f"(95 % interval {100 * low[yes]:.1f} % to {100 * high[yes]:.1f} %; the truth is 15 %)"
)

# What a report tells an observer who believes that 15 in 100 people would say yes.
odds = sf.posterior_odds(context, prior=[0.85, 0.15])
print(f"\nWhat a yes proves: {odds.in_words(1, 0)}")
print(f"What a no proves:  {odds.in_words(0, 1)}")
print(
    "So a yes is never randomised: everyone whose answer is yes reports yes, and a report that\n"
    "says no is true. That is no harm, because only yes is sensitive. People who answer no and\n"
    "report yes give them cover."
)
