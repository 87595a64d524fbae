"""What a worker is told besides the transaction itself, in plain values: see the table in `firmware_bridge.port`."""

from collections.abc import Sequence
from typing import Any

from firmware_bridge import enrolment
from firmware_bridge.model import Family
from firmware_bridge.registrations import Registration
from multisig import DerivationPath, Policy, Psbt, Vault
from multisig.proofs import Prover


def policy(subject: Policy, registration: Registration | None, name: str = "") -> dict[str, Any]:
    """Keys stand in the order of the vault's verification code, whatever their order in its descriptor or a script: to a
    Ledger another order is another wallet, and one vault has one registration.
    """
    keys = sorted(subject.cosigners, key=str) if isinstance(subject, Vault) else [subject.key]
    return {
        "kind": "vault" if isinstance(subject, Vault) else "profile",
        "name": name if registration is None else registration.name,
        "threshold": subject.threshold if isinstance(subject, Vault) else 1,
        "keys": [str(key) for key in keys],
        "hmac": None if registration is None else registration.hmac.hex(),
    }


def enrol(
    family: Family, vault: Vault, name: str, registration: Registration | None, *, again: bool
) -> dict[str, Any]:
    """:raises Unsupported: the name or the vault is more than this maker's devices take."""
    enrolment.require_name(family, name)
    coldcard = family == Family.COLDCARD
    return {
        "policy": policy(vault, None if again else registration, name),
        "again": again,
        "file": enrolment.coldcard_file(vault, name) if coldcard else None,
        "xor": enrolment.fingerprints_xor(vault) if coldcard else None,
    }


def require_paths(paths: Sequence[DerivationPath]) -> None:
    """A path as text, which HWI takes, would be read a character at a time, and the answer look like the device's fault.

    :raises TypeError: one of them is none.
    """
    for path in paths:
        if not isinstance(path, DerivationPath):
            raise TypeError(f"A path is a multisig.DerivationPath, not {path!r}: see DerivationPath.parse.")


def payments(psbt: Psbt, subject: Policy) -> int:
    """How many outputs are not the policy's own. For the person's progress: nothing is decided by it."""
    prover = Prover(subject)
    return sum(prover.prove(output.script_pubkey, output.derivations) is None for output in psbt.outputs)
