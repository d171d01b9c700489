"""Draw docs/pictures/crowd.svg: what is learned about lunch from 300, 3,000 and 30,000 reports.

Run it with `.venv/bin/python docs/pictures/crowd.py`. The words come from a fixed key, so the
picture is always the same. Real reports use words from the operating system.
"""

import numpy as np
from drawing import FREE, INK, PALE, PROMISED, SOFT, Sheet, write

import sfumato as sf
from sfumato.randomness import words_from

SHARES = {"park": 0.45, "café": 0.31, "office": 0.12, "clinic": 0.07, "bar": 0.05}
SENSITIVE = ("clinic", "bar")
LEFT, SPAN, MOST = 90, 480, 0.6


def picture() -> Sheet:
    sheet = Sheet(574, "What is learned about lunch from 300, 3,000 and 30,000 reports")
    for panel, people in enumerate((300, 3_000, 30_000)):
        draw(sheet, 182 * panel, estimated(people))
    for share in (0, 20, 40, 60):
        sheet.text(
            LEFT + SPAN * share / 100 / MOST, 562, f"{share} %", size=15, ink=SOFT, anchor="middle"
        )
    return sheet


def estimated(people: int) -> sf.Estimate:
    """The estimate from reports that never change."""
    mechanism = sf.mechanism_for(sf.HighLow(list(SHARES), SENSITIVE, epsilon=1))
    symbols = np.repeat(
        np.arange(len(SHARES)), [round(share * people) for share in SHARES.values()]
    )
    words = words_from(bytes(32), 0, symbols.size)[:, : mechanism.words]
    return sf.estimate(mechanism, mechanism.tally(mechanism.reports_from(symbols, words)))


def draw(sheet: Sheet, top: float, estimate: sf.Estimate) -> None:
    sheet.text(20, top + 28, f"{estimate.reports:,} reports", size=18, bold=True)
    low, high = estimate.interval(0.95)
    for x, (place, share) in enumerate(SHARES.items()):
        y, ink = top + 52 + 26 * x, PROMISED if place in SENSITIVE else FREE
        sheet.text(LEFT - 10, y + 6, place, size=16, ink=ink, anchor="end")
        sheet.box(LEFT, y - 9, SPAN * share / MOST, 18, fill=PALE, radius=0)
        ends = [round(LEFT + SPAN * float(end) / MOST, 1) for end in (low[x], high[x])]
        sheet.line(ends[0], y, ends[1], y, ink=ink, width=3)
        for end in ends:
            sheet.line(end, y - 6, end, y + 6, ink=ink, width=3)
        sheet.disc(
            round(LEFT + SPAN * max(0.0, float(estimate.unbiased[x])) / MOST, 1), y, 5, fill=ink
        )
    sheet.line(LEFT, top + 40, LEFT, top + 170, ink=INK, width=1.5)


if __name__ == "__main__":
    write(picture, __file__)
