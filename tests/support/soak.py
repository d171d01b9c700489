"""The soak benchmark, imported from its folder."""

import sys
from unittest import mock

from support.paths import ROOT

with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
    import soak
    import soak_growth
    import soak_plan

Growth = soak_growth.Growth
ProcessSample = soak_growth.ProcessSample
SoakPlan = soak_plan.SoakPlan
run_soak = soak.run_soak
