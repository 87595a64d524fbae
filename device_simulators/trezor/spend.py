"""A transaction as the device understands it before anything is shown: its coins, its outputs, what is
change; and the previous transactions, asked from the host piece by piece and proven by their hash.

A segwit v0 signature commits to the amount of its own input only, so that a host could understate one amount
at a time and have the difference burnt as fee (S4, CVE-2020-14199). Amounts are therefore read from the
previous transaction, and that from nowhere but its hash (S5).
"""

from dataclasses import dataclass
from functools import cached_property

from device_simulators.trezor.messages import (
    OutputScript,
    TxAck,
    TxInput,
    TxOutput,
    TxPart,
    TxRequest,
    TxRequestDetails,
    TxRequestType,
)
from device_simulators.trezor.wallet import Path, TrezorPlace, TrezorWallet, is_address_suffix
from device_simulators.trezor.work import TrezorWork, data_error
from multisig import (
    FeeRate,
    OutPoint,
    Sats,
    Transaction,
    TxIn,
    TxOut,
    decode_address,
    op_return_script,
    output_weight,
    sats,
    vault_input_weight,
)
from multisig.builder import profile_input_weight


async def ask(
    work: TrezorWork, request: TxRequestType, index: int | None = None, tx_hash: bytes | None = None
) -> TxPart:
    """One piece of the transaction to sign, or, with `tx_hash` in display order, of a previous one."""
    details = TxRequestDetails(request_index=index, tx_hash=tx_hash)
    work.send(TxRequest(request_type=request, details=details))
    answer = await work.receive(TxAck)
    if answer.tx is None:
        raise data_error("Missing transaction")
    return answer.tx


async def fetch_previous(work: TrezorWork, tx_hash: bytes) -> Transaction:
    """The transaction with this hash (display order, 32 bytes).

    :raises Refused: what the host sent has another hash.
    """
    meta = await ask(work, TxRequestType.META, tx_hash=tx_hash)
    transaction = Transaction(
        version=meta.version or 0,
        inputs=tuple([await _input(work, tx_hash, at) for at in range(meta.inputs_cnt or 0)]),
        outputs=tuple([await _output(work, tx_hash, at) for at in range(meta.outputs_cnt or 0)]),
        locktime=meta.lock_time or 0,
    )
    if transaction.txid != tx_hash.hex():
        raise data_error("Encountered invalid prevhash")
    return transaction


async def _input(work: TrezorWork, tx_hash: bytes, index: int) -> TxIn:
    got = (await ask(work, TxRequestType.INPUT, index, tx_hash)).inputs[0]
    return TxIn(
        outpoint=OutPoint(got.prev_hash.hex(), got.prev_index),
        sequence=0xFFFFFFFF if got.sequence is None else got.sequence,
        script_sig=got.script_sig or b"",
    )


async def _output(work: TrezorWork, tx_hash: bytes, index: int) -> TxOut:
    got = (await ask(work, TxRequestType.OUTPUT, index, tx_hash)).bin_outputs[0]
    return TxOut(Sats(got.amount), got.script_pubkey)


DEFAULT_SEQUENCE = 0xFFFFFFFF

_OVERHEAD_WEIGHT = 4 * 10 + 2
"""Version, counts, lock time, marker and flag, for fewer than 253 inputs and outputs."""


@dataclass(frozen=True)
class TrezorCoin:
    """An input of ours. `message` is what the host sent at the first look."""

    message: TxInput
    place: TrezorPlace
    amount: Sats

    @property
    def tx_in(self) -> TxIn:
        sequence = DEFAULT_SEQUENCE if self.message.sequence is None else self.message.sequence
        return TxIn(OutPoint(self.message.prev_hash.hex(), self.message.prev_index), sequence)


@dataclass(frozen=True)
class TrezorOutput:
    """`op_return` is its data where it carries some, `place` where the host says it is ours."""

    tx_out: TxOut
    place: TrezorPlace | None
    op_return: bytes | None


