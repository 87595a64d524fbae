"""The arguments that a worker is given, and the checks of its answers (`firmware_bridge.operations`). An
answer that fails its check is a `DeviceFault`.
"""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError

from firmware_bridge.enrolment import HMAC_BYTES, Registration, require_name
from firmware_bridge.errors import AddressMismatch, DeviceFault, WrongApp
from firmware_bridge.faults import clean_detail
from firmware_bridge.makers import MAKERS
from firmware_bridge.model import Family
from firmware_bridge.operations import Enrol, Keys, PolicyText, Probed, Unlocked
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidKey,
    InvalidMessage,
    KeyOrigin,
    Network,
    OriginKey,
    Policy,
    Psbt,
    Vault,
    WrongNetwork,
    encode_address,
    recover_message_key,
)
from multisig.proofs import Prover


def policy_text(policy: Policy, registration: Registration | None, name: str = "") -> PolicyText:
    name, hmac = (name, None) if registration is None else (registration.name, registration.hmac.hex())
    if not isinstance(policy, Vault):
        return PolicyText("profile", name, 1, (str(policy.key),), hmac)
    return PolicyText("vault", name, policy.threshold, tuple(sorted(map(str, policy.cosigners))), hmac)


def enrol(
    family: Family, vault: Vault, name: str, registration: Registration | None, *, again: bool
) -> Enrol:
    """:raises Unsupported: the name or the vault is more than devices of this family take."""
    require_name(family, name)
    vault_file = MAKERS[family].vault_file
    return Enrol(
        policy_text(vault, None if again else registration, name),
        again=again,
        file=None if vault_file is None else vault_file(vault, name),
    )


def require_paths(paths: Sequence[DerivationPath]) -> None:
    """A path given as text would be iterated by character, and the failure would look like the device's.

    :raises TypeError: one of them is not a DerivationPath.
    """
    for path in paths:
        if not isinstance(path, DerivationPath):
            raise TypeError(f"A path is a multisig.DerivationPath, not {path!r}: see DerivationPath.parse.")


def count_payments(psbt: Psbt, subject: Policy) -> int:
    """How many outputs are not the policy's own: for the display of progress only."""
    prover = Prover(subject)
    return sum(prover.prove(output.script_pubkey, output.derivations) is None for output in psbt.outputs)


Shape = TypeVar("Shape", Probed, Keys, Unlocked)


def answer(shape: type[Shape], value: Any) -> Shape:
    """The worker's answer, of the form that the operation has."""
    with _otherwise(shape.otherwise):
        return shape(**value)


def registration(value: Any) -> bytes | None:
    """The proof of a registration; None from families that keep the vault on the device."""
    if value is None:
        return None
    with _otherwise("it returned no registration"):
        proof = bytes.fromhex(value)
        if len(proof) != HMAC_BYTES:
            raise ValueError("no HMAC-SHA-256")
        return proof


def require_address(value: Any, policy: Policy, chain: int, index: int) -> str:
    """Our own address, if the device has shown the same. Any test network's form is accepted: devices know
    one only.

    :raises AddressMismatch: the device shows another one.
    """
    if not isinstance(value, str):
        raise DeviceFault("it returned no address")
    script = policy.script_pubkey(chain, index)
    forms = {encode_address(script, network) for network in Network if network.kind == policy.network.kind}
    if value not in forms:
        raise AddressMismatch(detail=clean_detail(value))
    return policy.address(chain, index)


def origin_key(master: Fingerprint, path: DerivationPath, text: Any, network: Network) -> OriginKey:
    """An extended public key with its origin, checked for agreement and for the network (S14, S15)."""
    try:
        key = OriginKey(KeyOrigin(master, path), ExtendedPublicKey.parse(str(text), network))
        key.require_agreement()
    except WrongNetwork as error:
        raise WrongApp("set to another network") from error
    except InvalidKey as error:
        raise DeviceFault(f"it returned no key for {path}: {error}") from error
    return key


def fingerprint(text: Any) -> Fingerprint:
    with _otherwise("it returned no fingerprint"):
        return Fingerprint.from_hex(str(text))


def signature(text: Any) -> bytes:
    with _otherwise("it returned no signature"):
        return base64.b64decode(str(text), validate=True)


@contextmanager
def _otherwise(fault: str) -> Iterator[None]:
    try:
        yield
    except (ValidationError, ValueError, TypeError, InvalidKey) as error:
        raise DeviceFault(fault) from error


def is_by(public_key: bytes, text: str, signed: bytes) -> bool:
    """Whether the 65 bytes are this key's signature of the text."""
    try:
        return recover_message_key(text, signed) == public_key
    except InvalidMessage:
        return False
