"""The default decoder: use what the domain knows of its symbols, as far as the reports agree."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.layout import Layout, Nested
from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.decoder import DecoderResult, Pools, check_covariate
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes
from sfumato.estimation.decoders.halves import mix_with_projection
from sfumato.estimation.decoders.model_average import decode_cells
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.notebook import FieldsView
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Auto"]

_MIN_CELLS = 16  # fewer cells say too little about how they lie
_MIN_REPORTS = 2


@dataclass(frozen=True, eq=False)
class Auto(FieldsView):
    """An average of models, with weights determined by the reports.

    If the domain has a layout (an order, a grid, H3 cells), or if there is a root, the models are
    those of ``model_average.py``. Otherwise, or if there is a covariate, it is empirical Bayes,
    mixed with projection.

    ``covariate``: a public number for each symbol.
    ``root``: a distribution that the answers may resemble, such as the estimate for all groups when
    you decode one group, or that of last month.
    """

    covariate: ArrayLike | None = None
    root: ArrayLike | None = None
    name: ClassVar[str] = "auto"

    def decode(self, mechanism: Mechanism, tally: Tally) -> DecoderResult:
        """Return the average, or the projection if there are too few reports or symbols."""
        root = self._check_root(mechanism.inputs)
        layout, cells = self._layout(mechanism)
        if layout is not None and tally.reports >= _MIN_REPORTS:
            pools = Pools.from_tally(mechanism, tally)
            if pools.pooling_mask[cells].any():
                own_errors = np.hypot(mechanism.scores.standard_errors(tally), 1 / tally.reports)
                shares = CellShares.from_pools(layout, cells, pools, own_errors)
                return decode_cells(shares, pools, mechanism, root)
        return mix_with_projection(EmpiricalBayes(self.covariate), mechanism, tally)

    def averages_models(self, mechanism: Mechanism) -> bool:
        """Whether the decoder averages models for reports of this mechanism."""
        return self._layout(mechanism)[0] is not None

    def _layout(self, mechanism: Mechanism) -> tuple[Layout | None, Symbols]:
        """Return the layout and the symbols of its cells, or ``None`` without a usable one."""
        domain = mechanism.context.domain
        layout = domain.layout
        if self.covariate is None and layout is not None and layout.size >= _MIN_CELLS:
            return layout, domain.cells
        if self.root is not None:
            return Nested(mechanism.inputs, ()), np.arange(mechanism.inputs)
        return None, np.arange(0)

    def _check_root(self, inputs: int) -> Floats | None:
        if self.root is None:
            return None
        if self.covariate is not None:
            raise InvalidArgument("pass either a covariate or a root, not both.")
        root = check_covariate(self.root, inputs, "root")
        if root.min() < 0 or root.max() <= 0:
            raise InvalidArgument("root must be a distribution: no entry below 0, and not all 0.")
        return root
