"""Planning: how many people a survey needs, and bounds that no mechanism can beat."""

from sfumato.designer import lower_bound_risk, lower_bound_risk_at_uniform, ye_barg_bound
from sfumato.planning.people_bounds import (
    UpperBounds,
    people_lower_bound,
    people_upper_bound,
    sample_complexity,
    upper_bounds,
)
from sfumato.planning.plan import Plan, plan
from sfumato.planning.predict import MAX_PEOPLE, hardest_for_l2, hardest_for_tv
from sfumato.planning.rows import PlanRow

__all__ = [
    "MAX_PEOPLE",
    "Plan",
    "PlanRow",
    "UpperBounds",
    "hardest_for_l2",
    "hardest_for_tv",
    "lower_bound_risk",
    "lower_bound_risk_at_uniform",
    "people_lower_bound",
    "people_upper_bound",
    "plan",
    "sample_complexity",
    "upper_bounds",
    "ye_barg_bound",
]
