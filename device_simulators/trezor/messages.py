"""The messages of Trezor's protocol that this device knows, and their numbers on the wire.

Names and numbers are the vendor's. Only the fields that are read or written here are named; others are
skipped.
"""
# ruff: noqa: RUF009 - the defaults are dataclass fields, made by helpers that ruff cannot know

from dataclasses import dataclass
from enum import IntEnum

from device_simulators.trezor.wire import FieldKind, Message, optional, repeated, required


class FailureCode(IntEnum):
    UNEXPECTED_MESSAGE = 1
    DATA_ERROR = 3
    ACTION_CANCELLED = 4
    PIN_CANCELLED = 6
    PIN_INVALID = 7
    PROCESS_ERROR = 9
    NOT_INITIALIZED = 11


class ButtonCode(IntEnum):
    OTHER = 1
    CONFIRM_OUTPUT = 3
    PROTECT_CALL = 7
    SIGN_TX = 8
    ADDRESS = 10
    UNKNOWN_DERIVATION_PATH = 15
    PASSPHRASE_ENTRY = 19
    PIN_ENTRY = 20


class InputScript(IntEnum):
    ADDRESS = 0
    WITNESS = 3


class OutputScript(IntEnum):
    TO_ADDRESS = 0
    TO_OP_RETURN = 3
    TO_WITNESS = 4


class TxRequestType(IntEnum):
    """What a TxRequest asks the host for."""

    INPUT = 0
    OUTPUT = 1
    META = 2
    FINISHED = 3


class KeyOrder(IntEnum):
    """How the keys of a multisig script are ordered: as sent, or lexicographically (BIP-67)."""

    PRESERVED = 0
    LEXICOGRAPHIC = 1


