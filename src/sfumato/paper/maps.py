"""Draw a map with matplotlib: shares of people on a grid."""

from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import GridDomain
from sfumato.foundation.arrays import Floats
from sfumato.pages.map_cells import arrange_cells, latitude_stretch
from sfumato.pages.pictures import BACKGROUND, FAINT, MAP_SCALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["draw_shares"]

# The same decades of colour on every map, so that you can compare maps.
_BOTTOM = -5.5
_TOP = -2.0


def draw_shares(axes: "Axes", grid: GridDomain, shares: Floats) -> "AxesImage":
    """Colour cells by the logarithm of their shares. Cells below three millionths stay empty."""
    from matplotlib.colors import LinearSegmentedColormap

    cells = arrange_cells(grid, shares)
    least = 10.0**_BOTTOM
    decades = np.log10(np.maximum(cells.shares, least))
    colours = LinearSegmentedColormap.from_list("map", MAP_SCALE)
    picture = axes.imshow(
        np.where(cells.shares >= least, decades, np.nan),
        origin="lower",
        extent=cells.extent,
        aspect=latitude_stretch(grid),
        cmap=colours,
        vmin=_BOTTOM,
        vmax=_TOP,
        interpolation="none",
    )
    axes.set_facecolor(BACKGROUND)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(color=FAINT, linewidth=0.5)
    return picture
