"""Data files of statistics programs: SPSS (.sav, .zsav) and Stata (.dta).

An answer is its value label, if the column has value labels. Missing values of all kinds are null.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sfumato.errors import InvalidTable, MissingExtra
from sfumato.foundation.arrays import Arrow
from sfumato.foundation.installation import install_hint
from sfumato.foundation.missing_values import is_missing_value
from sfumato.tables.cell_values import array_from_values, value_text
from sfumato.tables.number_column import parse_numbers
from sfumato.tables.table import ColumnTypes, Table

__all__ = ["open_spss", "open_stata"]

_CHUNK_ROWS = 2**18  # to find a chunk, the library passes over all rows before it


def open_spss(name: str, path: str) -> Table:
    """Open an SPSS file."""
    return _StatisticsFile(name, path, _require_pyreadstat().read_sav).table()


def open_stata(name: str, path: str) -> Table:
    """Open a Stata file."""
    return _StatisticsFile(name, path, _require_pyreadstat().read_dta).table()


def _require_pyreadstat() -> Any:  # noqa: ANN401 - a module
    try:
        import pyreadstat
    except ImportError:
        raise MissingExtra(
            f"SPSS and Stata files require pyreadstat: {install_hint('tables')}"
        ) from None
    return pyreadstat


class _StatisticsFile:
    def __init__(self, name: str, path: str, read: Any) -> None:  # noqa: ANN401
        self._name = name
        self._path = path
        self._read = read
        _, self._metadata = self._call(metadataonly=True)

    def table(self) -> Table:
        return Table(
            self._name,
            list(self._metadata.column_names),
            self._read_batches,
            label_order=self._label_order,
        )

    def _label_order(self, column: str) -> list[str]:
        """Return the value labels of a column in the order of their values."""
        labels = self._metadata.variable_value_labels.get(column, {})
        return [labels[value] for value in sorted(labels, key=_value_key)]

    def _call(self, **options: object) -> tuple[Mapping[str, list[object]], Any]:
        # The library raises its own errors, which derive from Exception, and may quote the data.
        try:
            return self._read(self._path, output_format="dict", **options)
        except Exception:  # noqa: BLE001, S110
            pass
        raise InvalidTable(
            f"{self._name} is not a valid SPSS or Stata file (truncated, corrupt or encrypted)."
        )

    def _read_batches(
        self, column_types: ColumnTypes, row_groups: Sequence[int] | None
    ) -> Iterator[Arrow]:
        first_row = 0
        while True:
            values_of_column, _ = self._call(
                usecols=list(column_types), row_offset=first_row, row_limit=_CHUNK_ROWS
            )
            arrays = []
            for column, type_ in column_types.items():
                values = values_of_column[column]
                arrays.append(self._column_array(values, column, type_, first_row))
            batch = pa.RecordBatch.from_arrays(arrays, list(column_types))
            yield batch
            first_row += batch.num_rows
            if batch.num_rows < _CHUNK_ROWS:
                break

    def _column_array(
        self, values: list[object], column: str, type_: Arrow, first_row: int
    ) -> Arrow:
        if type_ is not None:
            return self._number_array(values, column, type_, first_row)
        labels = self._metadata.variable_value_labels.get(column)
        if not labels:
            return array_from_values(values)
        return pa.array([_label_text(value, labels) for value in values], pa.string())

    def _number_array(
        self, values: list[object], column: str, type_: Arrow, first_row: int
    ) -> Arrow:
        texts = [None if value is None else value_text(value) for value in values]
        return parse_numbers(
            self._name, column, type_, texts, lambda index: f"row {first_row + index + 1}"
        )


def _value_key(value: object) -> tuple[bool, float, str]:
    """Return a key that sorts numbers before codes of missing values, which are text."""
    if isinstance(value, int | float):
        return False, float(value), ""
    return True, 0.0, str(value)


def _label_text(value: object, labels: Mapping[object, str]) -> str | None:
    """Return the label of a value, or the value itself as text if it has no label."""
    if is_missing_value(value):
        return None
    label = labels.get(value)
    return value_text(value) if label is None else label
