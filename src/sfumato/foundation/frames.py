"""Arrow tables as data frames of pandas and polars, which are optional."""

from typing import TYPE_CHECKING

from sfumato.errors import MissingExtra
from sfumato.foundation.arrays import Arrow

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl

__all__ = ["ArrowTable", "to_pandas", "to_polars"]


class ArrowTable:
    """A base class for results that are tables: it converts ``to_arrow()`` to data frames."""

    def to_arrow(self) -> Arrow:
        """Return the result as a ``pyarrow.Table``."""
        raise NotImplementedError

    def to_pandas(self) -> "pd.DataFrame":
        """Return the ``to_arrow`` table as a pandas data frame. Requires pandas."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> "pl.DataFrame":
        """Return the ``to_arrow`` table as a polars data frame. Requires polars."""
        return to_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the ``to_arrow`` table to any library that reads Arrow (polars, DuckDB, …)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def to_pandas(table: Arrow) -> "pd.DataFrame":
    """Return an Arrow table as a pandas data frame; raise ``MissingExtra`` without pandas."""
    try:
        import pandas  # noqa: F401 - check that pandas, which pyarrow uses, is installed
    except ImportError:
        raise MissingExtra("a data frame needs pandas: pip install pandas") from None
    return table.to_pandas()


def to_polars(table: Arrow) -> "pl.DataFrame":
    """Return an Arrow table as a polars data frame; raise ``MissingExtra`` without polars."""
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("a polars data frame needs polars: pip install polars") from None
    return pl.DataFrame(table)
