"""What the device does for a host: public keys, addresses, messages; and SignTx, for which the device asks
for the transaction piece by piece, proves it, shows it, and signs.

SignTx differs from the firmware's order in one thing: previous transactions are proven before the person is
asked, not after, so that the fee on the screen is always true.
"""

from collections.abc import Iterator
from itertools import cycle

from device_simulators.faults import Faults, Phase
from device_simulators.trezor import screens
from device_simulators.trezor.messages import (
    Address,
    ButtonCode,
    GetAddress,
    GetPublicKey,
    HDNode,
    InputScript,
    MessageSignature,
    PublicKey,
    SignMessage,
    SignTx,
    TxAck,
    TxInput,
    TxRequest,
    TxRequestDetails,
    TxRequestSerialized,
    TxRequestType,
)
from device_simulators.trezor.spend import (
    TrezorCoin,
    TrezorOutput,
    TrezorSpend,
    ask,
    fetch_previous,
    read_coin,
    read_output,
)
from device_simulators.trezor.wallet import (
    Quorum,
    TrezorPlace,
    TrezorWallet,
    extended_key,
    require_key_path,
    require_message_path,
)
from device_simulators.trezor.work import TrezorWork, data_error
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    NetworkKind,
    SighashCache,
    Transaction,
    encodings,
    message_hash,
)

_SLIP132 = {NetworkKind.MAINNET: bytes.fromhex("04b24746"), NetworkKind.TESTNET: bytes.fromhex("045f1cf6")}
"""xpub_magic_segwit_native of common/defs/bitcoin."""


async def get_public_key(work: TrezorWork, wallet: TrezorWallet, request: GetPublicKey) -> PublicKey:
    """An extended public key, in the text form of the coin that the host names."""
    require_key_path(request.address_n)
    xpub = wallet.seed.xpub(DerivationPath(request.address_n), wallet.network)
    work.misbehaviour.reach(Phase.XPUB)
    return PublicKey(
        node=_node(xpub),
        xpub=str(xpub),
        root_fingerprint=int.from_bytes(bytes(wallet.seed.fingerprint), "big"),
    )


async def get_address(work: TrezorWork, wallet: TrezorWallet, request: GetAddress) -> Address:
    """The native segwit address at a path: of the own key, or of the quorum that the host describes."""
    if request.script_type != InputScript.WITNESS:
        raise data_error("Only native segwit is in use here")
    place = wallet.place(request.address_n, request.multisig)
    address = wallet.show(place.script_pubkey)
    assert address is not None
    if request.show_display:
        await _show_address(work, wallet, place, address)
    return Address(address=address)


async def _show_address(work: TrezorWork, wallet: TrezorWallet, place: TrezorPlace, address: str) -> None:
    """Page after page until the person confirms one: the left button leads to the next, and means no "no"."""
    for code, prompt in cycle(_address_pages(wallet, place, address)):
        if await work.choose(code, prompt):
            return


def _address_pages(wallet: TrezorWallet, place: TrezorPlace, address: str) -> Iterator[screens.ButtonPrompt]:
    keys: tuple[screens.CosignerKey, ...] = ()
    words = None
    if (quorum := place.quorum) is not None:
        keys = _shown_keys(wallet, quorum)
        words = screens.quorum(quorum.threshold, len(keys), ordered=quorum.ordered)
    first = screens.address(address, place.path, words, wallet.network)
    pages = (first, screens.address_code(), *screens.address_keys(keys))
    return ((ButtonCode.ADDRESS, page) for page in pages)


def _shown_keys(wallet: TrezorWallet, quorum: Quorum) -> tuple[screens.CosignerKey, ...]:
    """In SLIP-132's form for native segwit: zpub, vpub."""
    kind = wallet.network.kind
    version = _SLIP132[kind]
    plain = (encodings.decode_base58check(str(extended_key(node, kind))) for node in quorum.nodes)
    return tuple(
        screens.CosignerKey(encodings.encode_base58check(version + key[4:]), own=number == quorum.own)
        for number, key in enumerate(plain)
    )


async def sign_message(work: TrezorWork, wallet: TrezorWallet, request: SignMessage) -> MessageSignature:
    """A Bitcoin Signed Message by the key at a full address path (BIP-137, compressed P2PKH header)."""
    require_message_path(request.address_n, wallet.network)
    text = request.message.decode()
    address = wallet.legacy_address(request.address_n)
    # Every path here is one of another kind of address than P2PKH, and the firmware says so.
    await work.confirm(ButtonCode.UNKNOWN_DERIVATION_PATH, screens.unusual_path())
    await work.confirm(ButtonCode.OTHER, screens.message_signer(address))
    for prompt in screens.message(request.message):
        await work.confirm(ButtonCode.OTHER, prompt)
    work.misbehaviour.reach(Phase.SIGN)
    signature = wallet.seed.sign_recoverable(DerivationPath(request.address_n), message_hash(text))
    work.misbehaviour.reach(Phase.RETURN)
    return MessageSignature(address=address, signature=signature)


