"""SignTx: the device asks for the transaction piece by piece, proves it, shows it, and signs.

The order differs from the firmware's in one thing: previous transactions are proven before the person is asked, not
after, so that nobody is shown a fee that is not true.
"""

from collections.abc import Iterator

from device_simulators.faults import Faults, Phase
from device_simulators.trezor import core_screens, screens
from device_simulators.trezor.messages import (
    ButtonCode,
    FailureCode,
    InputScript,
    Request,
    SignTx,
    TxAck,
    TxInput,
    TxRequest,
    TxRequestDetails,
    TxRequestSerialized,
)
from device_simulators.trezor.previous import MAX_PARTS, ask, fetch_previous
from device_simulators.trezor.spend import Coin, Output, Spend, read_coin, read_output, require_distinct
from device_simulators.trezor.wallet import Wallet
from device_simulators.trezor.work import Refused, Work, data_error
from multisig import SighashCache, Transaction

MAX_SILENT_CHANGE = 2
"""More change outputs than this are announced, as the firmware does."""

MAX_HIGH_FEE = 10
"""Times the rate from which a model with a touchscreen asks: above it, it does not sign."""

_DEFAULT_VERSION = 1


async def sign_tx(work: Work, wallet: Wallet, request: SignTx) -> TxRequest:
    """The whole conversation; what is returned is its last message, with the last signature.

    :raises Refused: the transaction is not one that the device signs, or the person said no.
    """
    _check_request(request, wallet)
    work.reach(Phase.RECEIVE)
    spend = await _receive(work, wallet, request)
    await _approve(work, wallet, spend)
    work.reach(Phase.SIGN)
    return await _sign(work, wallet, spend)


def _check_request(request: SignTx, wallet: Wallet) -> None:
    if not 0 < request.inputs_count <= MAX_PARTS or not 0 < request.outputs_count <= MAX_PARTS:
        raise data_error("Invalid number of inputs or outputs")
    if wallet.model.max_inputs is not None and request.inputs_count > wallet.model.max_inputs:
        raise data_error("Too many inputs.")
    if request.serialize is not False:
        raise data_error("This device returns signatures only: ask with serialize=false")


async def _receive(work: Work, wallet: Wallet, request: SignTx) -> Spend:
    messages = [await _ask_input(work, at) for at in range(request.inputs_count)]
    outputs = [await _ask_output(work, wallet, at) for at in range(request.outputs_count)]
    previous: dict[bytes, Transaction] = {}
    for message in messages:
        if message.prev_hash not in previous:
            previous[message.prev_hash] = await fetch_previous(work, message.prev_hash)
    coins = tuple(read_coin(message, wallet, previous[message.prev_hash]) for message in messages)
    require_distinct(coins)
    version = _DEFAULT_VERSION if request.version is None else request.version
    return Spend(version, request.lock_time or 0, coins, tuple(outputs))


async def _ask_input(work: Work, index: int) -> TxInput:
    part = await ask(work, Request.INPUT, index)
    return _require_segwit(part.inputs)


def _require_segwit(inputs: tuple[TxInput, ...]) -> TxInput:
    if len(inputs) != 1:
        raise data_error("Missing input")
    if (inputs[0].script_type or InputScript.ADDRESS) != InputScript.WITNESS:
        raise data_error("Only native segwit inputs are signed here")
    return inputs[0]


async def _ask_output(work: Work, wallet: Wallet, index: int) -> Output:
    part = await ask(work, Request.OUTPUT, index)
    if len(part.outputs) != 1:
        raise data_error("Missing output")
    return read_output(part.outputs[0], wallet)


async def _approve(work: Work, wallet: Wallet, spend: Spend) -> None:
    """Every payment, every oddity, then the whole, in the firmware's order. The first no ends it."""
    questions = _questions_on_touch if wallet.model.on_device else _questions
    for code, prompt in questions(wallet, spend):
        await work.confirm(code, prompt)


def _questions(wallet: Wallet, spend: Spend) -> Iterator[screens.Asked]:
    fee, rate, network = spend.fee, spend.fee_rate, wallet.network
    for output in spend.payments:
        if output.op_return is not None:
            prompt = screens.op_return(output.op_return, wallet.model.data)
        else:
            path = None if output.place is None else output.place.path
            prompt = screens.payment(output.tx_out.amount, _address(wallet, output), network, path)
        yield ButtonCode.CONFIRM_OUTPUT, prompt
    if spend.fee_is_high(network):
        yield ButtonCode.FEE_OVER_THRESHOLD, screens.high_fee(fee, network)
    if len(spend.change) > MAX_SILENT_CHANGE:
        yield ButtonCode.SIGN_TX, screens.change_count(len(spend.change))
    if spend.lock_time:
        yield ButtonCode.SIGN_TX, screens.lock_time(spend.lock_time, disabled=not spend.lock_time_holds)
    yield ButtonCode.SIGN_TX, screens.total(spend.spent, fee, rate, network)


def _questions_on_touch(wallet: Wallet, spend: Spend) -> Iterator[screens.Asked]:
    """core/v2.3.6, core/src/apps/bitcoin/sign_tx/approvers.py, BasicApprover.

    :raises Refused: a fee that strict safety checks do not let pass.
    """
    fee, network = spend.fee, wallet.network
    for output in spend.payments:
        if output.op_return is not None:
            yield core_screens.op_return(output.op_return, wallet.model.data)
        else:
            yield core_screens.payment(output.tx_out.amount, _address(wallet, output), network)
    if spend.fee_is_high(network):
        if spend.fee_is_high(network, times=MAX_HIGH_FEE):
            raise data_error("The fee is unexpectedly large")
        yield core_screens.high_fee(fee, network)
    if len(spend.change) > MAX_SILENT_CHANGE:
        yield core_screens.change_count(len(spend.change))
    if spend.lock_time:
        yield core_screens.lock_time(spend.lock_time, disabled=not spend.lock_time_holds)
    yield core_screens.total(spend.spent, fee, network)


def _address(wallet: Wallet, output: Output) -> str:
    address = wallet.show(output.tx_out.script_pubkey)
    assert address is not None, "every other output was made from an address or a path"
    return address


async def _sign(work: Work, wallet: Wallet, spend: Spend) -> TxRequest:
    """Each input is asked for once more and must be what was shown (S3); its signature rides on the next request."""
    hashes = SighashCache(spend.transaction)
    signed: TxRequestSerialized | None = None
    for index, coin in enumerate(spend.coins):
        details = TxRequestDetails(request_index=index)
        work.send(TxRequest(request_type=Request.INPUT, details=details, serialized=signed))
        again = await work.receive(TxAck)
        if again.tx is None or again.tx.inputs != (coin.message,):
            raise Refused(FailureCode.PROCESS_ERROR, "Transaction has changed during signing")
        digest = hashes.segwit_v0(index, coin.place.script_code, coin.amount)
        signed = _signature(wallet, coin, index, digest, work.faults)
    work.reach(Phase.RETURN)
    return TxRequest(request_type=Request.FINISHED, serialized=signed)


def _signature(
    wallet: Wallet, coin: Coin, index: int, digest: bytes, faults: Faults
) -> TxRequestSerialized | None:
    if index in faults.missing_signatures:
        return None
    if index in faults.wrong_signatures:
        digest = digest[::-1]
    return TxRequestSerialized(signature_index=index, signature=wallet.sign(coin.place.path, digest))
