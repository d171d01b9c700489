"""One quiet style for every picture: its colours."""

__all__ = [
    "BACKGROUND",
    "BAR",
    "DARK",
    "FAINT",
    "INK",
    "MAP_SCALE",
    "PALE",
    "PROMISE_SCALE",
    "WHISKER",
]

INK = "#2b2b2b"
FAINT = "#77736c"
PALE = "#e4e1dc"
BACKGROUND = "#f3f1ed"
BAR = "#7ba0bc"
WHISKER = "#a8432c"
PROMISE_SCALE = ("#b04a33", "#d08a74", "#f6e7e1")
MAP_SCALE = ("#e3ebf1", "#8fb3cd", "#3d6b8c", "#12293d")

DARK = {
    INK: "#e8e4dd",
    FAINT: "#a19c93",
    PALE: "#3a3833",
    BACKGROUND: "#2a2824",
    BAR: "#5b87a8",
    WHISKER: "#f0a084",
    **dict(zip(PROMISE_SCALE, ("#cf6f54", "#94503e", "#3d2c27"), strict=True)),
    **dict(zip(MAP_SCALE, ("#24303a", "#3d6b8c", "#8fbbdb", "#fdf3d8"), strict=True)),
}
"""Maps each colour to the one that replaces it on a dark page."""
