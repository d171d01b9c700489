"""Search for the best mechanism by column generation over extreme rays."""

from sfumato.designer.search.master import Objective
from sfumato.designer.search.rays import CrossSection
from sfumato.designer.search.search import Solution, search_rounds, to_table

__all__ = ["CrossSection", "Objective", "Solution", "search_rounds", "to_table"]
