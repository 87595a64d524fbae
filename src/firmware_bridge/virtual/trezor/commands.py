"""What the device does for a host with one key: public keys, addresses, messages."""

from firmware_bridge.virtual.faults import Phase
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
    Path,
    coin_kind,
    is_multisig_path,
    require_coin,
    require_key_path,
    require_message_path,
)
from firmware_bridge.virtual.trezor.wallet import Place, Wallet
from firmware_bridge.virtual.trezor.work import Work, data_error
from multisig import DerivationPath, ExtendedPublicKey, Network, NetworkKind, message_hash

MAX_MESSAGE_BYTES = 1024
"""The firmware's limit on a message to sign."""


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
        await work.confirm(ButtonCode.ADDRESS, screens.address(address, place.path, _describe(place)))
    return Address(address=address)


async def sign_message(work: Work, wallet: Wallet, request: SignMessage) -> MessageSignature:
    """A Bitcoin Signed Message by the key at a full address path (BIP-137, compressed P2PKH header)."""
    require_coin(request.coin_name, wallet.network)
    require_message_path(request.address_n, wallet.network)
    if (request.script_type or InputScript.ADDRESS) != InputScript.ADDRESS:
        raise data_error("Messages are signed in the form for a P2PKH address here")
    text = _message_text(request.message)
    await _warn_of_path(work, wallet, request.address_n)
    address = wallet.legacy_address(request.address_n)
    await work.confirm(ButtonCode.PROTECT_CALL, screens.message(request.message, address))
    work.reach(Phase.SIGN)
    signature = wallet.sign_message(request.address_n, message_hash(text))
    work.reach(Phase.RETURN)
    return MessageSignature(address=address, signature=signature)


async def _warn_of_path(work: Work, wallet: Wallet, path: Path) -> None:
    """A multisig path does not lead to a P2PKH address: the firmware lets the person know."""
    if is_multisig_path(path, wallet.network):
        await work.confirm(ButtonCode.UNKNOWN_DERIVATION_PATH, screens.unusual_path(path))


def _message_text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE_BYTES:
        raise data_error("Message too long")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise data_error("Message is not text") from None


def _describe(place: Place) -> str | None:
    quorum = place.quorum
    return None if quorum is None else f"Multisig {quorum.threshold} of {len(quorum.public_keys)}"


def _node(xpub: ExtendedPublicKey) -> HDNode:
    return HDNode(
        depth=xpub.depth,
        fingerprint=int.from_bytes(bytes(xpub.parent_fingerprint), "big"),
        child_num=xpub.child_number,
        chain_code=xpub.chain_code,
        public_key=xpub.public_key,
    )
