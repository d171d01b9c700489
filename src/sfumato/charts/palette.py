"""The colours of all charts, by name.

On a page, text has the colour of the text around it, and every other colour is a CSS variable with
a fallback. So the same chart suits a light page and a dark page. A file of its own and a notebook
set no such variables: for them, ``FIXED`` holds the colours themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["DARK", "FIXED", "LIGHT", "MAP_STEPS", "PAGE", "Palette", "css_variables"]

MAP_STEPS = 7
"""The number of colours on the scale of a map."""

# On light paper, more people are darker.
_LIGHT_MAP = ("#c3d9e6", "#a3c4d8", "#82adc8", "#6194b5", "#457fa4", "#2c618a", "#1a4268")
_DARK_MAP = ("#2b4a5e", "#34607b", "#3f7795", "#4e90b0", "#6aabc8", "#95c9de", "#cdeaf3")
_LIGHT_PROMISE = ("#f5e4dc", "#e9bfae", "#d99680", "#b85a43", "#a5432f")
_DARK_PROMISE = ("#3c2b26", "#5f3a30", "#86503f", "#c07860", "#dc8d72")


def _number_colours(name: str, colours: tuple[str, ...]) -> dict[str, str]:
    return {f"{name}{step}": colour for step, colour in enumerate(colours)}


LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#2b2b2b",
        "faint": "#6d6962",
        "line": "#e4e1dc",
        "paper": "#ffffff",
        "bar": "#4f86ad",
        "accent": "#c2654a",
        "good": "#3f6b4a",
        "quiet": "#a39d93",
        "noise": "#ece8e1",
        "land": "#f4f1ec",
        "coast": "#b5aea3",
        **_number_colours("map", _LIGHT_MAP),
        **_number_colours("promise", _LIGHT_PROMISE),
    }
)
"""The colours on light paper."""

DARK: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#e8e4dd",
        "faint": "#a8a299",
        "line": "#3a3833",
        "paper": "#211f1c",
        "bar": "#6ea6cd",
        "accent": "#e08a6d",
        "good": "#93c5a0",
        "quiet": "#7d776d",
        "noise": "#2f2c28",
        "land": "#282622",
        "coast": "#5e5950",
        **_number_colours("map", _DARK_MAP),
        **_number_colours("promise", _DARK_PROMISE),
    }
)
"""The colours on dark paper."""


@dataclass(frozen=True)
class Palette:
    """What to write into a chart for each name of a colour."""

    text_of: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.text_of[name]


def _page_colour(name: str) -> str:
    if name == "ink":
        return "currentColor"
    return f"var(--chart-{name},{LIGHT[name]})"


PAGE = Palette({name: _page_colour(name) for name in LIGHT})
"""Colours for a chart inside a page."""

FIXED = Palette(LIGHT)
"""Colours for a chart in a file of its own or in a notebook."""


def css_variables(colours: Mapping[str, str]) -> str:
    """Return the declarations that set the colours of all charts on a page."""
    return " ".join(f"--chart-{name}: {colour};" for name, colour in colours.items())
