"""Trezor's messages: a faster encoder than HWI's, three corrections of HWI's messages, and the request for an
address.

HWI's encoder walks every nested message twice at every level, to learn its length first, and looks up each
field's type by name: four fifths of the host's time at 50 inputs. This one writes the same bytes from a plan
made once per message type. Decoding stays HWI's: answers are short.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, Final

from hwilib.devices.trezorlib import messages, protobuf
from hwilib.devices.trezorlib.mapping import ProtobufMapping

from firmware_bridge.errors import WrongDevice
from firmware_bridge.hwi_client.base import is_vault
from firmware_bridge.protocol import DeviceFailure
from multisig import ExtendedPublicKey, Network, OriginKey

_UNSIGNED_BITS: Final = {"uint32": 32, "uint64": 64}

_Write = Callable[[bytearray, Any], None]
_Step = tuple[str, bool, bytes, _Write]
"""One field: its name, whether it repeats, its encoded key, and the writer of its values."""


class Codec(ProtobufMapping):  # type: ignore[misc]  # HWI is untyped
    """trezorlib's table of messages with another encoder."""

    def encode(self, msg: Any) -> tuple[int, bytes]:
        number = msg.MESSAGE_WIRE_TYPE
        if number is None:
            raise ValueError("a message without a wire type")
        return number, bytes(encode(msg))


def encode(message: Any) -> bytearray:
    """:raises ValueError: a value does not fit its field, or a required one is missing."""
    out = bytearray()
    for name, repeated, key, write in _plan(message.__class__):
        value = getattr(message, name, None)
        if value is None:
            continue
        for item in value if repeated else (value,):
            out += key
            write(out, item)
    return out


@cache
def _plan(kind: type) -> tuple[_Step, ...]:
    return tuple(
        (field.name, field.repeated, _varint(tag << 3 | field.wire_type), _writer(field))
        for tag, field in kind.FIELDS.items()  # type: ignore[attr-defined]  # HWI is untyped
    )


def _writer(field: Any) -> _Write:
    if field.type in _UNSIGNED_BITS:
        return _number_writer(field.name, _UNSIGNED_BITS[field.type])
    if field.type in _PLAIN:
        return _PLAIN[field.type]
    kind = protobuf.get_field_type_object(field)
    if kind is None:
        # Signed numbers, used for other coins only.
        return _refuse
    return _enum_writer(field.name, kind) if issubclass(kind, IntEnum) else _message_writer(field.name, kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    _write_varint(out, value)
    return bytes(out)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _number_writer(name: str, bits: int) -> _Write:
    def write(out: bytearray, value: int) -> None:
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} does not fit into {bits} bits")
        _write_varint(out, value)

    return write


def _enum_writer(name: str, kind: type[IntEnum]) -> _Write:
    known = frozenset(kind)

    def write(out: bytearray, value: int) -> None:
        if value not in known:
            raise ValueError(f"{name} is not a {kind.__name__}")
        _write_varint(out, value)

    return write


def _message_writer(name: str, kind: type) -> _Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"{name} is not a {kind.__name__}")  # noqa: TRY004 - as HWI's encoder has it
        _write_bytes(out, encode(value))

    return write


def _write_bool(out: bytearray, value: object) -> None:
    out.append(bool(value))


def _write_bytes(out: bytearray, value: bytes | bytearray) -> None:
    if not isinstance(value, bytes | bytearray):
        raise ValueError("bytes are expected")  # noqa: TRY004 - REQUIRED_FIELD_PLACEHOLDER comes here, too
    _write_varint(out, len(value))
    out += value


def _write_text(out: bytearray, value: str) -> None:
    _write_bytes(out, value.encode())


def _refuse(_out: bytearray, _value: object) -> None:
    raise ValueError("signed numbers are not supported")


_PLAIN: Final[dict[str, _Write]] = {"bool": _write_bool, "bytes": _write_bytes, "string": _write_text}

CODEC: Final = Codec.from_module(messages)


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
        raise DeviceFailure(WrongDevice.code, f"the device ({fingerprint}) is not a signer here")
    multisig = _multisig(policy["threshold"], keys, chain, index) if is_vault(policy) else None
    return AddressRequest([*own.origin.path, chain, index], multisig)


def _multisig(threshold: int, keys: list[OriginKey], chain: int, index: int) -> Any:
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
