"""Draw docs/pictures/health.png: the promise of a health survey and the mechanism designed for it.

Run it with `.venv/bin/python docs/pictures/health.py`. The matrix is from
docs/tutorial/health.md. The search has a fixed seed, so the picture is always the same on one
machine.
"""

from pathlib import Path

import sfumato as sf
from sfumato.pages import design_png

KIND_OF = {
    "no condition": "none",
    "hypertension": "body",
    "asthma": "body",
    "diabetes": "body",
    "depression": "mind",
    "anxiety": "mind",
    "hepatitis C": "infection",
    "HIV": "infection",
}
# ε of an answer of this kind: against no condition, against another kind, against its own kind.
PROMISED = {"none": (0, 4, 4), "body": (2, 3, 3), "mind": (1, "1.5", 2), "infection": ("0.5", 1, 1)}
GUESS = [0.55, 0.14, 0.08, 0.07, 0.08, 0.05, 0.02, 0.01]


def epsilon(x: str, x2: str) -> object:
    against_none, against_others, against_own = PROMISED[KIND_OF[x]]
    if x == x2:
        return 0
    if KIND_OF[x2] == "none":
        return against_none
    return against_own if KIND_OF[x] == KIND_OF[x2] else against_others


def main() -> None:
    rows = [[epsilon(x, x2) for x2 in KIND_OF] for x in KIND_OF]
    context = sf.PrivacyMatrix(rows, domain=sf.Domain(list(KIND_OF)))
    target = Path(__file__).with_suffix(".png")
    target.write_bytes(design_png(sf.design(context, prior=GUESS)))
    print(f"{target.name}: {target.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
