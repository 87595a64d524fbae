"""A transaction as the device understands it before anything is shown: its coins, its outputs, what is
change; and the previous transactions, asked from the host piece by piece and proven by their hash.

A segwit v0 signature commits to the amount of its own input only, so that a host could understate one amount
at a time and have the difference burnt as fee (S4, CVE-2020-14199). Amounts are therefore read from the
previous transaction, and that from nowhere but its hash (S5).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from coincurve import PublicKey

from device_simulators.trezor.messages import (
    FailureCode,
    OutputScript,
    Request,
    TxAck,
    TxInput,
    TxOutput,
    TxPart,
    TxRequest,
    TxRequestDetails,
)
from device_simulators.trezor.wallet import Path, Place, Wallet, is_address_suffix
from device_simulators.trezor.work import Refused, Work, data_error
from multisig import (
    FeeRate,
    Network,
    NetworkKind,
    OutPoint,
    Sats,
    ScriptKind,
    Transaction,
    TxIn,
    TxOut,
    classify,
    decode_address,
    op_return_script,
    output_weight,
    sats,
    vault_input_weight,
)
from multisig.builder import profile_input_weight

MAX_PARTS = 25_000
"""Inputs or outputs: a block of 4 million weight units has room for fewer inputs, and for few more outputs.
"""


async def ask(work: Work, request: Request, index: int | None = None, tx_hash: bytes | None = None) -> TxPart:
    """One piece of the transaction to sign, or, with `tx_hash` in display order, of a previous one."""
    details = TxRequestDetails(request_index=index, tx_hash=tx_hash)
    work.send(TxRequest(request_type=request, details=details))
    answer = await work.receive(TxAck)
    if answer.tx is None:
        raise data_error("Missing transaction")
    return answer.tx


async def fetch_previous(work: Work, tx_hash: bytes) -> Transaction:
    """The transaction with this hash (display order, 32 bytes).

    :raises Refused: what the host sent has another hash.
    """
    meta = await ask(work, Request.META, tx_hash=tx_hash)
    _check_meta(meta)
    transaction = Transaction(
        version=meta.version or 0,
        inputs=tuple([await _input(work, tx_hash, at) for at in range(meta.inputs_cnt or 0)]),
        outputs=tuple([await _output(work, tx_hash, at) for at in range(meta.outputs_cnt or 0)]),
        locktime=meta.lock_time or 0,
    )
    if transaction.txid != tx_hash.hex():
        raise data_error("Encountered invalid prevhash")
    return transaction


def _check_meta(meta: TxPart) -> None:
    if meta.extra_data_len:
        raise data_error("Extra data not enabled for this coin")
    if not 0 < (meta.inputs_cnt or 0) <= MAX_PARTS or not 0 < (meta.outputs_cnt or 0) <= MAX_PARTS:
        raise data_error("Invalid number of inputs or outputs")


async def _input(work: Work, tx_hash: bytes, index: int) -> TxIn:
    part = await ask(work, Request.INPUT, index, tx_hash)
    if len(part.inputs) != 1:
        raise data_error("Missing input")
    got = part.inputs[0]
    return TxIn(
        outpoint=OutPoint(got.prev_hash.hex(), got.prev_index),
        sequence=0xFFFFFFFF if got.sequence is None else got.sequence,
        script_sig=got.script_sig or b"",
    )


async def _output(work: Work, tx_hash: bytes, index: int) -> TxOut:
    part = await ask(work, Request.OUTPUT, index, tx_hash)
    if len(part.bin_outputs) != 1:
        raise data_error("Missing output")
    got = part.bin_outputs[0]
    return TxOut(Sats(got.amount), got.script_pubkey)


DEFAULT_SEQUENCE = 0xFFFFFFFF

HIGH_FEE_RATES = {NetworkKind.MAINNET: FeeRate(2_000_000), NetworkKind.TESTNET: FeeRate(10_000_000)}
"""Above it the person is warned (S7): `maxfee_kb` of common/defs/bitcoin at legacy/v1.14.1."""

_OVERHEAD_WEIGHT = 4 * 10 + 2
"""Version, counts, lock time, marker and flag, for fewer than 253 inputs and outputs."""


@dataclass(frozen=True)
class Coin:
    """An input of ours. `message` is what the host sent at the first look."""

    message: TxInput
    place: Place
    amount: Sats

    @property
    def tx_in(self) -> TxIn:
        sequence = DEFAULT_SEQUENCE if self.message.sequence is None else self.message.sequence
        return TxIn(OutPoint(self.message.prev_hash.hex(), self.message.prev_index), sequence)


@dataclass(frozen=True)
class Output:
    """`op_return` is its data where it carries some, `place` where the host says it is ours."""

    tx_out: TxOut
    place: Place | None
    op_return: bytes | None


@dataclass(frozen=True)
class Spend:
    version: int
    lock_time: int
    coins: tuple[Coin, ...]
    outputs: tuple[Output, ...]

    @cached_property
    def transaction(self) -> Transaction:
        return Transaction(
            version=self.version,
            inputs=tuple(coin.tx_in for coin in self.coins),
            outputs=tuple(output.tx_out for output in self.outputs),
            locktime=self.lock_time,
        )

    @cached_property
    def change(self) -> tuple[Output, ...]:
        """Outputs that return to the account and quorum of *every* input; not shown to the person (S1, S2,
        S3).
        """
        return tuple(output for output in self.outputs if self._is_change(output))

    @property
    def payments(self) -> tuple[Output, ...]:
        return tuple(output for output in self.outputs if not self._is_change(output))

    @property
    def fee(self) -> Sats:
        """:raises Refused: the outputs are more than the inputs."""
        difference = sum(coin.amount for coin in self.coins) - sum(out.tx_out.amount for out in self.outputs)
        if difference < 0:
            raise Refused(FailureCode.NOT_ENOUGH_FUNDS, "Not enough funds")
        return sats(difference)

    @property
    def spent(self) -> Sats:
        """Payments and fee."""
        return Sats(sum(output.tx_out.amount for output in self.payments) + self.fee)

    @property
    def fee_rate(self) -> FeeRate:
        weight = _OVERHEAD_WEIGHT + sum(_input_weight(coin.place) for coin in self.coins)
        weight += sum(output_weight(output.tx_out.script_pubkey) for output in self.outputs)
        return FeeRate.of(self.fee, -(-weight // 4))

    def fee_is_high(self, network: Network) -> bool:
        return self.fee_rate.sat_per_kvb > HIGH_FEE_RATES[network.kind].sat_per_kvb

    @property
    def lock_time_holds(self) -> bool:
        return bool(self.lock_time) and any(coin.tx_in.sequence != DEFAULT_SEQUENCE for coin in self.coins)

    def _is_change(self, output: Output) -> bool:
        place = output.place
        return (
            place is not None
            and self._accounts == {_account(place.path)}
            and self._identities == {place.identity}
            and is_address_suffix(place.path[-2:])
            and (place.quorum is None or place.quorum.at_one_place)
            and output.tx_out.amount > 0
        )

    @cached_property
    def _accounts(self) -> set[Path]:
        return {_account(coin.place.path) for coin in self.coins}

    @cached_property
    def _identities(self) -> set[bytes | None]:
        return {coin.place.identity for coin in self.coins}


def read_output(message: TxOutput, wallet: Wallet) -> Output:
    """One output, its script derived by the device itself where the host names a path.

    :raises Refused: an output of a kind that the device does not make.
    :raises MultisigError: an address of another network, an impossible amount, too long data.
    """
    kind = message.script_type or OutputScript.TO_ADDRESS
    if kind == OutputScript.TO_OP_RETURN:
        return _read_op_return(message)
    if kind == OutputScript.TO_WITNESS and message.address_n and message.address is None:
        place = wallet.place(message.address_n, message.multisig)
        return Output(TxOut(sats(message.amount), place.script_pubkey), place, None)
    if kind == OutputScript.TO_ADDRESS and message.address is not None and not message.address_n:
        script = decode_address(message.address, wallet.network)
        if classify(script) is ScriptKind.P2TR:
            _require_point(script[2:])
        return Output(TxOut(sats(message.amount), script), None, None)
    raise data_error("Invalid output")


def _require_point(x_only: bytes) -> None:
    """32 bytes that are the x of a point of the curve (BIP-340)."""
    try:
        PublicKey(b"\x02" + x_only)
    except ValueError:
        raise Refused(FailureCode.PROCESS_ERROR, "Failed to compile output") from None


def _read_op_return(message: TxOutput) -> Output:
    """Its amount is judged when its turn to be shown comes (`payments_in_turn`)."""
    if message.address is not None or message.address_n or message.multisig:
        raise data_error("OP_RETURN output with address or multisig")
    data = message.op_return_data or b""
    return Output(TxOut(sats(message.amount), op_return_script(data)), None, data)


def payments_in_turn(spend: Spend) -> Iterator[Output]:
    """:raises Refused: data with an amount, after the payments before it were shown."""
    for output in spend.payments:
        if output.op_return is not None and output.tx_out.amount:
            raise data_error("OP_RETURN output with non-zero amount")
        yield output


def read_coin(message: TxInput, wallet: Wallet, previous: Transaction) -> Coin:
    """One input, its amount and script taken from the transaction that made the coin (S4).

    :raises Refused: the host claimed another amount, or the coin is not what it said.
    """
    if message.prev_index >= len(previous.outputs):
        raise data_error("Not enough outputs in previous transaction.")
    spent = previous.outputs[message.prev_index]
    place = wallet.place(message.address_n, message.multisig)
    if message.amount != spent.amount:
        raise data_error("Invalid amount specified")
    if place.script_pubkey != spent.script_pubkey:
        raise data_error("Input does not match scriptPubKey")
    return Coin(message, place, spent.amount)


def require_distinct(coins: Sequence[Coin]) -> None:
    """:raises Refused: a coin is spent twice."""
    if len({coin.tx_in.outpoint for coin in coins}) != len(coins):
        raise data_error("Duplicate input")


def _account(path: Path) -> Path:
    return path[:-2]


def _input_weight(place: Place) -> int:
    quorum = place.quorum
    if quorum is None:
        return profile_input_weight()
    return vault_input_weight(quorum.threshold, len(quorum.public_keys))
