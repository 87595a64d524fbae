"""What a worker's answers must be before anybody believes them; what they are not is a `DeviceFault`."""

import base64
from dataclasses import dataclass
from typing import Any

from firmware_bridge.errors import DeviceFault, WrongApp
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    InvalidKey,
    InvalidMessage,
    KeyOrigin,
    Network,
    OriginKey,
    WrongNetwork,
    recover_message_key,
)


@dataclass(frozen=True)
class Probed:
    """Who a device says it is. `obstacle` is the code of the outcome that keeps it from working now."""

    model: str | None
    label: str | None
    fingerprint: Fingerprint | None
    obstacle: str | None


def probed(value: Any) -> Probed:
    match value:
        case {
            "model": str() | None as model,
            "label": str() | None as label,
            "fingerprint": str() | None as master,
            "obstacle": str() | None as obstacle,
        }:
            return Probed(model, label, None if master is None else fingerprint(master), obstacle)
        case _:
            raise DeviceFault("it did not say what it is")


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
