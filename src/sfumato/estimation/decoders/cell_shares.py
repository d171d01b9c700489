"""The noisy shares of cells that lie somewhere, as the models of a decoder see them.

Models speak of intensities θ: shares in units of the mean share of all cells. Each model gives a
posterior distribution of every θ, and ``levels.py`` makes an estimate of it.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.domains.layout import Layout
from sfumato.estimation.decoders.decoder import Pools
from sfumato.estimation.decoders.levels import Posterior, combine_at_levels
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.simplex import project_groups

__all__ = ["CellShares", "ModelResult", "ShareModel"]

_MIN_ERROR = 1e-4  # of an intensity


class ShareModel(Protocol):
    """What a distribution over cells might look like: smooth, clustered, or without order.

    ``title``: what people call it.
    ``log_weight``: the logarithm of the belief in the model times its evidence, the density of the
    shares under the model. Evidence is in the same unit for all models.
    """

    title: str
    log_weight: float

    def decode(self) -> "ModelResult":
        """Return the posterior."""
        ...


@dataclass(frozen=True, eq=False)
class ModelResult:
    """What a model makes of the reports.

    ``posterior``: the distribution of every intensity.
    ``gain``: to be added to the model's ``log_weight``. Evidence is that of single members of the
    model, such as one tree. A model that decodes with many members at once, and predicts each cell
    from the others better than they do, has gained that difference.
    ``unordered_part``: the part of the posterior for which it does not matter where cells lie.
    """

    posterior: Posterior
    gain: float = 0.0
    unordered_part: float = 0.0


@dataclass(frozen=True, eq=False)
class CellShares:
    """The shares of a layout's cells, in its order, as intensities.

    ``y``, ``s``: unbiased estimates and their standard errors.
    ``symbols``: the symbols of the cells. ``mean_share``: the mean share of a cell.
    ``group_of``: the group of each cell. ``totals``: the total intensity of the movable cells in
    each group. ``movable_mask``: the cells that a model may move; the others, such as symbols that
    are sent in clear, are best estimated by their own counts.
    """

    layout: Layout
    y: Floats
    s: Floats
    symbols: Symbols
    mean_share: float
    group_of: Symbols
    totals: Floats
    movable_mask: Booleans

    @classmethod
    def from_pools(
        cls, layout: Layout, symbols: Symbols, pools: Pools, own_errors: Floats
    ) -> "CellShares":
        """Select the cells' symbols from the pools.

        ``own_errors``: the standard errors of symbols that are not pooled.
        """
        movable_mask = pools.pooling_mask[symbols]
        is_fixed = np.ones(pools.unbiased.size, dtype=np.bool_)
        is_fixed[symbols[movable_mask]] = False
        fixed_shares = np.where(is_fixed, np.maximum(pools.unbiased, 0.0), 0.0)
        fixed_totals = np.bincount(pools.group_of, fixed_shares, minlength=pools.totals.size)
        movable_totals = np.maximum(pools.totals - fixed_totals, 0.0)
        cell_total = float(movable_totals.sum() + fixed_shares[symbols].sum())
        mean_share = max(cell_total, 1 / pools.report_count) / layout.size
        errors = np.where(movable_mask, pools.errors[symbols], own_errors[symbols])
        return cls(
            layout=layout,
            y=pools.unbiased[symbols] / mean_share,
            s=np.maximum(errors / mean_share, _MIN_ERROR),
            symbols=symbols,
            mean_share=mean_share,
            group_of=pools.group_of[symbols],
            totals=movable_totals / mean_share,
            movable_mask=movable_mask,
        )

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.y.size

    def with_errors(self, s: Floats) -> "CellShares":
        """Return the same shares with other standard errors."""
        return replace(self, s=s)

    def best_intensities(self, posterior: Posterior) -> Floats:
        """Return the intensities with the smallest expected total variation."""
        weights = self.movable_mask.astype(np.float64)
        return combine_at_levels(posterior, self.group_of, weights, self.totals)

    def frequencies(self, pools: Pools, theta: Floats) -> Floats:
        """Return the frequencies of all symbols, given the intensities of the cells."""
        frequencies = pools.unbiased.copy()
        movable = self.movable_mask
        frequencies[self.symbols[movable]] = theta[movable] * self.mean_share
        return project_groups(frequencies, pools.group_of, pools.totals)
