"""Cells below a root: their shares in units of the root's, on a scale of intensities."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.intensities import Floats32, IntensityScale, Likelihoods
from sfumato.estimation.decoders.transitions import Transitions
from sfumato.foundation.arrays import Floats

__all__ = ["RootedCells"]

_MIN_ROOT = 0.02  # relative to the root's maximum; smaller cells do not shape the scale


@dataclass(frozen=True, eq=False)
class RootedCells:
    """Shares relative to a root, with their likelihoods on a scale of intensities."""

    shares: CellShares
    root: Floats
    y: Floats
    s: Floats
    scale: IntensityScale
    likelihoods: Likelihoods
    transitions: Transitions

    @classmethod
    def below(cls, shares: CellShares, root: Floats) -> "RootedCells":
        """Divide the shares by a root whose mean is 1."""
        y = shares.y / root
        s = shares.s / root
        is_visible = root > _MIN_ROOT * root.max()
        scale = IntensityScale.spanning(y[is_visible], s[is_visible], y.size)
        # Some cells that no model may move have smaller errors than the scale can resolve. If they
        # were "impossible", they would decide between models.
        s = np.where(shares.movable_mask, s, np.maximum(s, scale.distances_in_gap(y)))
        likelihoods = Likelihoods.of_shares(y, s, scale)
        return cls(shares, root, y, s, scale, likelihoods, Transitions.on(scale))

    @cached_property
    def at_root(self) -> Floats32:
        """The distribution of a node whose intensity is that of the root."""
        return self.scale.at(1.0)

    @cached_property
    def log_unit(self) -> float:
        """What to add to log densities of ``likelihoods.rows`` for the density of the shares."""
        return self.likelihoods.log_scale - float(np.log(self.root).sum())

    def log_density(self, prediction: Floats32) -> float:
        """Return the log density of the shares if every cell has this distribution."""
        return float(np.log(self.likelihoods.rows @ prediction).sum(dtype=np.float64))
