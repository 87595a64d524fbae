"""What a worker's answers must be before anybody believes them; what they are not is a `DeviceFault`."""

import base64
from dataclasses import dataclass
from typing import Any

from firmware_bridge.errors import AddressMismatch, DeviceFault, WrongApp
from firmware_bridge.families import clean_detail
from firmware_bridge.registrations import HMAC_BYTES
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
    WrongNetwork,
    encode_address,
    recover_message_key,
)


@dataclass(frozen=True)
class Probed:
    """Who a device says it is. `obstacle` is the code of the outcome that keeps it from working now, `detail` its own words."""

    model: str | None
    label: str | None
    fingerprint: Fingerprint | None
    obstacle: str | None
    detail: str | None
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
            return Probed(_clean(model), _clean(label), known, obstacle, _clean(detail), _clean(version))
        case _:
            raise DeviceFault("it did not say what it is")


def _clean(words: str | None) -> str | None:
    return None if words is None else clean_detail(words)


def unlocked(value: Any) -> tuple[Fingerprint, str | None]:
    """Whose keys the device holds now, and what its next opening needs to find them again."""
    match value:
        case {"fingerprint": str() as master, "session": str() | None as session}:
            return fingerprint(master), session
        case _:
            raise DeviceFault("it did not say whose keys it holds")


def registration(value: Any) -> bytes | None:
    """The proof of a registration; None from makers that keep the vault on the device."""
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
    """Our own text of the address that the device has shown. Every test network's form is taken: devices know one only.

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
    """The master fingerprint and `count` keys as the device spells them; `origin_key` checks each."""
    match value:
        case {"fingerprint": str() as master, "xpubs": [*keys]} if len(keys) == count:
            return fingerprint(master), tuple(str(key) for key in keys)
        case _:
            raise DeviceFault("it did not return the keys it was asked for")


def origin_key(master: Fingerprint, path: DerivationPath, text: Any, network: Network) -> OriginKey:
    """An extended public key with its origin, checked against each other and the network (S14, S15)."""
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
