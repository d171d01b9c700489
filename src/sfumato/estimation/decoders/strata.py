"""Strata: symbols that a public number, or their neighbours, suggest to be alike."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch
from sfumato.estimation.decoders.pools import Pools
from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["WIDTHS", "has_neighbours", "predict_from_neighbours", "stratify"]

WIDTHS = (0.7, 1.4, 2.8)
"""Widths of neighbourhoods, in cells. The tally chooses among them."""

_MIN_STRATUM = 500  # fewer symbols cannot show what a prior looks like
_MAX_STRATA = 12
_KERNEL_RADIUS = 2.5  # in widths: where the kernel on H3 cells is cut off
_MAX_PAIRS = 3e7  # of H3 cells: more are not worth their memory
_TINY = 1e-12


def stratify(covariate: Floats) -> NDArray[np.int64]:
    """Return equally large strata in the order of a covariate; equal values stay together.

    >>> np.bincount(stratify(np.arange(1200.0))).tolist()
    [600, 600]
    """
    count = int(np.clip(covariate.size // _MIN_STRATUM, 1, _MAX_STRATA))
    edges = np.empty(0)
    if covariate.size:
        edges = np.quantile(covariate, np.arange(1, count) / count)
    strata = np.searchsorted(edges, covariate, side="right")
    _, numbers = np.unique(strata, return_inverse=True)
    return numbers.reshape(covariate.shape)


def has_neighbours(domain: Domain) -> bool:
    """Return whether the domain's symbols are cells of a map."""
    return isinstance(domain, GridDomain | H3Domain)


def predict_from_neighbours(
    domain: Domain, pools: Pools, shares: Floats, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Yield each width with the pooled symbols' predictions from neighbourhoods of that width.

    A prediction is ``Σ_{x2 ≠ x} K(x, x2) share_x2 / Σ_{x2 ≠ x} K(x, x2)`` with a Gaussian K, in
    units of the group's mean. A cell's own share has no part in it.
    """
    used = pools.is_pooled
    predictions: Iterator[tuple[float, Floats]]
    if isinstance(domain, GridDomain):
        predictions = ((width, _on_grid(domain, shares, used, width)) for width in widths)
    elif isinstance(domain, H3Domain):
        predictions = _on_h3(domain, shares, used, widths)
    else:
        raise ContextMismatch(
            "this domain has no neighbours. Use the empirical-bayes decoder, perhaps with a "
            "covariate."
        )
    for width, predicted in predictions:
        yield width, predicted[used] / pools.means[used]


def _on_grid(domain: GridDomain, values: Floats, used: Booleans, width: float) -> Floats:
    """Smooth values on a grid, leaving out each cell's own value."""
    from scipy.ndimage import gaussian_filter

    cells = domain.cells
    mask = used[:cells].astype(np.float64).reshape(domain.shape)
    field = mask * values[:cells].reshape(domain.shape)
    # The filter's weight of a cell itself, from filtering a single 1.
    side = 2 * int(4 * width + 0.5) + 1
    impulse = np.zeros((side, side))
    impulse[side // 2, side // 2] = 1.0
    own = gaussian_filter(impulse, width, mode="constant").max()
    weights = gaussian_filter(mask, width, mode="constant") - own * mask
    sums = gaussian_filter(field, width, mode="constant") - own * field
    predicted = np.zeros(values.size)
    predicted[:cells] = (sums / np.maximum(weights, _TINY)).ravel()
    return predicted


def _on_h3(
    domain: H3Domain, values: Floats, used: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """Smooth values on H3 cells, which have no rows and columns, by distance on the sphere."""
    from scipy.sparse import csr_matrix
    from scipy.spatial import cKDTree

    latitudes, longitudes = domain.centres()
    points = _unit_vectors(np.radians(latitudes), np.radians(longitudes))
    cells = len(points)
    tree = cKDTree(points)
    distances = np.asarray(tree.query(points, k=min(2, cells))[0]).reshape(cells, -1)
    spacing = float(np.median(distances[:, -1])) or 1.0
    mask = used[:cells].astype(np.float64)
    masked = mask * values[:cells]
    for width in widths:
        radius = _KERNEL_RADIUS * width
        if cells * np.pi * radius**2 > _MAX_PAIRS:
            break
        pairs = tree.sparse_distance_matrix(tree, radius * spacing, output_type="coo_matrix")
        apart = pairs.row != pairs.col
        kernel = np.exp(-0.5 * (pairs.data[apart] / (width * spacing)) ** 2)
        K = csr_matrix((kernel, (pairs.row[apart], pairs.col[apart])), shape=(cells, cells))
        predicted = np.zeros(values.size)
        predicted[:cells] = (K @ masked) / np.maximum(K @ mask, _TINY)
        yield width, predicted


def _unit_vectors(latitudes: Floats, longitudes: Floats) -> Floats:
    """Return points on the unit sphere, one row each."""
    x = np.cos(latitudes) * np.cos(longitudes)
    y = np.cos(latitudes) * np.sin(longitudes)
    z = np.sin(latitudes)
    return np.column_stack([x, y, z])
