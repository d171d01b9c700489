"""Draw docs/pictures/coin.svg: randomised response, told with a coin.

Run it with `.venv/bin/python docs/pictures/coin.py`.
"""

from drawing import FREE, INK, PALE, PROMISED, SOFT, WHITE, Sheet, write


def picture() -> Sheet:
    sheet = Sheet(494, "Randomised response with a coin")
    tree(sheet)
    outcomes(sheet)
    return sheet


def tree(sheet: Sheet) -> None:
    bubble(sheet, 300, 40, 270, "toss a coin, in secret", PALE, INK)
    branch(sheet, (300, 62), (140, 124), "heads")
    branch(sheet, (300, 62), (440, 124), "tails")
    bubble(sheet, 140, 146, 200, "tell the truth", FREE, WHITE)
    bubble(sheet, 440, 146, 220, "toss it once more", PALE, INK)
    branch(sheet, (440, 168), (350, 230), "heads")
    branch(sheet, (440, 168), (520, 230), "tails")
    bubble(sheet, 350, 252, 150, "say “yes”", PROMISED, WHITE)
    bubble(sheet, 520, 252, 140, "say “no”", PROMISED, WHITE)


def bubble(sheet: Sheet, x, y, width, words, fill, ink) -> None:
    sheet.box(x - width / 2, y - 22, width, 44, fill=fill, radius=22)
    sheet.text(x, y + 6, words, size=17, ink=ink, anchor="middle")


def branch(sheet: Sheet, start, end, words) -> None:
    sheet.arrow(*start, *end)
    left = end[0] < start[0]
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    sheet.text(
        x + (-14 if left else 14), y, words, size=15, ink=SOFT, anchor="end" if left else "start"
    )


def outcomes(sheet: Sheet) -> None:
    for y, truth, yes in ((318, "yes", 75), (398, "no", 25)):
        sheet.text(20, y, f"Of 100 people whose truth is “{truth}”:", size=16)
        cut = 20 + 5.6 * yes
        sheet.box(20, y + 12, 5.6 * yes, 34, fill=PROMISED, radius=0)
        sheet.box(cut, y + 12, 560 - 5.6 * yes, 34, fill=PALE, radius=0)
        sheet.text((20 + cut) / 2, y + 35, f"{yes} say “yes”", ink=WHITE, anchor="middle")
        sheet.text((cut + 580) / 2, y + 35, f"{100 - yes} say “no”", anchor="middle")
    sheet.text(20, 478, "A “yes” is 3 times as likely from the first kind.", size=17, bold=True)


if __name__ == "__main__":
    write(picture, __file__)
