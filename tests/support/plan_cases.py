"""The benchmark of plans, imported from its folder."""

import sys
from unittest import mock

from support.paths import ROOT

with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
    import plans

CONFIDENCE = plans.CONFIDENCE
Crowd = plans.Crowd
crowds = plans.crowds
examine = plans.examine
faults = plans.faults
tally_errors = plans.tally_errors
