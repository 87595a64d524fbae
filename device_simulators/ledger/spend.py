"""A transaction as the device understands it before anything is shown: its coins, its outputs, which are
change, and an OP_RETURN in words that can be read in one way only.

Pure: built from what was fetched and proven.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from multisig import OutPoint, Sats, Transaction, TxIn, TxOut, sats
from multisig.wire import Reader, WireError

_HIGH_FEE_FROM = Sats(100_000)
_HIGH_FEE_SHARE = 10


@dataclass(frozen=True)
class LedgerPlace:
    """Chain and index below the keys of the policy."""

    chain: int
    index: int


@dataclass(frozen=True)
class LedgerCoin:
    """An input. Without a `place` it is not of the wallet that signs; `is_verified` by its previous
    transaction.
    """

    outpoint: OutPoint
    sequence: int
    amount: Sats
    place: LedgerPlace | None
    is_verified: bool


@dataclass(frozen=True)
class LedgerOutput:
    tx_out: TxOut
    is_change: bool


@dataclass(frozen=True)
class LedgerSpend:
    version: int
    lock_time: int
    coins: tuple[LedgerCoin, ...]
    outputs: tuple[LedgerOutput, ...]

    @cached_property
    def transaction(self) -> Transaction:
        return Transaction(
            version=self.version,
            inputs=tuple(TxIn(coin.outpoint, coin.sequence) for coin in self.coins),
            outputs=tuple(output.tx_out for output in self.outputs),
            locktime=self.lock_time,
        )

    @cached_property
    def own_coins(self) -> tuple[tuple[int, LedgerCoin], ...]:
        """The inputs to sign, with their numbers."""
        return tuple((at, coin) for at, coin in enumerate(self.coins) if coin.place is not None)

    @property
    def payments(self) -> Sequence[TxOut]:
        return [output.tx_out for output in self.outputs if not output.is_change]

    @property
    def total_in(self) -> int:
        return sum(coin.amount for coin in self.coins)

    @property
    def total_out(self) -> int:
        return sum(output.tx_out.amount for output in self.outputs)

    @property
    def fee(self) -> Sats:
        return sats(self.total_in - self.total_out)

    @property
    def has_unverified_inputs(self) -> bool:
        return not all(coin.is_verified for _, coin in self.own_coins)

    @property
    def has_high_fee(self) -> bool:
        return self.total_in > _HIGH_FEE_FROM and self.fee * _HIGH_FEE_SHARE >= self.total_in


MAX_PUSHES = 5
"""The app's limit (common/script.c)."""

_OP_PUSHDATA1, _OP_1NEGATE, _OP_1, _OP_16 = 0x4C, 0x4F, 0x51, 0x60
_OP_RETURN = 0x6A


def describe_op_return(script: bytes) -> str | None:
    """Such as `OP_RETURN 0xab12 5`; None for a script of another kind, or one that the app does not sign."""
    if script[:1] != bytes((_OP_RETURN,)):
        return None
    reader = Reader(script)
    reader.take(1)
    words = ["OP_RETURN"]
    try:
        while reader.remaining:
            words.append(_push(reader))
    except WireError:
        return None
    return " ".join(words) if len(words) <= 1 + MAX_PUSHES else None


def _push(reader: Reader) -> str:
    opcode = reader.uint(1)
    if opcode == 0:
        return "0"
    if opcode < _OP_PUSHDATA1:
        return _data(reader, opcode)
    if opcode == _OP_PUSHDATA1:
        length = reader.uint(1)
        if length < _OP_PUSHDATA1:
            raise WireError("a push is not in its shortest form")
        return _data(reader, length)
    if opcode == _OP_1NEGATE:
        return "-1"
    if _OP_1 <= opcode <= _OP_16:
        return str(opcode - _OP_1 + 1)
    raise WireError("no push")


def _data(reader: Reader, length: int) -> str:
    data = reader.take(length)
    if length == 1 and (data[0] == 0x81 or 1 <= data[0] <= 16):
        raise WireError("a push is not in its shortest form")
    return "0x" + data.hex()
