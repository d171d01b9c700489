"""Draw docs/pictures/shades.svg: four privacy matrices of five answers.

Run it with `.venv/bin/python docs/pictures/shades.py`.
"""

import math

from drawing import INK, PALE, PROMISED, SOFT, WHITE, Sheet, write

import sfumato as sf

PLACES = ["park", "café", "office", "clinic", "bar"]
STREETS = {"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome", "Via D": "Rome", "Via E": "Rome"}
BANDS = ["low", "", "middle", "", "high"]
CELL = 38


def picture() -> Sheet:
    sheet = Sheet(606, "Four privacy matrices")
    line = sf.Metric.from_points([[band] for band in range(5)], epsilon=1)
    matrices = (
        ("Uniform", "every pair alike", PLACES, sf.Uniform(PLACES, 1)),
        ("HighLow", "two answers are sensitive", PLACES, sf.HighLow(PLACES, ["clinic", "bar"], 1)),
        ("Blocks", "the street, not the city", list(STREETS), sf.Blocks(STREETS, 1)),
        ("Metric", "the nearer, the harder to tell", BANDS, line),
    )
    for place, matrix in enumerate(matrices):
        draw(sheet, 300 * (place % 2), 292 * (place // 2), *matrix)
    sheet.text(
        20,
        588,
        "Rows are the answers that are protected; columns go in the same order.",
        size=15,
        ink=SOFT,
    )
    return sheet


def draw(
    sheet: Sheet,
    left: float,
    top: float,
    name: str,
    remark: str,
    labels: list[str],
    context: sf.Context,
) -> None:
    sheet.text(left + 20, top + 32, name, size=18, bold=True)
    sheet.text(left + 20, top + 55, remark, size=15, ink=SOFT)
    for x, label in enumerate(labels):
        y = top + 72 + CELL * x
        sheet.text(left + 82, y + 25, label, size=15, anchor="end")
        for x2 in range(len(labels)):
            cell(sheet, left + 90 + CELL * x2, y, context.epsilon(x, x2), x == x2)


def cell(sheet: Sheet, x: float, y: float, epsilon: float, diagonal: bool) -> None:
    if diagonal:
        fill, ink, words = PALE, SOFT, "0"
    elif math.isinf(epsilon):
        fill, ink, words = WHITE, SOFT, "∞"
    else:
        fill, ink, words = shade(epsilon), WHITE if epsilon < 2 else INK, f"{epsilon:g}"
    sheet.box(x + 1.5, y + 1.5, CELL - 3, CELL - 3, fill=fill, stroke=PALE, radius=3)
    sheet.text(x + CELL / 2, y + 25, words, size=16, ink=ink, anchor="middle")


def shade(epsilon: float) -> str:
    """The colour of a promise, fainter where less is promised."""
    strength = min(1.0, 1 / epsilon)
    channels = (int(PROMISED[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - strength * (255 - channel)):02x}" for channel in channels)


if __name__ == "__main__":
    write(picture, __file__)
