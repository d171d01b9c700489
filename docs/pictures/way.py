"""Draw docs/pictures/way.svg: one answer, from a person's device to an estimate.

Run it with `.venv/bin/python docs/pictures/way.py`.
"""

from drawing import FREE, INK, PALE, PROMISED, SOFT, Sheet, write

COUNTS = (62, 41, 30, 19, 25)
SHARES = ((0.46, 0.03), (0.31, 0.03), (0.11, 0.02), (0.07, 0.05), (0.05, 0.05))


def picture() -> Sheet:
    sheet = Sheet(520, "One answer, from a person's device to an estimate")
    device(sheet)
    sheet.line(20, 196, 580, 196, ink=PROMISED, dash="7 6")
    sheet.text(20, 218, "only the report crosses this line", size=15, ink=PROMISED)
    server(sheet)
    analyst(sheet)
    return sheet


def device(sheet: Sheet) -> None:
    sheet.text(20, 34, "On each person's device", size=18, bold=True)
    sheet.text(20, 58, "trusted by this person, and by nobody else", size=15, ink=SOFT)
    for x, words, ink, role in (
        (20, "clinic", PROMISED, "the answer"),
        (458, "4", FREE, "the report"),
    ):
        sheet.box(x, 84, 122, 58, stroke=ink)
        sheet.text(x + 61, 120, words, size=20, ink=ink, anchor="middle", bold=True)
        sheet.text(x + 61, 164, role, size=15, ink=SOFT, anchor="middle")
    sheet.box(212, 84, 176, 58, fill=PALE)
    sheet.text(300, 109, "drawn by chance,", anchor="middle")
    sheet.text(300, 130, "as the survey says", anchor="middle")
    sheet.arrow(144, 113, 208, 113)
    sheet.arrow(390, 113, 454, 113)


def server(sheet: Sheet) -> None:
    sheet.arrow(519, 172, 519, 250)
    sheet.text(20, 262, "On the server", size=18, bold=True)
    sheet.text(20, 286, "trusted with nothing: it counts reports", size=15, ink=SOFT)
    for report, count in enumerate(COUNTS):
        sheet.box(404 + 36 * report, 332 - count, 28, count, fill=FREE, radius=2)
        sheet.text(418 + 36 * report, 351, str(report), size=15, ink=SOFT, anchor="middle")
    sheet.text(390, 332, "the tally", size=15, ink=SOFT, anchor="end")


def analyst(sheet: Sheet) -> None:
    sheet.arrow(490, 360, 490, 392)
    sheet.text(20, 408, "On the analyst's desk", size=18, bold=True)
    sheet.text(20, 432, "the noise is taken out of the crowd,", size=15, ink=SOFT)
    sheet.text(20, 453, "not out of anybody's report", size=15, ink=SOFT)
    for row, (share, error) in enumerate(SHARES):
        y, ink = 406 + 21 * row, PROMISED if row > 2 else FREE
        x, half = 404 + 300 * share, 300 * error
        sheet.line(404, y, 584, y, ink=PALE, width=1)
        sheet.line(max(404, x - half), y, x + half, y, ink=ink, width=3)
        sheet.disc(x, y, 5, fill=ink)
    sheet.line(404, 398, 404, 498, ink=INK, width=1.5)
    sheet.text(390, 496, "the estimate", size=15, ink=SOFT, anchor="end")


if __name__ == "__main__":
    write(picture, __file__)
