"""The payload of a token transaction: CPT-1 (docs/understand/tokens.md).

A value is validated when it is built, and has exactly one encoding: what decodes encodes to the same bytes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from multisig.errors import InvalidToken
from multisig.script import (
    ScriptKind,
    classify,
    op_return_script,
    p2pkh,
    p2sh,
    p2tr,
    parse_op_return,
    witness_output,
)
from multisig.shown import ByMember
from multisig.tokens.values import (
    TokenAmount,
    check_supplies,
    check_ticker,
    leb128,
    read_leb128,
    token_amount,
)
from multisig.wire import Reader, WireError


@dataclass(frozen=True, slots=True)
class _Form:
    """`start` is how many bytes of the script stand before its hash or key."""

    kind: ScriptKind
    start: int
    length: int
    script: Callable[[bytes], bytes]

    def program(self, script: bytes) -> bytes:
        return script[self.start : self.start + self.length]


def _witness_v0(program: bytes) -> bytes:
    return witness_output(0, program)


# The index is the byte on chain; it never changes. The kinds that a vault or a profile has come first (ADR
# 11).
_FORMS = (
    _Form(ScriptKind.P2WPKH, 2, 20, _witness_v0),
    _Form(ScriptKind.P2WSH, 2, 32, _witness_v0),
    _Form(ScriptKind.P2TR, 2, 32, p2tr),
    _Form(ScriptKind.P2PKH, 3, 20, p2pkh),
    _Form(ScriptKind.P2SH, 2, 20, p2sh),
)
_CODES = {form.kind: code for code, form in enumerate(_FORMS)}


def check_holder(script: bytes) -> None:
    """Only scripts that have an address can hold a token. Raises InvalidToken."""
    if not isinstance(script, bytes) or classify(script) not in _CODES:
        raise InvalidToken("The address is not of a kind that can hold a token.")


def encode_holder(script: bytes) -> bytes:
    """The type code and the program. Raises InvalidToken."""
    check_holder(script)
    code = _CODES[classify(script)]
    return bytes((code,)) + _FORMS[code].program(script)


def read_holder(reader: Reader) -> bytes:
    """The output script of the next address. Raises WireError."""
    code = reader.take(1)[0]
    if code >= len(_FORMS):
        raise WireError(f"there is no address type {code}")
    form = _FORMS[code]
    return form.script(reader.take(form.length))


MAGIC = b"CPT"
VERSION = 1

_DEPLOY = 0
_HASH_BYTES = 32
# One byte of a deployment: bit 7 is the whitelist, bits 5 and 6 are zero, bits 0 to 4 are the decimals.
_WHITELIST_FLAG, _RESERVED_FLAGS, _DECIMALS_MASK = 0x80, 0x60, 0x1F
_CONTRACT_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Function(IntEnum):
    """What a call does; the value is the op on chain."""

    INIT = 1
    TRANSFER = 2
    MINT = 3
    BURN = 4
    PAUSE = 5
    UNPAUSE = 6
    TRANSFER_OWNERSHIP = 7
    ENABLE_WHITELIST = 8
    DISABLE_WHITELIST = 9
    ADD_TO_WHITELIST = 10
    REMOVE_FROM_WHITELIST = 11

    @property
    def wire_name(self) -> str:
        """Its name in the platform's API: "transfer_ownership"."""
        return self.name.lower()

    @property
    def takes_amount(self) -> bool:
        return self in _TAKES_AMOUNT

    @property
    def takes_address(self) -> bool:
        return self in _TAKES_ADDRESS


_TAKES_AMOUNT = frozenset({Function.TRANSFER, Function.MINT, Function.BURN})
_TAKES_ADDRESS = _TAKES_AMOUNT | {
    Function.TRANSFER_OWNERSHIP,
    Function.ADD_TO_WHITELIST,
    Function.REMOVE_FROM_WHITELIST,
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Deploy(ByMember):
    """A new token, bound to its bytecode by hash. Supplies are in raw units. Raises InvalidToken."""

    bytecode_hash: bytes
    ticker: str
    decimals: int
    total_supply: TokenAmount
    max_supply: TokenAmount
    whitelist_enabled: bool

    def __post_init__(self) -> None:
        if not isinstance(self.bytecode_hash, bytes) or len(self.bytecode_hash) != _HASH_BYTES:
            raise InvalidToken("The hash of a bytecode has 32 bytes.")
        if not isinstance(self.whitelist_enabled, bool):
            raise InvalidToken("The whitelist is either on or off.")
        check_supplies(self.total_supply, self.max_supply, self.decimals)
        check_ticker(self.ticker)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TokenCall(ByMember):
    """A call of a token's function.

    `contract_id` is the deployment's txid as it is written, `amount` raw units, `address` an output script:
    None where the function takes none. Raises InvalidToken.
    """

    contract_id: str
    function: Function
    amount: TokenAmount | None = None
    address: bytes | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.contract_id, str) or _CONTRACT_ID.fullmatch(self.contract_id) is None:
            raise InvalidToken("A contract is named by the 64 lower-case hex digits of a transaction id.")
        if not isinstance(self.function, Function):
            raise InvalidToken("There is no such function of a token.")
        self._check_arguments()

    def _check_arguments(self) -> None:
        function = self.function
        _check_given("amount", self.amount is not None, function.takes_amount, function)
        _check_given("address", self.address is not None, function.takes_address, function)
        if self.amount is not None and token_amount(self.amount) == 0:
            raise InvalidToken("The amount is zero.")
        if self.address is not None:
            check_holder(self.address)


