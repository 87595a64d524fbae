"""What the device does for a host with one key: public keys, addresses, messages."""

from itertools import cycle

from firmware_bridge.virtual.faults import Phase
from firmware_bridge.virtual.panel import Prompt
from firmware_bridge.virtual.trezor import screens
from firmware_bridge.virtual.trezor.messages import (
    Address,
    ButtonCode,
    GetAddress,
    GetPublicKey,
    HDNode,
    InputScript,
    MessageSignature,
    PublicKey,
    SignMessage,
)
from firmware_bridge.virtual.trezor.paths import (
    coin_kind,
    require_coin,
    require_key_path,
    require_message_path,
)
from firmware_bridge.virtual.trezor.quorum import extended_key
from firmware_bridge.virtual.trezor.wallet import Place, Wallet
from firmware_bridge.virtual.trezor.work import Work, data_error
from multisig import DerivationPath, ExtendedPublicKey, Network, NetworkKind, base58, message_hash

_SLIP132 = {NetworkKind.MAINNET: bytes.fromhex("04b24746"), NetworkKind.TESTNET: bytes.fromhex("045f1cf6")}
"""xpub_magic_segwit_native of common/defs/bitcoin."""


async def get_public_key(work: Work, wallet: Wallet, request: GetPublicKey) -> PublicKey:
    """An extended public key, in the text form of the coin that the host names."""
    require_key_path(request.address_n, wallet.network)
    kind = coin_kind(request.coin_name)
    network = Network.MAINNET if kind is NetworkKind.MAINNET else Network.TESTNET4
    xpub = wallet.seed.xpub(DerivationPath(request.address_n), network)
    work.reach(Phase.XPUB)
    if request.show_display:
        await work.confirm(ButtonCode.PUBLIC_KEY, screens.public_key(str(xpub), request.address_n))
    return PublicKey(
        node=_node(xpub),
        xpub=str(xpub),
        root_fingerprint=int.from_bytes(bytes(wallet.seed.fingerprint), "big"),
    )


async def get_address(work: Work, wallet: Wallet, request: GetAddress) -> Address:
    """The native segwit address at a path: of the own key, or of the quorum that the host describes."""
    require_coin(request.coin_name, wallet.network)
    if request.script_type != InputScript.WITNESS:
        raise data_error("Only native segwit is in use here")
    place = wallet.place(request.address_n, request.multisig)
    address = wallet.show(place.script_pubkey)
    assert address is not None
    if request.show_display:
        await _show_address(work, wallet, place, address)
    return Address(address=address)


async def _show_address(work: Work, wallet: Wallet, place: Place, address: str) -> None:
    """Page after page until the person confirms one: the left button leads to the next, and means no "no"."""
    for prompt in cycle(_address_pages(wallet, place, address)):
        if await work.choose(ButtonCode.ADDRESS, prompt):
            return


def _address_pages(wallet: Wallet, place: Place, address: str) -> tuple[Prompt, ...]:
    quorum = place.quorum
    if quorum is None:
        return screens.address(address, place.path, None, wallet.network), screens.address_code()
    words = screens.quorum(quorum.threshold, len(quorum.public_keys), ordered=quorum.ordered)
    keys = tuple(
        screens.Key(_slip132(node, wallet.network), own=number == quorum.own)
        for number, node in enumerate(quorum.nodes)
    )
    first = screens.address(address, place.path, words, wallet.network)
    return first, screens.address_code(), *screens.address_keys(keys)


def _slip132(node: HDNode, network: Network) -> str:
    """The screen writes a cosigner's key in SLIP-132's form for native segwit: zpub, vpub."""
    plain = base58.decode_check(str(extended_key(node, network.kind)))
    return base58.encode_check(_SLIP132[network.kind] + plain[4:])


async def sign_message(work: Work, wallet: Wallet, request: SignMessage) -> MessageSignature:
    """A Bitcoin Signed Message by the key at a full address path (BIP-137, compressed P2PKH header)."""
    if wallet.model.max_message is not None and len(request.message) > wallet.model.max_message:
        raise data_error("bytes overflow")
    require_coin(request.coin_name, wallet.network)
    require_message_path(request.address_n, wallet.network)
    if (request.script_type or InputScript.ADDRESS) != InputScript.ADDRESS:
        raise data_error("Messages are signed in the form for a P2PKH address here")
    text = _message_text(request.message)
    # Every path here is one of another kind of address than P2PKH, and the firmware says so.
    await work.confirm(ButtonCode.UNKNOWN_DERIVATION_PATH, screens.unusual_path())
    address = wallet.legacy_address(request.address_n)
    await work.confirm(ButtonCode.OTHER, screens.message_signer(address))
    for prompt in screens.message(request.message):
        await work.confirm(ButtonCode.OTHER, prompt)
    work.reach(Phase.SIGN)
    signature = wallet.sign_message(request.address_n, message_hash(text))
    work.reach(Phase.RETURN)
    return MessageSignature(address=address, signature=signature)


def _message_text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise data_error("Message is not text") from None


def _node(xpub: ExtendedPublicKey) -> HDNode:
    return HDNode(
        depth=xpub.depth,
        fingerprint=int.from_bytes(bytes(xpub.parent_fingerprint), "big"),
        child_num=xpub.child_number,
        chain_code=xpub.chain_code,
        public_key=xpub.public_key,
    )