def _node(xpub: ExtendedPublicKey) -> HDNode:
    return HDNode(
        depth=xpub.depth,
        fingerprint=int.from_bytes(bytes(xpub.parent_fingerprint), "big"),
        child_num=xpub.child_number,
        chain_code=xpub.chain_code,
        public_key=xpub.public_key,
    )


MAX_SILENT_CHANGE = 2
"""More change outputs than this are announced, as the firmware does."""

_DEFAULT_VERSION = 1


async def sign_tx(work: TrezorWork, wallet: TrezorWallet, request: SignTx) -> TxRequest:
    """The whole conversation; what is returned is its last message, with the last signature.

    :raises Refused: the transaction is not one that the device signs, or the person said no.
    """
    work.misbehaviour.reach(Phase.RECEIVE)
    spend = await _receive(work, wallet, request)
    await _approve(work, wallet, spend)
    work.misbehaviour.reach(Phase.SIGN)
    return await _sign(work, wallet, spend)


async def _receive(work: TrezorWork, wallet: TrezorWallet, request: SignTx) -> TrezorSpend:
    messages = [await _ask_input(work, at) for at in range(request.inputs_count)]
    outputs = [await _ask_output(work, wallet, at) for at in range(request.outputs_count)]
    previous: dict[bytes, Transaction] = {}
    for message in messages:
        if message.prev_hash not in previous:
            previous[message.prev_hash] = await fetch_previous(work, message.prev_hash)
    coins = tuple(read_coin(message, wallet, previous[message.prev_hash]) for message in messages)
    version = _DEFAULT_VERSION if request.version is None else request.version
    return TrezorSpend(version, request.lock_time or 0, coins, tuple(outputs))


async def _ask_input(work: TrezorWork, index: int) -> TxInput:
    return (await ask(work, TxRequestType.INPUT, index)).inputs[0]


async def _ask_output(work: TrezorWork, wallet: TrezorWallet, index: int) -> TrezorOutput:
    return read_output((await ask(work, TxRequestType.OUTPUT, index)).outputs[0], wallet)


async def _approve(work: TrezorWork, wallet: TrezorWallet, spend: TrezorSpend) -> None:
    """Every payment, every oddity, then the whole, in the firmware's order. The first no ends it."""
    for code, prompt in _questions(wallet, spend):
        await work.confirm(code, prompt)


def _questions(wallet: TrezorWallet, spend: TrezorSpend) -> Iterator[screens.ButtonPrompt]:
    fee, rate, network = spend.fee, spend.fee_rate, wallet.network
    for output in spend.payments:
        if output.op_return is not None:
            prompt = screens.op_return(output.op_return)
        else:
            path = None if output.place is None else output.place.path
            prompt = screens.payment(output.tx_out.amount, _address(wallet, output), network, path)
        yield ButtonCode.CONFIRM_OUTPUT, prompt
    if len(spend.change) > MAX_SILENT_CHANGE:
        yield ButtonCode.SIGN_TX, screens.change_count(len(spend.change))
    if spend.lock_time:
        yield ButtonCode.SIGN_TX, screens.lock_time(spend.lock_time, disabled=not spend.lock_time_holds)
    yield ButtonCode.SIGN_TX, screens.total(spend.spent, fee, rate, network)


def _address(wallet: TrezorWallet, output: TrezorOutput) -> str:
    address = wallet.show(output.tx_out.script_pubkey)
    assert address is not None, "every other output was made from an address or a path"
    return address


async def _sign(work: TrezorWork, wallet: TrezorWallet, spend: TrezorSpend) -> TxRequest:
    """Each input is asked for once more; its signature rides on the next request."""
    hashes = SighashCache(spend.transaction)
    signed: TxRequestSerialized | None = None
    for index, coin in enumerate(spend.coins):
        details = TxRequestDetails(request_index=index)
        work.send(TxRequest(request_type=TxRequestType.INPUT, details=details, serialized=signed))
        await work.receive(TxAck)
        digest = hashes.segwit_v0(index, coin.place.script_code, coin.amount)
        signed = _signature(wallet, coin, index, digest, work.misbehaviour.faults)
    work.misbehaviour.reach(Phase.RETURN)
    return TxRequest(request_type=TxRequestType.FINISHED, serialized=signed)


def _signature(
    wallet: TrezorWallet, coin: TrezorCoin, index: int, digest: bytes, faults: Faults
) -> TxRequestSerialized | None:
    signature = faults.signature(wallet.seed, DerivationPath(coin.place.path), index, digest)
    return None if signature is None else TxRequestSerialized(signature_index=index, signature=signature)
