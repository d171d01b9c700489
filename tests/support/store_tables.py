"""The tables of a store, read without the code under test."""

from sqlalchemy import MetaData, select

from sfumato.aggregator.store import backend_for


def dump(url):
    """Every table as it lies in the database: columns, and rows as sets of plain tuples."""
    engine = backend_for(url).engine
    tables = MetaData()
    with engine.connect() as connection:
        tables.reflect(connection)
        found = {
            name: (
                tuple(column.name for column in table.columns),
                {
                    tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
                    for row in connection.execute(select(table))
                },
            )
            for name, table in tables.tables.items()
        }
    engine.dispose()
    return found
