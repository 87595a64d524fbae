"""The arguments that a worker is given, and the checks of its answers: see the table in
`firmware_bridge.protocol`. An answer that fails its check is a `DeviceFault`.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firmware_bridge import enrolment
from firmware_bridge.enrolment import HMAC_BYTES, Registration
from firmware_bridge.errors import AddressMismatch, BridgeError, DeviceFault, WrongApp, from_worker
from firmware_bridge.faults import clean_detail
from firmware_bridge.makers import maker_of
from firmware_bridge.model import Family
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


def policy_args(subject: Policy, registration: Registration | None, name: str = "") -> dict[str, Any]:
    """A policy for a worker. The keys are in the order of the vault's verification code, whatever their order
    in the descriptor or a script: to a Ledger, another order is another wallet.
    """
    keys = sorted(subject.cosigners, key=str) if isinstance(subject, Vault) else [subject.key]
    return {
        "kind": "vault" if isinstance(subject, Vault) else "profile",
        "name": name if registration is None else registration.name,
        "threshold": subject.threshold if isinstance(subject, Vault) else 1,
        "keys": [str(key) for key in keys],
        "hmac": None if registration is None else registration.hmac.hex(),
    }


def enrol_args(
    family: Family, vault: Vault, name: str, registration: Registration | None, *, again: bool
) -> dict[str, Any]:
    """:raises Unsupported: the name or the vault is more than devices of this family take."""
    enrolment.require_name(family, name)
    vault_file = maker_of(family).vault_file
    return {
        "policy": policy_args(vault, None if again else registration, name),
        "again": again,
        "file": None if vault_file is None else vault_file(vault, name),
    }


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


@dataclass(frozen=True)
class Probed:
    """The answer to `probe`. `obstacle` keeps the device from working."""

    model: str | None
    label: str | None
    fingerprint: Fingerprint | None
    obstacle: BridgeError | None
    firmware: str | None


def probed(value: Any) -> Probed:
    match value:
        case {
            "model": str() | None as model,
            "label": str() | None as label,
            "fingerprint": str() | None as master,
            "obstacle": str() | None as obstacle,
            **rest,
        } if isinstance(detail := rest.get("detail"), str | None) and isinstance(
            version := rest.get("firmware"), str | None
        ):
            known = None if master is None else fingerprint(master)
            outcome = None if obstacle is None else from_worker(obstacle, _clean(detail))
            return Probed(_clean(model), _clean(label), known, outcome, _clean(version))
        case _:
            raise DeviceFault("it did not describe itself")


def _clean(words: str | None) -> str | None:
    return None if words is None else clean_detail(words)


def unlocked(value: Any) -> tuple[Fingerprint, str | None]:
    """The fingerprint, and the session to open the device with from now on."""
    match value:
        case {"fingerprint": str() as master, "session": str() | None as session}:
            return fingerprint(master), session
        case _:
            raise DeviceFault("it did not return its fingerprint")


def registration(value: Any) -> bytes | None:
    """The proof of a registration; None from families that keep the vault on the device."""
    match value:
        case None | {"hmac": None}:
            return None
        case {"hmac": str() as text} if len(text) == 2 * HMAC_BYTES:
            try:
                return bytes.fromhex(text)
            except ValueError as error:
                raise DeviceFault("it returned no registration") from error
        case _:
            raise DeviceFault("it returned no registration")


def require_address(value: Any, policy: Policy, chain: int, index: int) -> str:
    """Our own address, if the device has shown the same. Any test network's form is accepted: devices know
    one only.

    :raises AddressMismatch: the device shows another one.
    """
    text = value.get("address") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise DeviceFault("it returned no address")
    script = policy.script_pubkey(chain, index)
    forms = {encode_address(script, network) for network in Network if network.kind == policy.network.kind}
    if text not in forms:
        raise AddressMismatch(detail=clean_detail(text))
    return policy.address(chain, index)


def xpubs(value: Any, count: int) -> tuple[Fingerprint, tuple[str, ...]]:
    """The master fingerprint and `count` keys as text; `origin_key` checks each."""
    match value:
        case {"fingerprint": str() as master, "xpubs": [*keys]} if len(keys) == count:
            return fingerprint(master), tuple(str(key) for key in keys)
        case _:
            raise DeviceFault("it did not return the keys it was asked for")


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
    try:
        return Fingerprint.from_hex(str(text))
    except InvalidKey as error:
        raise DeviceFault("it returned no fingerprint") from error


def signature(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError as error:
        raise DeviceFault("it returned no signature") from error


def is_by(public_key: bytes, text: str, signed: bytes) -> bool:
    """Whether the 65 bytes are this key's signature of the text."""
    try:
        return recover_message_key(text, signed) == public_key
    except InvalidMessage:
        return False
