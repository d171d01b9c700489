"""What has been counted: the same reports may come under two file names."""

from collections.abc import Set

from sfumato.errors import InvalidTable

__all__ = ["Once"]


class Once:
    """Identifiers of files and tallies, each of which may be counted once.

    >>> once = Once()
    >>> once.demand({"a"}, "monday.csv")
    >>> once.demand({"b", "a"}, "copy.csv")
    Traceback (most recent call last):
    sfumato.errors.InvalidTable: copy.csv holds reports that monday.csv holds too; they would be counted twice. ...
    """

    def __init__(self) -> None:
        self._held_by: dict[str, str] = {}

    def demand(self, ids: Set[str], name: str) -> None:
        """Refuse a file if one of these identifiers was counted before; otherwise they are counted now."""
        for id_ in ids & self._held_by.keys():
            raise InvalidTable(
                f"{name} holds reports that {self._held_by[id_]} holds too; they would be counted twice. Leave one out."
            )
        self._held_by.update(dict.fromkeys(ids, name))
