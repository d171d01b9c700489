"""Draw docs/pictures/odds.svg: how far one report can move a belief, for several ε.

Run it with `.venv/bin/python docs/pictures/odds.py`.
"""

import math

from drawing import INK, PALE, PROMISED, SOFT, WHITE, Sheet, write

EPSILONS = ("0.1", "0.5", "1", "2", "3", "5")
LEFT, SPAN = 110, 470


def picture() -> Sheet:
    sheet = Sheet(402, "How far one report can move a belief that was even before")
    sheet.text(20, 32, "Belief in “clinic” after the most telling report", size=18, bold=True)
    sheet.text(
        20, 56, "before it, “clinic” and “park” were equally likely: 50 %", size=15, ink=SOFT
    )
    for row, epsilon in enumerate(EPSILONS):
        bar(sheet, 78 + 46 * row, epsilon)
    middle = LEFT + SPAN / 2
    sheet.line(middle, 72, middle, 356, ink=INK, dash="4 4", width=1.5)
    for share in (0, 50, 100):
        anchor = {0: "start", 50: "middle", 100: "end"}[share]
        sheet.text(LEFT + SPAN * share / 100, 382, f"{share} %", size=15, ink=SOFT, anchor=anchor)
    return sheet


def bar(sheet: Sheet, y: float, epsilon: str) -> None:
    odds = math.exp(float(epsilon))
    belief = odds / (1 + odds)
    sheet.text(20, y + 23, f"ε = {epsilon}", size=17)
    sheet.box(LEFT, y, SPAN, 34, fill=PALE, radius=0)
    sheet.box(LEFT, y, SPAN * belief, 34, fill=PROMISED, radius=0)
    percent = math.ceil(1000 * belief) / 10
    sheet.text(LEFT + 12, y + 23, f"at most {percent:.1f} %", ink=WHITE)


if __name__ == "__main__":
    write(picture, __file__)
