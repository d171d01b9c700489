"""What is asked of workers: a survey and the columns of its answers, and the input in pieces."""

from collections.abc import Callable, Iterator, Sequence

from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, FileSlice, answer_batches, is_stream, slice_file

__all__ = ["Asked", "input_pieces"]


class Asked:
    """In this process the survey as it is; to a worker it travels as the bytes of its resolved form."""

    def __init__(self, survey: Survey, columns: AnswerColumns) -> None:
        self._survey, self._columns = survey, columns

    @property
    def mechanism(self) -> Mechanism:
        """What answers."""
        return self._survey.mechanism

    def symbols(self, piece: FileSlice, on_progress: Callable[[int], None]) -> Iterator[Symbols]:
        """The answers of a piece, batch by batch."""
        return answer_batches(
            piece, self._columns, self._survey.context.domain, on_progress=on_progress
        )

    def __getstate__(self) -> tuple[bytes, AnswerColumns]:
        return self._survey.resolved(), self._columns

    def __setstate__(self, state: tuple[bytes, AnswerColumns]) -> None:
        self._survey, self._columns = Survey.of_resolved(state[0]), state[1]


def input_pieces(paths: Sequence[str], workers: int) -> tuple[list[FileSlice], int]:
    """All files in pieces, and how many workers can share them: only this process can read a stream."""
    pieces = [piece for path in paths for piece in slice_file(path)]
    return pieces, 1 if any(map(is_stream, paths)) else workers
