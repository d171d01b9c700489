"""The modules of `benchmarks/decoders.py`, for tests."""

from support.paths import ROOT, modules_in

with modules_in(ROOT / "benchmarks"):
    import decoder_case
    import decoder_cases
    import decoder_figures
    import decoder_limits
    import decoder_rivals
    import decoder_table
    import held_out_cases

CaseResult = decoder_table.CaseResult
DecoderCase = decoder_case.DecoderCase
DecoderFigures = decoder_figures.DecoderFigures
HeldOutCase = held_out_cases.HeldOutCase
LIMITS = decoder_limits.LIMITS
Ratios = decoder_table.Ratios
cell_cases = decoder_cases.cell_cases
cases_in_order = decoder_cases.cases_in_order
counts_digest = held_out_cases.counts_digest
decode = decoder_rivals.decode
load_held_out = held_out_cases.load_held_out
tally_checksum = decoder_figures.tally_checksum