@dataclass(frozen=True, kw_only=True)
class Initialize(Message):
    session_id: bytes | None = optional(1, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class GetFeatures(Message):
    pass


@dataclass(frozen=True, kw_only=True)
class Features(Message):
    vendor: str = required(1, FieldKind.TEXT)
    major_version: int = required(2, FieldKind.UINT32)
    minor_version: int = required(3, FieldKind.UINT32)
    patch_version: int = required(4, FieldKind.UINT32)
    bootloader_mode: bool | None = optional(5, FieldKind.BOOL)
    device_id: str = required(6, FieldKind.TEXT)
    pin_protection: bool = required(7, FieldKind.BOOL)
    passphrase_protection: bool | None = optional(8, FieldKind.BOOL)
    label: str | None = optional(10, FieldKind.TEXT)
    initialized: bool = required(12, FieldKind.BOOL)
    unlocked: bool = required(16, FieldKind.BOOL)
    firmware_present: bool = required(18, FieldKind.BOOL)
    model: str = required(21, FieldKind.TEXT)
    capabilities: tuple[int, ...] = repeated(30, FieldKind.UINT32)
    session_id: bytes | None = optional(35, FieldKind.BYTES)
    passphrase_always_on_device: bool | None = optional(36, FieldKind.BOOL)


@dataclass(frozen=True, kw_only=True)
class Ping(Message):
    message: str | None = optional(1, FieldKind.TEXT)
    button_protection: bool | None = optional(2, FieldKind.BOOL)


@dataclass(frozen=True, kw_only=True)
class Success(Message):
    message: str = required(1, FieldKind.TEXT)


@dataclass(frozen=True, kw_only=True)
class Failure(Message):
    code: int = required(1, FieldKind.UINT32)
    message: str = required(2, FieldKind.TEXT)


@dataclass(frozen=True, kw_only=True)
class Cancel(Message):
    pass


@dataclass(frozen=True, kw_only=True)
class ButtonRequest(Message):
    code: int = required(1, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class ButtonAck(Message):
    pass


@dataclass(frozen=True, kw_only=True)
class PinMatrixRequest(Message):
    type: int = required(1, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class PinMatrixAck(Message):
    pin: str = required(1, FieldKind.TEXT)


@dataclass(frozen=True, kw_only=True)
class PassphraseRequest(Message):
    pass


@dataclass(frozen=True, kw_only=True)
class PassphraseAck(Message):
    passphrase: str | None = optional(1, FieldKind.TEXT)
    on_device: bool | None = optional(3, FieldKind.BOOL)


@dataclass(frozen=True, kw_only=True)
class HDNode(Message):
    depth: int = required(1, FieldKind.UINT32)
    fingerprint: int = required(2, FieldKind.UINT32)
    child_num: int = required(3, FieldKind.UINT32)
    chain_code: bytes = required(4, FieldKind.BYTES)
    public_key: bytes = required(6, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class HDNodePath(Message):
    node: HDNode = required(1, HDNode)
    address_n: tuple[int, ...] = repeated(2, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class MultisigRedeemScript(Message):
    pubkeys: tuple[HDNodePath, ...] = repeated(1, HDNodePath)
    m: int = required(3, FieldKind.UINT32)
    pubkeys_order: int | None = optional(6, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class GetPublicKey(Message):
    address_n: tuple[int, ...] = repeated(1, FieldKind.UINT32)
    show_display: bool | None = optional(3, FieldKind.BOOL)
    coin_name: str | None = optional(4, FieldKind.TEXT)


@dataclass(frozen=True, kw_only=True)
class PublicKey(Message):
    node: HDNode = required(1, HDNode)
    xpub: str = required(2, FieldKind.TEXT)
    root_fingerprint: int = required(3, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class GetAddress(Message):
    address_n: tuple[int, ...] = repeated(1, FieldKind.UINT32)
    coin_name: str | None = optional(2, FieldKind.TEXT)
    show_display: bool | None = optional(3, FieldKind.BOOL)
    multisig: MultisigRedeemScript | None = optional(4, MultisigRedeemScript)
    script_type: int | None = optional(5, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class Address(Message):
    address: str = required(1, FieldKind.TEXT)


@dataclass(frozen=True, kw_only=True)
class SignMessage(Message):
    address_n: tuple[int, ...] = repeated(1, FieldKind.UINT32)
    message: bytes = required(2, FieldKind.BYTES)
    coin_name: str | None = optional(3, FieldKind.TEXT)
    script_type: int | None = optional(4, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class MessageSignature(Message):
    address: str = required(1, FieldKind.TEXT)
    signature: bytes = required(2, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class SignTx(Message):
    outputs_count: int = required(1, FieldKind.UINT32)
    inputs_count: int = required(2, FieldKind.UINT32)
    coin_name: str | None = optional(3, FieldKind.TEXT)
    version: int | None = optional(4, FieldKind.UINT32)
    lock_time: int | None = optional(5, FieldKind.UINT32)
    serialize: bool | None = optional(13, FieldKind.BOOL)


@dataclass(frozen=True, kw_only=True)
class TxRequestDetails(Message):
    request_index: int | None = optional(1, FieldKind.UINT32)
    tx_hash: bytes | None = optional(2, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class TxRequestSerialized(Message):
    signature_index: int = required(1, FieldKind.UINT32)
    signature: bytes = required(2, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class TxRequest(Message):
    request_type: int = required(1, FieldKind.UINT32)
    details: TxRequestDetails | None = optional(2, TxRequestDetails)
    serialized: TxRequestSerialized | None = optional(3, TxRequestSerialized)


@dataclass(frozen=True, kw_only=True)
class TxInput(Message):
    address_n: tuple[int, ...] = repeated(1, FieldKind.UINT32)
    prev_hash: bytes = required(2, FieldKind.BYTES)
    prev_index: int = required(3, FieldKind.UINT32)
    script_sig: bytes | None = optional(4, FieldKind.BYTES)
    sequence: int | None = optional(5, FieldKind.UINT32)
    script_type: int | None = optional(6, FieldKind.UINT32)
    multisig: MultisigRedeemScript | None = optional(7, MultisigRedeemScript)
    amount: int | None = optional(8, FieldKind.UINT64)


@dataclass(frozen=True, kw_only=True)
class TxOutputBin(Message):
    amount: int = required(1, FieldKind.UINT64)
    script_pubkey: bytes = required(2, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class TxOutput(Message):
    address: str | None = optional(1, FieldKind.TEXT)
    address_n: tuple[int, ...] = repeated(2, FieldKind.UINT32)
    amount: int = required(3, FieldKind.UINT64)
    script_type: int | None = optional(4, FieldKind.UINT32)
    multisig: MultisigRedeemScript | None = optional(5, MultisigRedeemScript)
    op_return_data: bytes | None = optional(6, FieldKind.BYTES)


@dataclass(frozen=True, kw_only=True)
class TxPart(Message):
    """A piece of a transaction (the vendor's TransactionType)."""

    version: int | None = optional(1, FieldKind.UINT32)
    inputs: tuple[TxInput, ...] = repeated(2, TxInput)
    bin_outputs: tuple[TxOutputBin, ...] = repeated(3, TxOutputBin)
    lock_time: int | None = optional(4, FieldKind.UINT32)
    outputs: tuple[TxOutput, ...] = repeated(5, TxOutput)
    inputs_cnt: int | None = optional(6, FieldKind.UINT32)
    outputs_cnt: int | None = optional(7, FieldKind.UINT32)
    extra_data_len: int | None = optional(9, FieldKind.UINT32)


@dataclass(frozen=True, kw_only=True)
class TxAck(Message):
    tx: TxPart | None = optional(1, TxPart)


@dataclass(frozen=True, kw_only=True)
class DebugLinkDecision(Message):
    yes_no: bool | None = optional(1, FieldKind.BOOL)


@dataclass(frozen=True, kw_only=True)
class DebugLinkGetState(Message):
    pass


@dataclass(frozen=True, kw_only=True)
class DebugLinkState(Message):
    matrix: str | None = optional(3, FieldKind.TEXT)
    passphrase_protection: bool = required(6, FieldKind.BOOL)
    layout_lines: tuple[str, ...] = repeated(13, FieldKind.TEXT)


NUMBERS: dict[type[Message], int] = {
    Initialize: 0,
    Ping: 1,
    Success: 2,
    Failure: 3,
    GetPublicKey: 11,
    PublicKey: 12,
    SignTx: 15,
    Features: 17,
    PinMatrixRequest: 18,
    PinMatrixAck: 19,
    Cancel: 20,
    TxRequest: 21,
    TxAck: 22,
    ButtonRequest: 26,
    ButtonAck: 27,
    GetAddress: 29,
    Address: 30,
    SignMessage: 38,
    MessageSignature: 40,
    PassphraseRequest: 41,
    PassphraseAck: 42,
    GetFeatures: 55,
    DebugLinkDecision: 100,
    DebugLinkGetState: 101,
    DebugLinkState: 102,
}
"""Wire number of each message."""

BY_NUMBER: dict[int, type[Message]] = {number: message for message, number in NUMBERS.items()}
