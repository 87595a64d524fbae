"""What the device does for a host with one key: public keys, addresses, messages."""

from collections.abc import Iterator
from itertools import cycle

from device_simulators.faults import Phase
from device_simulators.trezor import core_screens, screens
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
)
from device_simulators.trezor.paths import require_key_path, require_message_path
from device_simulators.trezor.quorum import Quorum, extended_key
from device_simulators.trezor.wallet import Place, Wallet
from device_simulators.trezor.work import Work, data_error
from multisig import DerivationPath, ExtendedPublicKey, NetworkKind, base58, message_hash

_SLIP132 = {NetworkKind.MAINNET: bytes.fromhex("04b24746"), NetworkKind.TESTNET: bytes.fromhex("045f1cf6")}
"""xpub_magic_segwit_native of common/defs/bitcoin: what a Trezor One writes."""
_SLIP132_MULTISIG = {
    NetworkKind.MAINNET: bytes.fromhex("02aa7ed3"),
    NetworkKind.TESTNET: bytes.fromhex("02575483"),
}
"""xpub_magic_multisig_segwit_native of common/defs/bitcoin: what later models write."""


async def get_public_key(work: Work, wallet: Wallet, request: GetPublicKey) -> PublicKey:
    """An extended public key, in the text form of the coin that the host names."""
    require_key_path(request.address_n)
    xpub = wallet.seed.xpub(DerivationPath(request.address_n), wallet.network)
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
    for code, prompt in cycle(_address_pages(wallet, place, address)):
        if await work.choose(code, prompt):
            return


def _address_pages(wallet: Wallet, place: Place, address: str) -> Iterator[screens.Asked]:
    keys: tuple[screens.Key, ...] = ()
    threshold, words = 0, None
    if (quorum := place.quorum) is not None:
        keys, threshold = _shown_keys(wallet, quorum), quorum.threshold
        words = screens.quorum(threshold, len(keys), ordered=quorum.ordered)
    if wallet.model.on_device:
        return core_screens.address_pages(address, place.path, threshold, keys)
    first = screens.address(address, place.path, words, wallet.network)
    pages = (first, screens.address_code(), *screens.address_keys(keys))
    return ((ButtonCode.ADDRESS, page) for page in pages)


def _shown_keys(wallet: Wallet, quorum: Quorum) -> tuple[screens.Key, ...]:
    """In SLIP-132's form for native segwit: zpub, vpub; or the one of a multisig: Zpub, Vpub."""
    kind = wallet.network.kind
    version = (_SLIP132_MULTISIG if wallet.model.on_device else _SLIP132)[kind]
    plain = (base58.decode_check(str(extended_key(node, kind))) for node in quorum.nodes)
    return tuple(
        screens.Key(base58.encode_check(version + key[4:]), own=number == quorum.own)
        for number, key in enumerate(plain)
    )


async def sign_message(work: Work, wallet: Wallet, request: SignMessage) -> MessageSignature:
    """A Bitcoin Signed Message by the key at a full address path (BIP-137, compressed P2PKH header)."""
    if wallet.model.max_message is not None and len(request.message) > wallet.model.max_message:
        raise data_error("bytes overflow")
    require_message_path(request.address_n, wallet.network)
    if (request.script_type or InputScript.ADDRESS) != InputScript.ADDRESS:
        raise data_error("Messages are signed in the form for a P2PKH address here")
    text = _message_text(request.message)
    address = wallet.legacy_address(request.address_n)
    if wallet.model.on_device:
        await work.confirm(*core_screens.message(text, wallet.network))
    else:
        # Every path here is one of another kind of address than P2PKH, and the firmware says so.
        await work.confirm(ButtonCode.UNKNOWN_DERIVATION_PATH, screens.unusual_path())
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
