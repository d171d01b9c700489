"""Strata: symbols that a public number, or their neighbours, suggest to be alike."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.errors import ContextMismatch
from sfumato.estimation.decoders.pools import Pools
from sfumato.foundation.arrays import Booleans, Floats

__all__ = ["WIDTHS", "has_neighbours", "predicted_by_neighbours", "strata_of"]

WIDTHS = (0.7, 1.4, 2.8)
"""Of neighbourhoods, in cells: the tally chooses among them."""

_SMALLEST_STRATUM = 500  # symbols: fewer cannot tell what a prior looks like
_MOST_STRATA = 12


def strata_of(covariate: Floats) -> NDArray[np.int64]:
    """Equally large strata in the order of a covariate; equal values stay together.

    >>> np.bincount(strata_of(np.arange(1200.0))).tolist()
    [600, 600]
    """
    count = int(np.clip(covariate.size // _SMALLEST_STRATUM, 1, _MOST_STRATA))
    edges = np.quantile(covariate, np.arange(1, count) / count) if covariate.size else np.empty(0)
    return np.unique(np.searchsorted(edges, covariate, side="right"), return_inverse=True)[
        1
    ].reshape(covariate.shape)


def has_neighbours(domain: Domain) -> bool:
    """Whether the domain's symbols are cells of a map."""
    return isinstance(domain, GridDomain | H3Domain)


def predicted_by_neighbours(
    domain: Domain, pools: Pools, shares: Floats, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """For each width of neighbourhood, what the neighbours of a pooled symbol say of it, in units of its group's mean.

    ``Σ_{x2 ≠ x} K(x, x2) share_x2 / Σ_{x2 ≠ x} K(x, x2)`` with a Gaussian K: a cell's own share has no part in it.
    """
    smoothed: Iterator[tuple[float, Floats]]
    if isinstance(domain, GridDomain):
        smoothed = ((width, _on_grid(domain, shares, pools.pooled, width)) for width in widths)
    elif isinstance(domain, H3Domain):
        smoothed = _on_cells(domain, shares, pools.pooled, widths)
    else:
        raise ContextMismatch(
            "this domain has no neighbours; use the empirical-bayes decoder, perhaps with a covariate."
        )
    for width, predicted in smoothed:
        yield width, predicted[pools.pooled] / pools.means[pools.pooled]


def _on_grid(domain: GridDomain, values: Floats, used: Booleans, width: float) -> Floats:
    from scipy.ndimage import gaussian_filter

    cells, predicted = domain.cells, np.zeros(values.size)
    mask = used[:cells].astype(np.float64).reshape(domain.shape)
    field = mask * values[:cells].reshape(domain.shape)
    centre = np.zeros((2 * int(4 * width + 0.5) + 1,) * 2)
    centre[centre.shape[0] // 2, centre.shape[1] // 2] = 1.0
    own = gaussian_filter(centre, width, mode="constant").max()
    weights = gaussian_filter(mask, width, mode="constant") - own * mask
    sums = gaussian_filter(field, width, mode="constant") - own * field
    predicted[:cells] = (sums / np.maximum(weights, 1e-12)).ravel()
    return predicted


def _on_cells(
    domain: H3Domain, values: Floats, used: Booleans, widths: Sequence[float]
) -> Iterator[tuple[float, Floats]]:
    """H3 cells have no rows and columns: neighbours are those within a few cells' distance on the sphere."""
    from scipy.sparse import csr_matrix
    from scipy.spatial import cKDTree

    latitude, longitude = (np.radians(angles) for angles in domain.centres())
    points = np.column_stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    )
    tree = cKDTree(points)
    nearest = np.asarray(tree.query(points, k=min(2, len(points)))[0]).reshape(len(points), -1)
    spacing = float(np.median(nearest[:, -1])) or 1.0
    mask = used[: len(points)].astype(np.float64)
    for width in widths:
        radius = 2.5 * width * spacing
        if len(points) * np.pi * (2.5 * width) ** 2 > 3e7:  # more pairs than are worth holding
            break
        distances = tree.sparse_distance_matrix(tree, radius, output_type="coo_matrix")
        apart = distances.row != distances.col
        kernel = np.exp(-0.5 * (distances.data[apart] / (width * spacing)) ** 2)
        K = csr_matrix(
            (kernel, (distances.row[apart], distances.col[apart])), shape=(len(points),) * 2
        )
        predicted = np.zeros(values.size)
        predicted[: len(points)] = (K @ (mask * values[: len(points)])) / np.maximum(
            K @ mask, 1e-12
        )
        yield width, predicted
