"""Planning: how many people a survey needs, and what nobody can do better than."""

from sfumato.designer.bounds import lower_bound_risk, lower_bound_risk_at_uniform, ye_barg_bound
from sfumato.planning.chi_square import chi_square, uncovered
from sfumato.planning.fewest_people import lower_bound_people, lower_bound_people_for
from sfumato.planning.hard_families import (
    HardFamily,
    block_family,
    families_of,
    free_family,
    high_low_family,
    sensitive_family,
)
from sfumato.planning.plan import Compared, Plan, plan
from sfumato.planning.upper_bounds import (
    UpperBounds,
    sample_complexity,
    upper_bound_people,
    upper_bounds,
)

__all__ = [
    "Compared",
    "HardFamily",
    "Plan",
    "UpperBounds",
    "block_family",
    "chi_square",
    "families_of",
    "free_family",
    "high_low_family",
    "lower_bound_people",
    "lower_bound_people_for",
    "lower_bound_risk",
    "lower_bound_risk_at_uniform",
    "plan",
    "sample_complexity",
    "sensitive_family",
    "uncovered",
    "upper_bound_people",
    "upper_bounds",
    "ye_barg_bound",
]