@dataclass(frozen=True)
class TrezorSpend:
    version: int
    lock_time: int
    coins: tuple[TrezorCoin, ...]
    outputs: tuple[TrezorOutput, ...]

    @cached_property
    def transaction(self) -> Transaction:
        return Transaction(
            version=self.version,
            inputs=tuple(coin.tx_in for coin in self.coins),
            outputs=tuple(output.tx_out for output in self.outputs),
            locktime=self.lock_time,
        )

    @cached_property
    def change(self) -> tuple[TrezorOutput, ...]:
        """Outputs that return to the account and quorum of *every* input; not shown to the person (S1, S2,
        S3).
        """
        return tuple(output for output in self.outputs if self._is_change(output))

    @property
    def payments(self) -> tuple[TrezorOutput, ...]:
        return tuple(output for output in self.outputs if not self._is_change(output))

    @property
    def fee(self) -> Sats:
        return sats(sum(coin.amount for coin in self.coins) - sum(out.tx_out.amount for out in self.outputs))

    @property
    def spent(self) -> Sats:
        """Payments and fee."""
        return Sats(sum(output.tx_out.amount for output in self.payments) + self.fee)

    @property
    def fee_rate(self) -> FeeRate:
        weight = _OVERHEAD_WEIGHT + sum(_input_weight(coin.place) for coin in self.coins)
        weight += sum(output_weight(output.tx_out.script_pubkey) for output in self.outputs)
        return FeeRate.of(self.fee, -(-weight // 4))

    @property
    def lock_time_holds(self) -> bool:
        return bool(self.lock_time) and any(coin.tx_in.sequence != DEFAULT_SEQUENCE for coin in self.coins)

    def _is_change(self, output: TrezorOutput) -> bool:
        place = output.place
        return (
            place is not None
            and self._accounts == {_account(place.path)}
            and self._identities == {place.identity}
            and is_address_suffix(place.path[-2:])
            and output.tx_out.amount > 0
        )

    @cached_property
    def _accounts(self) -> set[Path]:
        return {_account(coin.place.path) for coin in self.coins}

    @cached_property
    def _identities(self) -> set[bytes | None]:
        return {coin.place.identity for coin in self.coins}


def read_output(message: TxOutput, wallet: TrezorWallet) -> TrezorOutput:
    """One output, its script derived by the device itself where the host names a path.

    :raises Refused: an output of a kind that the device does not make.
    :raises MultisigError: an address of another network, an impossible amount, too long data.
    """
    kind = message.script_type or OutputScript.TO_ADDRESS
    if kind == OutputScript.TO_OP_RETURN:
        return _read_op_return(message)
    if kind == OutputScript.TO_WITNESS and message.address_n and message.address is None:
        place = wallet.place(message.address_n, message.multisig)
        return TrezorOutput(TxOut(sats(message.amount), place.script_pubkey), place, None)
    if kind == OutputScript.TO_ADDRESS and message.address is not None and not message.address_n:
        script = decode_address(message.address, wallet.network)
        return TrezorOutput(TxOut(sats(message.amount), script), None, None)
    raise data_error("Invalid output")


def _read_op_return(message: TxOutput) -> TrezorOutput:
    data = message.op_return_data or b""
    return TrezorOutput(TxOut(sats(message.amount), op_return_script(data)), None, data)


def read_coin(message: TxInput, wallet: TrezorWallet, previous: Transaction) -> TrezorCoin:
    """One input, its amount and script taken from the transaction that made the coin (S4).

    :raises Refused: the coin is not what the host said.
    """
    spent = previous.outputs[message.prev_index]
    place = wallet.place(message.address_n, message.multisig)
    if place.script_pubkey != spent.script_pubkey:
        raise data_error("Input does not match scriptPubKey")
    return TrezorCoin(message, place, spent.amount)


def _account(path: Path) -> Path:
    return path[:-2]


def _input_weight(place: TrezorPlace) -> int:
    quorum = place.quorum
    if quorum is None:
        return profile_input_weight()
    return vault_input_weight(quorum.threshold, len(quorum.public_keys))
