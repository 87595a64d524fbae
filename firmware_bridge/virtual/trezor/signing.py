"""SignTx: the device asks for the transaction piece by piece, proves it, shows it, and signs.

The order differs from the firmware's in one thing: previous transactions are proven before the person is asked, not
after, so that nobody is shown a fee that is not true.
"""

from firmware_bridge.virtual.faults import Faults, Phase
from firmware_bridge.virtual.trezor import screens
from firmware_bridge.virtual.trezor.messages import (
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
from firmware_bridge.virtual.trezor.paths import require_coin
from firmware_bridge.virtual.trezor.previous import MAX_PARTS, ask, fetch_previous
from firmware_bridge.virtual.trezor.spend import Coin, Output, Spend, read_coin, read_output, require_distinct
from firmware_bridge.virtual.trezor.wallet import Wallet
from firmware_bridge.virtual.trezor.work import Refused, Work, data_error
from multisig import SighashCache, Transaction

MAX_SILENT_CHANGE = 2
"""More change outputs than this are announced, as the firmware does."""

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
    require_coin(request.coin_name, wallet.network)
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
    fee, rate = spend.fee, spend.fee_rate
    network = wallet.network
    for output in spend.payments:
        await _approve_output(work, wallet, output)
    if spend.fee_is_high(network):
        await work.confirm(ButtonCode.FEE_OVER_THRESHOLD, screens.high_fee(fee, network))
    if len(spend.change) > MAX_SILENT_CHANGE:
        await work.confirm(ButtonCode.SIGN_TX, screens.change_count(len(spend.change)))
    if spend.lock_time:
        prompt = screens.lock_time(spend.lock_time, disabled=not spend.lock_time_holds)
        await work.confirm(ButtonCode.SIGN_TX, prompt)
    await work.confirm(ButtonCode.SIGN_TX, screens.total(spend.spent, fee, rate, network))


async def _approve_output(work: Work, wallet: Wallet, output: Output) -> None:
    if output.op_return is not None:
        prompt = screens.op_return(output.op_return, wallet.model.data)
        await work.confirm(ButtonCode.CONFIRM_OUTPUT, prompt)
        return
    address = wallet.show(output.tx_out.script_pubkey)
    assert address is not None, "every other output was made from an address or a path"
    path = None if output.place is None else output.place.path
    prompt = screens.payment(output.tx_out.amount, address, wallet.network, path)
    await work.confirm(ButtonCode.CONFIRM_OUTPUT, prompt)


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
