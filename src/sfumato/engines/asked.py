"""What is asked of workers: a survey and the columns of its answers, and the input in pieces."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from sfumato.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, Piece, answer_batches, flows, pieces_of

__all__ = ["Asked", "input_pieces"]


class Asked:
    """Travels as the bytes of the resolved survey, which are read once where they arrive."""

    def __init__(self, resolved: bytes, columns: AnswerColumns) -> None:
        self._resolved, self._columns = resolved, columns

    @cached_property
    def _survey(self) -> Survey:
        return Survey.of_resolved(self._resolved)

    @property
    def mechanism(self) -> Mechanism:
        """What answers."""
        return self._survey.mechanism

    def symbols(self, piece: Piece, rows_done: Callable[[int], None]) -> Iterator[Symbols]:
        """The answers of a piece, batch by batch."""
        return answer_batches(piece, self._columns, self._survey.context.domain, rows_done=rows_done)

    def __getstate__(self) -> dict[str, object]:
        return {"_resolved": self._resolved, "_columns": self._columns}


def input_pieces(paths: Sequence[str], workers: int) -> tuple[list[Piece], int]:
    """All files in pieces, and how many workers can share them: what flows belongs to this process."""
    pieces = [piece for path in paths for piece in pieces_of(path)]
    return pieces, 1 if any(map(flows, paths)) else workers
