"""An address of a policy as a Trezor is asked for it: the path of its own key, and what it must know of the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hwilib.devices.trezorlib import messages

from firmware_bridge.errors import WrongDevice
from firmware_bridge.hwi_client.trezor.mend import SortedMultisig
from firmware_bridge.port import DeviceFailure
from multisig import ExtendedPublicKey, Network, OriginKey


@dataclass(frozen=True)
class AddressRequest:
    path: list[int]
    multisig: Any


def address_request(
    policy: Mapping[str, Any], chain: int, index: int, fingerprint: str, network: Network
) -> AddressRequest:
    """:raises DeviceFailure: the device with this fingerprint has no key in the policy."""
    keys = [OriginKey.parse(text, network) for text in policy["keys"]]
    own = next((key for key in keys if key.fingerprint.hex == fingerprint), None)
    if own is None:
        raise DeviceFailure(WrongDevice.code, f"the device ({fingerprint}) is no signer here")
    multisig = _multisig(policy["threshold"], keys, chain, index) if policy["kind"] == "vault" else None
    return AddressRequest([*own.origin.path, chain, index], multisig)


def _multisig(threshold: int, keys: list[OriginKey], chain: int, index: int) -> Any:
    # In the order of the script as well: older firmware does not know the field that says so.
    ordered = sorted((key.xpub for key in keys), key=lambda xpub: xpub.derive_public_key(chain, index))
    cosigners = [messages.HDNodePathType(node=_node(xpub), address_n=[chain, index]) for xpub in ordered]
    return SortedMultisig(m=threshold, pubkeys=cosigners, signatures=[b""] * len(cosigners))


def _node(xpub: ExtendedPublicKey) -> Any:
    return messages.HDNodeType(
        depth=xpub.depth,
        fingerprint=int.from_bytes(bytes(xpub.parent_fingerprint), "big"),
        child_num=xpub.child_number,
        chain_code=xpub.chain_code,
        public_key=xpub.public_key,
    )
