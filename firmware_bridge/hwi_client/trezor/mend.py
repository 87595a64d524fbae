"""Two of HWI's mistakes, mended on the way to the device."""

import copy
from typing import Any, ClassVar, Final

from hwilib.devices.trezorlib import messages, protobuf

# MultisigPubkeysOrder.LEXICOGRAPHIC of messages-bitcoin.proto. HWI's copy of the protocol is older: without the field,
# firmware from T1 1.13.0 and core 2.8.7 takes the keys' order for part of the wallet and shows change as a payment.
_PUBKEYS_ORDER_FIELD: Final = 6
_LEXICOGRAPHIC: Final = 1

# A push of up to 75 bytes has a one-byte header; HWI cuts two bytes off every OP_RETURN script, whatever its push.
_MAX_SHORT_PUSH: Final = 75


class SortedMultisig(messages.MultisigRedeemScriptType):  # type: ignore[misc]  # HWI is untyped
    """HWI's message with the field it lacks; HWI's own class stays as it is for whoever else uses it."""

    FIELDS: ClassVar = {
        **messages.MultisigRedeemScriptType.FIELDS,
        _PUBKEYS_ORDER_FIELD: protobuf.Field("pubkeys_order", "uint32"),
    }
    pubkeys_order = _LEXICOGRAPHIC


def mend(message: Any) -> Any:
    """A piece of the transaction to sign as the device is to read it; every other message as it is."""
    if isinstance(message, messages.TxAck):
        message.tx.inputs = [mend_multisig(item) for item in message.tx.inputs]
        message.tx.outputs = [mend_op_return(mend_multisig(item)) for item in message.tx.outputs]
    return message


def mend_multisig(item: Any) -> Any:
    if item.multisig is None:
        return item
    # A copy: HWI sends the same object again whenever the device asks again.
    mended = copy.copy(item)
    mended.multisig = copy.copy(item.multisig)
    mended.multisig.__class__ = SortedMultisig
    return mended


def mend_op_return(output: Any) -> Any:
    """HWI's data of a longer push begins with the length byte; the device would sign another transaction."""
    data = output.op_return_data
    if data is None or len(data) <= _MAX_SHORT_PUSH:
        return output
    if data[0] != len(data) - 1:
        raise ValueError("an OP_RETURN output holds more than one push")
    mended = copy.copy(output)
    mended.op_return_data = data[1:]
    return mended
