"""Randomisers of other libraries as black boxes for an audit: symbols in, reports out, by line.

    sfumato audit survey.toml -- /path/to/python examples/audit_adapters.py pure-ldp/OUE 8 1.0

The arguments are a name from the list below, the number of symbols and ε. Run it with the
interpreter that has the library; it does not need Sfumato. `audit_libraries.py` runs it for every
name.
"""

import sys
from collections.abc import Callable

Randomizer = Callable[[int], object]


# --- pure-ldp -------------------------------------------------------------------------------------


def _direct(k: int, epsilon: float) -> Randomizer:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    return DEClient(epsilon, k, index_mapper=int).privatise


def _unary(k: int, epsilon: float, optimised: bool) -> Randomizer:
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    client = UEClient(epsilon, k, use_oue=optimised, index_mapper=int)
    return lambda x: client.privatise(x).tolist()


def _hadamard_response(k: int, epsilon: float) -> Randomizer:
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )

    hashes = HadamardResponseServer(epsilon, k).get_hash_funcs()
    return HadamardResponseClient(epsilon, k, hashes, index_mapper=int).privatise


def _hadamard_mechanism(k: int, epsilon: float) -> Randomizer:
    from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient

    client = HadamardMechClient(epsilon, k, 1, index_mapper=int)
    return lambda x: list(client.privatise(x))


def _fast_local_hashing(k: int, epsilon: float) -> Randomizer:
    """Use 16 hash functions: a report contains its seed, and each seed must occur often."""
    from pure_ldp.frequency_oracles.local_hashing import FastLHClient

    return FastLHClient(epsilon, k, 16, use_olh=True, index_mapper=int).privatise


def _rappor(k: int, epsilon: float) -> Randomizer:
    """Use one cohort and one injective hash function: unary encoding by RAPPOR's code."""
    from pure_ldp.frequency_oracles.rappor import RAPPORClient

    client = RAPPORClient(0.5, k, [[int]], num_of_cohorts=1, index_mapper=int)
    client.f = client.convert_eps_to_f(epsilon)
    return lambda x: client.privatise(x)[0]


# --- multi-freq-ldpy ------------------------------------------------------------------------------


def _grr(k: int, epsilon: float) -> Randomizer:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return lambda x: int(GRR_Client(x, k, epsilon))


def _multi_unary(k: int, epsilon: float, optimised: bool) -> Randomizer:
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return lambda x: UE_Client(x, k, epsilon, optimised).astype(int).tolist()


def _subset(k: int, epsilon: float, order: Callable[[list[int]], list[int]]) -> Randomizer:
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    return lambda x: order(SS_Client(x, k, epsilon).tolist())


# --- OpenDP ---------------------------------------------------------------------------------------


def _opendp(k: int, epsilon: float) -> Randomizer:
    import math

    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_randomized_response(
        list(range(k)), prob=math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    )


def _opendp_bits(k: int, epsilon: float) -> Randomizer:
    """Flip the bits of a vector with one bit set.

    Two symbols differ in two bits, so each bit has ε/2.
    """
    import math

    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    flip = dp.m.make_randomized_response_bitvec(*space, f=2 / (1 + math.exp(epsilon / 2)))
    size = -(-k // 8)
    return lambda x: flip((1 << x).to_bytes(size, "little")).hex()


RANDOMIZERS: dict[str, Callable[[int, float], Randomizer]] = {
    "pure-ldp/DE": _direct,
    "pure-ldp/SUE": lambda k, epsilon: _unary(k, epsilon, False),
    "pure-ldp/OUE": lambda k, epsilon: _unary(k, epsilon, True),
    "pure-ldp/HR": _hadamard_response,
    "pure-ldp/HM": _hadamard_mechanism,
    "pure-ldp/FLH": _fast_local_hashing,
    "pure-ldp/RAPPOR": _rappor,
    "multi-freq-ldpy/GRR": _grr,
    "multi-freq-ldpy/SUE": lambda k, epsilon: _multi_unary(k, epsilon, False),
    "multi-freq-ldpy/OUE": lambda k, epsilon: _multi_unary(k, epsilon, True),
    "multi-freq-ldpy/SS, as a set": lambda k, epsilon: _subset(k, epsilon, sorted),
    "multi-freq-ldpy/SS, as returned": lambda k, epsilon: _subset(k, epsilon, list),
    "opendp/RR": _opendp,
    "opendp/bits": _opendp_bits,
}


def main() -> None:
    """Answer each line of the input as soon as it arrives."""
    randomize = RANDOMIZERS[sys.argv[1]](int(sys.argv[2]), float(sys.argv[3]))
    rest = b""
    while read := sys.stdin.buffer.read1(2**16):
        *lines, rest = (rest + read).split(b"\n")
        sys.stdout.write("".join(f"{randomize(int(line))}\n" for line in lines))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
