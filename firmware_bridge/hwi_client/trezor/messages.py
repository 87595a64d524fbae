"""Trezor's messages: three corrections of HWI's messages, and the request for an address."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from hwilib.devices.trezorlib import messages, protobuf

from firmware_bridge.hwi_client.base import cosigner_keys
from firmware_bridge.operations import ShowAddress
from multisig import ExtendedPublicKey, Network, OriginKey

# MultisigPubkeysOrder.LEXICOGRAPHIC of messages-bitcoin.proto, which HWI's older copy lacks. Without it,
# firmware from T1 1.13.0 and core 2.8.7 shows change as a payment, because the order of keys is part of the
# wallet.
_PUBKEYS_ORDER_FIELD: Final = 6
_LEXICOGRAPHIC: Final = 1

# A push of up to 75 bytes has a one-byte header. HWI removes two bytes of any OP_RETURN script, whatever its
# push.
_MAX_SHORT_PUSH: Final = 75


class SortedMultisig(messages.MultisigRedeemScriptType):  # type: ignore[misc]  # HWI is untyped
    """HWI's message with the missing field. HWI's own class is not changed."""

    FIELDS: ClassVar = {
        **messages.MultisigRedeemScriptType.FIELDS,
        _PUBKEYS_ORDER_FIELD: protobuf.Field("pubkeys_order", "uint32"),
    }
    pubkeys_order = _LEXICOGRAPHIC


def mend(message: Any) -> Any:
    """Correct a piece of the transaction to sign; other messages are returned unchanged."""
    if isinstance(message, messages.TxAck):
        if message.tx.version is not None:
            # A previous transaction may have any version: HWI reads it as signed, the firmware as unsigned.
            message.tx.version &= 0xFFFF_FFFF
        message.tx.inputs = [mend_multisig(item) for item in message.tx.inputs]
        message.tx.outputs = [mend_op_return(mend_multisig(item)) for item in message.tx.outputs]
    return message


def mend_multisig(item: Any) -> Any:
    if item.multisig is None:
        return item
    # A copy: HWI sends the same object again when the device asks again.
    mended = copy.copy(item)
    mended.multisig = copy.copy(item.multisig)
    mended.multisig.__class__ = SortedMultisig
    return mended


def mend_op_return(output: Any) -> Any:
    """HWI's data of a longer push starts with the length byte; the device would sign another transaction."""
    data = output.op_return_data
    if data is None or len(data) <= _MAX_SHORT_PUSH:
        return output
    if data[0] != len(data) - 1:
        raise ValueError("an OP_RETURN output holds more than one push")
    mended = copy.copy(output)
    mended.op_return_data = data[1:]
    return mended


def address_request(request: ShowAddress, fingerprint: str, network: Network) -> tuple[list[int], Any]:
    """Path and quorum.

    :raises BridgeError: the device with this fingerprint has no key in the policy.
    """
    policy, chain, index = request.policy, request.chain, request.index
    keys, own = cosigner_keys(policy, fingerprint, network)
    multisig = _multisig(policy.threshold, keys, chain, index) if policy.is_vault else None
    return [*own.origin.path, chain, index], multisig


def _multisig(threshold: int, keys: Sequence[OriginKey], chain: int, index: int) -> Any:
    # Sorted as in the script too: older firmware does not know the field.
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
