"""One pass up a tree and one pass down give the distribution of every cell, exactly.

Upward, every node collects what the reports of the cells below it say about its intensity.
Downward, every node learns what all other cells say. Per level, that is two products of a matrix of
nodes × states and the level's transitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domains.layout import Tree
from sfumato.estimation.decoders.intensities import Floats32
from sfumato.foundation.arrays import Floats

__all__ = ["UpwardPass", "evidence_of_shapes"]

_MAX_ENTRIES = 2**20  # of the messages of one level, for all shapes that are passed up together


@dataclass(frozen=True, eq=False)
class UpwardPass:
    """The messages of every level: ``P(reports below a node | its parent's state)``, scaled.

    ``log_evidence`` is the logarithm of the density of all reports, up to the likelihoods' scale.
    """

    tree: Tree
    matrices: Sequence[Floats32]
    root: Floats32
    messages: list[Floats32]
    log_evidence: float

    @classmethod
    def run(
        cls, rows: Floats32, tree: Tree, matrices: Sequence[Floats32], root: Floats32
    ) -> "UpwardPass":
        """Pass the cells' likelihoods up to the root, whose distribution is ``root``."""
        messages = []
        log_evidence = 0.0
        A = rows
        for merge, T in zip(tree, matrices, strict=False):
            M = np.empty((A.shape[0] + 1, A.shape[1]), dtype=np.float32)
            np.matmul(A, T.T, out=M[:-1])
            M[-1] = 1.0  # a missing child says nothing
            messages.append(M)
            A = M[merge.first]
            A *= M[merge.second]
            largest = A.max(axis=1, keepdims=True)
            A /= largest
            log_evidence += float(np.log(largest).sum(dtype=np.float64))
        log_evidence += float(np.log(A[0] @ root))
        return cls(tree, matrices, root, messages, log_evidence)

    def predictions(self) -> Floats32:
        """Return each cell's distribution, given the reports of all other cells."""
        A = self.root[None, :]
        for merge, T, M in zip(
            self.tree[::-1],
            self.matrices[len(self.tree) - 1 :: -1],
            self.messages[::-1],
            strict=False,
        ):
            B = np.empty((M.shape[0], M.shape[1]), dtype=np.float32)
            # What a node learns from above and from its sibling. The last row collects the
            # messages to missing children.
            B[merge.second] = A * M[merge.first]
            B[merge.first] = A * M[merge.second]
            A = B[:-1] @ T
            A /= A.sum(axis=1, keepdims=True)
        return A


def evidence_of_shapes(
    rows: Floats32, tree: Tree, shapes: Sequence[Sequence[Floats32]], root: Floats32
) -> Floats:
    """Return the log evidence of each shape, given its transitions at every level.

    It is ``UpwardPass.run(…).log_evidence`` of each. In small domains, many shapes are passed up
    together, because calls take longer than arithmetic.
    """
    together = max(1, _MAX_ENTRIES // rows.size)
    parts = []
    for start in range(0, len(shapes), together):
        parts.append(_pass_up_together(rows, tree, shapes[start : start + together], root))
    return np.concatenate(parts)


def _pass_up_together(
    rows: Floats32, tree: Tree, shapes: Sequence[Sequence[Floats32]], root: Floats32
) -> Floats:
    log_evidence = np.zeros(len(shapes))
    A = rows[None, :, :]
    for level, merge in enumerate(tree):
        T = np.stack([matrices[level].T for matrices in shapes])
        M = np.empty((len(shapes), A.shape[1] + 1, A.shape[2]), dtype=np.float32)
        np.matmul(A, T, out=M[:, :-1])
        M[:, -1] = 1.0  # a missing child says nothing
        A = M[:, merge.first]
        A *= M[:, merge.second]
        largest = A.max(axis=2, keepdims=True)
        A /= largest
        log_evidence += np.log(largest).sum(axis=(1, 2), dtype=np.float64)
    return log_evidence + np.log(A[:, 0] @ root)
