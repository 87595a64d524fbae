"""The size that a spend will have once it is signed."""

from collections.abc import Iterable

from multisig.script import MAX_COSIGNERS
from multisig.vault import Policy, Vault
from multisig.wire import compact_size

# Low S but any R, and the sighash byte: what a device that does not grind for a low R returns at most.
SIGNATURE_BYTES = 72
_KEY_BYTES = 33

# version and locktime, then marker and flag, which weigh a quarter.
_OVERHEAD_WEIGHT = 4 * 8 + 2
# Outpoint, empty script, sequence.
_INPUT_BASE_BYTES = 41


def vault_input_weight(m: int, n: int) -> int:
    """Weight units of an input that spends m-of-n P2WSH, with its witness."""
    if not 1 <= m <= n <= MAX_COSIGNERS:
        raise ValueError(f"no quorum of {m} out of {n}")
    script = 3 + n * (1 + _KEY_BYTES)
    dummy = 1
    signatures = m * (1 + SIGNATURE_BYTES)
    items = len(compact_size(m + 2))
    return 4 * _INPUT_BASE_BYTES + items + dummy + signatures + len(compact_size(script)) + script


def profile_input_weight() -> int:
    """Weight units of an input that spends P2WPKH, with its witness."""
    return 4 * _INPUT_BASE_BYTES + 1 + (1 + SIGNATURE_BYTES) + (1 + _KEY_BYTES)


def input_weight(policy: Policy) -> int:
    """Weight units of an input that spends from `policy`."""
    if isinstance(policy, Vault):
        return vault_input_weight(policy.threshold, len(policy.cosigners))
    return profile_input_weight()


def output_weight(script: bytes) -> int:
    """Weight units of an output with that script."""
    return 4 * (8 + len(compact_size(len(script))) + len(script))


def estimate_vsize(policy: Policy, n_inputs: int, output_scripts: Iterable[bytes]) -> int:
    """Virtual bytes of a transaction with `n_inputs` from `policy` and those outputs, rounded up."""
    scripts = list(output_scripts)
    counts = 4 * (len(compact_size(n_inputs)) + len(compact_size(len(scripts))))
    outputs = sum(output_weight(script) for script in scripts)
    return -(-(_OVERHEAD_WEIGHT + counts + n_inputs * input_weight(policy) + outputs) // 4)
