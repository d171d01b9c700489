"""Find a mechanism that satisfies a context, and bound the risk of any such mechanism."""

from sfumato.designer.bounds import lower_bound_risk, lower_bound_risk_at_uniform, ye_barg_bound
from sfumato.designer.choose import mechanism_for
from sfumato.designer.component import Round
from sfumato.designer.design import Design, design
from sfumato.designer.exponential import exponential_response
from sfumato.designer.recognise import recognise

__all__ = [
    "Design",
    "Round",
    "design",
    "exponential_response",
    "lower_bound_risk",
    "lower_bound_risk_at_uniform",
    "mechanism_for",
    "recognise",
    "ye_barg_bound",
]
