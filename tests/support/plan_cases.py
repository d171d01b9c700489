"""The benchmark of plans, imported from its folder."""

from support.paths import ROOT, modules_in

with modules_in(ROOT / "benchmarks"):
    import plans

CONFIDENCE = plans.CONFIDENCE
Crowd = plans.Crowd
crowds = plans.crowds
examine = plans.examine
faults = plans.faults
tally_errors = plans.tally_errors