def _check_given(what: str, given: bool, taken: bool, function: Function) -> None:
    if given is not taken:
        need = "needs an" if taken else "takes no"
        raise InvalidToken(f"The function {function.wire_name} {need} {what}.")


Payload = Deploy | TokenCall


def is_token_payload(data: bytes) -> bool:
    """Whether data claims to be of this protocol, in any version; it may still be impossible to decode."""
    return data.startswith(MAGIC)


def decode_payload(data: bytes) -> Payload:
    """The meaning of the data of an OP_RETURN output. Raises InvalidToken for all but the one
    canonical form.
    """
    if not is_token_payload(data):
        raise InvalidToken("The data is not of a token: it does not begin with CPT.")
    reader = Reader(data)
    reader.take(len(MAGIC))
    try:
        payload = _read(reader)
        reader.finish()
    except WireError as error:
        raise InvalidToken(f"The token data cannot be read: {error}.") from error
    return payload


def encode_payload(payload: Payload) -> bytes:
    """The data of an OP_RETURN output, at most 78 bytes: header 4, contract 32, amount 9, address 33."""
    return b"".join(data for _name, data in payload_parts(payload))


def payload_parts(payload: Payload) -> tuple[tuple[str, bytes], ...]:
    """The parts of the data in order, each with its name: a screen that truncates the data hides the last
    ones.
    """
    return _deploy_parts(payload) if isinstance(payload, Deploy) else _call_parts(payload)


def _read(reader: Reader) -> Payload:
    version, op = divmod(reader.take(1)[0], 16)
    if version != VERSION:
        raise WireError(f"its version is {version}, and only version {VERSION} is known")
    if op == _DEPLOY:
        return _read_deploy(reader)
    if op > max(Function):
        raise WireError(f"there is no function {op}")
    return _read_call(reader, Function(op))


def _read_deploy(reader: Reader) -> Deploy:
    bytecode_hash, flags = reader.take(_HASH_BYTES), reader.take(1)[0]
    if flags & _RESERVED_FLAGS:
        raise WireError("a reserved flag is set")
    total, maximum = read_leb128(reader), read_leb128(reader)
    return Deploy(
        bytecode_hash=bytecode_hash,
        ticker=_read_ticker(reader),
        decimals=flags & _DECIMALS_MASK,
        total_supply=TokenAmount(total),
        max_supply=TokenAmount(maximum),
        whitelist_enabled=bool(flags & _WHITELIST_FLAG),
    )


def _read_ticker(reader: Reader) -> str:
    # Latin-1 maps every byte: `check_ticker` then refuses what is not ASCII.
    return reader.take(reader.take(1)[0]).decode("latin-1")


def _read_call(reader: Reader, function: Function) -> TokenCall:
    return TokenCall(
        contract_id=reader.take(_HASH_BYTES).hex(),
        function=function,
        amount=TokenAmount(read_leb128(reader)) if function.takes_amount else None,
        address=read_holder(reader) if function.takes_address else None,
    )


def _header(op: int) -> bytes:
    return MAGIC + bytes((VERSION << 4 | op,))


def _deploy_parts(deploy: Deploy) -> tuple[tuple[str, bytes], ...]:
    flags, ticker = (
        deploy.decimals | (_WHITELIST_FLAG if deploy.whitelist_enabled else 0),
        deploy.ticker.encode("ascii"),
    )
    return (
        ("function", _header(_DEPLOY)),
        ("bytecode hash", deploy.bytecode_hash),
        ("decimals", bytes((flags,))),
        ("first supply", leb128(deploy.total_supply)),
        ("largest supply", leb128(deploy.max_supply)),
        ("ticker", bytes((len(ticker),)) + ticker),
    )


def _call_parts(call: TokenCall) -> tuple[tuple[str, bytes], ...]:
    amount = () if call.amount is None else (("amount", leb128(call.amount)),)
    address = () if call.address is None else (("recipient", encode_holder(call.address)),)
    return (
        ("function", _header(call.function)),
        ("contract", bytes.fromhex(call.contract_id)),
        *amount,
        *address,
    )


def token_of(data: bytes) -> Payload | None:
    """The payload in the data of an OP_RETURN output, such as an inspection shows; None where it is other
    data.

    Raises InvalidToken where it claims to be of a token and cannot be decoded: that is never just other data.
    """
    return decode_payload(data) if is_token_payload(data) else None


def token_of_script(script_pubkey: bytes) -> Payload | None:
    """The same from an output script; None where it does not carry data in the one standard form. Raises
    InvalidToken.
    """
    data = parse_op_return(script_pubkey)
    return None if data is None else token_of(data)


def token_script(payload: Payload) -> bytes:
    """The output script that carries a payload; its output has the value 0."""
    return op_return_script(encode_payload(payload))
