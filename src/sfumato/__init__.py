"""Context-aware local differential privacy: blur people's answers by degrees, recover the crowd.

>>> import sfumato as sf
>>> context = sf.HighLow(["park", "café", "clinic"], sensitive=["clinic"], epsilon=1.0)
>>> mechanism = sf.mechanism_for(context)
>>> tally = mechanism.tally(mechanism.privatize([0, 1, 2, 0, 0]))
>>> tally.reports
5

Names are imported from their home when first used, so that ``sfumato --help`` loads no NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.auditing import Audit, audit
    from sfumato.client import Client
    from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
    from sfumato.contexts import (
        Blocks,
        Context,
        ContextSum,
        HighLow,
        Metric,
        PrivacyMatrix,
        Tiers,
        Uniform,
    )
    from sfumato.designer import Design, design, mechanism_for
    from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
    from sfumato.estimation import Estimate, decoders, estimate
    from sfumato.mechanisms import (
        BinaryResponse,
        BlockResponse,
        ComposedResponse,
        GroupResponse,
        HighLowResponse,
        Mechanism,
        PlainResponse,
        ProcessedResponse,
        ProductResponse,
        TableResponse,
        UnionResponse,
    )
    from sfumato.planning import Plan, plan
    from sfumato.promises import (
        Certificate,
        ErrorRegion,
        PrivacyLoss,
        certify,
        check_mechanism,
        compose,
        error_region,
        posterior_odds,
        privacy_loss,
    )
    from sfumato.survey import Survey
    from sfumato.tally import Tally

__all__ = [
    "Audit",
    "BestCode",
    "BinaryResponse",
    "BlockResponse",
    "Blocks",
    "Certificate",
    "Client",
    "ComposedResponse",
    "Context",
    "ContextSum",
    "CyclicDesign",
    "Design",
    "Domain",
    "ErrorRegion",
    "Estimate",
    "GridDomain",
    "GroupResponse",
    "H3Domain",
    "HadamardCode",
    "HighLow",
    "HighLowResponse",
    "IntegerDomain",
    "Mechanism",
    "Metric",
    "PlainResponse",
    "Plan",
    "PrivacyLoss",
    "PrivacyMatrix",
    "ProcessedResponse",
    "ProductResponse",
    "RandomizedCode",
    "Survey",
    "TableResponse",
    "Tally",
    "Tiers",
    "Uniform",
    "UnionResponse",
    "audit",
    "certify",
    "check_mechanism",
    "compose",
    "decoders",
    "design",
    "error_region",
    "errors",
    "estimate",
    "mechanism_for",
    "plan",
    "posterior_odds",
    "privacy_loss",
]

_HOMES = {
    "auditing": ("Audit", "audit"),
    "client": ("Client",),
    "codes": ("BestCode", "CyclicDesign", "HadamardCode", "RandomizedCode"),
    "contexts": (
        "Blocks",
        "Context",
        "ContextSum",
        "HighLow",
        "Metric",
        "PrivacyMatrix",
        "Tiers",
        "Uniform",
    ),
    "designer": ("Design", "design", "mechanism_for"),
    "domains": ("Domain", "GridDomain", "H3Domain", "IntegerDomain"),
    "estimation": ("Estimate", "estimate"),
    "mechanisms": (
        "BinaryResponse",
        "BlockResponse",
        "ComposedResponse",
        "GroupResponse",
        "HighLowResponse",
        "Mechanism",
        "PlainResponse",
        "ProcessedResponse",
        "ProductResponse",
        "TableResponse",
        "UnionResponse",
    ),
    "planning": ("Plan", "plan"),
    "promises": (
        "Certificate",
        "ErrorRegion",
        "PrivacyLoss",
        "certify",
        "check_mechanism",
        "compose",
        "error_region",
        "posterior_odds",
        "privacy_loss",
    ),
    "survey": ("Survey",),
    "tally": ("Tally",),
}
_MODULES = {"decoders": "sfumato.estimation.decoders", "errors": "sfumato.errors"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
