"""The public names of Sfumato, and where each is defined.

This is the only list: both type checkers and ``__init__.py`` read it.
"""

from sfumato import errors as errors
from sfumato import simulation as simulation
from sfumato.auditing import Audit as Audit
from sfumato.auditing import audit as audit
from sfumato.client import Client as Client
from sfumato.codes import BestCode as BestCode
from sfumato.codes import CyclicDesign as CyclicDesign
from sfumato.codes import HadamardCode as HadamardCode
from sfumato.codes import RandomizedCode as RandomizedCode
from sfumato.contexts import Blocks as Blocks
from sfumato.contexts import Context as Context
from sfumato.contexts import ContextSum as ContextSum
from sfumato.contexts import HighLow as HighLow
from sfumato.contexts import Metric as Metric
from sfumato.contexts import PrivacyMatrix as PrivacyMatrix
from sfumato.contexts import Tiers as Tiers
from sfumato.contexts import Uniform as Uniform
from sfumato.contexts import union as union
from sfumato.designer import Design as Design
from sfumato.designer import design as design
from sfumato.designer import mechanism_for as mechanism_for
from sfumato.domains import Domain as Domain
from sfumato.domains import GridDomain as GridDomain
from sfumato.domains import H3Domain as H3Domain
from sfumato.domains import IntegerDomain as IntegerDomain
from sfumato.estimation import Estimate as Estimate
from sfumato.estimation import decoders as decoders
from sfumato.estimation import estimate as estimate
from sfumato.mechanisms import BinaryResponse as BinaryResponse
from sfumato.mechanisms import BlockResponse as BlockResponse
from sfumato.mechanisms import ComposedResponse as ComposedResponse
from sfumato.mechanisms import GroupResponse as GroupResponse
from sfumato.mechanisms import HighLowResponse as HighLowResponse
from sfumato.mechanisms import Mechanism as Mechanism
from sfumato.mechanisms import PlainResponse as PlainResponse
from sfumato.mechanisms import ProcessedResponse as ProcessedResponse
from sfumato.mechanisms import ProductResponse as ProductResponse
from sfumato.mechanisms import TableResponse as TableResponse
from sfumato.mechanisms import UnionResponse as UnionResponse
from sfumato.planning import Plan as Plan
from sfumato.planning import plan as plan
from sfumato.promises import Certificate as Certificate
from sfumato.promises import ErrorRegion as ErrorRegion
from sfumato.promises import PrivacyLoss as PrivacyLoss
from sfumato.promises import certify as certify
from sfumato.promises import check_mechanism as check_mechanism
from sfumato.promises import compose as compose
from sfumato.promises import error_region as error_region
from sfumato.promises import posterior_odds as posterior_odds
from sfumato.promises import privacy_loss as privacy_loss
from sfumato.survey import Survey as Survey
from sfumato.tally import Tally as Tally

__version__: str
