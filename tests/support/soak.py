"""The soak benchmark, imported from its folder."""

from support.paths import ROOT, modules_in

with modules_in(ROOT / "benchmarks"):
    import soak
    import soak_growth
    import soak_plan

Growth = soak_growth.Growth
ProcessSample = soak_growth.ProcessSample
SoakPlan = soak_plan.SoakPlan
run_soak = soak.run_soak
