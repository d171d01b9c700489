"""Read a table as lists of Python values."""

from sfumato.tables import open_table


def read_values(path, *columns, types=None, delimiter=None):
    """Return the values of the columns, or of one column, in all batches."""
    with open_table(str(path), delimiter=delimiter) as opened:
        batches = list(opened.batches(types or dict.fromkeys(columns)))
    values = []
    for column in types or columns:
        values.append([value for batch in batches for value in batch.column(column).to_pylist()])
    return values[0] if len(values) == 1 else values


def read_types(path, column):
    """Return the Arrow types of a column's batches, as text."""
    with open_table(str(path)) as opened:
        return {str(batch.column(0).type) for batch in opened.batches({column: None})}
