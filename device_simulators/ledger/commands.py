"""What the app does for a host besides signing transactions: keys, registrations, addresses, messages."""

from hashlib import sha256

from device_simulators.faults import Phase
from device_simulators.ledger import screens
from device_simulators.ledger.errors import incorrect_data, not_supported
from device_simulators.ledger.host import Host
from device_simulators.ledger.merkle import HASH_BYTES
from device_simulators.ledger.paths import MAX_DEFAULT_INDEX, is_usual, read_path
from device_simulators.ledger.policy import Header, Policy, fetch_policy
from device_simulators.ledger.request import fetch_known_policy
from device_simulators.ledger.wallet import Wallet
from device_simulators.ledger.work import Work
from multisig import HARDENED, sha256d
from multisig.wire import Reader, with_length

MAX_MESSAGE_BYTES = 64 * 1024
"""The app takes any length; a device in software has to bound what it keeps."""
_CHUNK_BYTES = 64
_MAGIC = b"Bitcoin Signed Message:\n"


async def get_extended_pubkey(work: Work, wallet: Wallet, data: bytes) -> bytes:
    """The key's text. At an unusual path only with the person's consent.

    :raises Refused: an unusual path without display, or the person said no.
    """
    reader = Reader(data)
    display = _read_flag(reader)
    path = read_path(reader)
    reader.finish()
    if not is_usual(path, wallet.network.coin_type) and not display:
        raise not_supported("an unusual path")
    xpub = str(wallet.xpub(path))
    work.reach(Phase.XPUB)
    if display:
        await work.confirm(screens.public_key(path, xpub))
    return xpub.encode("ascii")


async def register_wallet(work: Work, wallet: Wallet, data: bytes) -> bytes:
    """The policy's id and the mark by which the device will know it again.

    :raises Refused: an unacceptable policy, one without a key of ours, or the person said no.
    """
    reader = Reader(data)
    header = Header.parse(reader.sized())
    reader.finish()
    if not header.has_good_name:
        raise incorrect_data("the name is empty, or has characters that the screen does not show")
    policy = await fetch_policy(Host(work), header)
    _require_distinct_keys(policy)
    if any(key.xpub.kind is not wallet.network.kind for key in policy.keys):
        raise incorrect_data("a key of another network")
    own = [wallet.own_key(key) is not None for key in policy.keys]
    if not any(own):
        raise incorrect_data("no key of this policy is of this device")
    keys = zip(policy.keys, own, strict=True)
    await work.confirm(screens.enrolment(policy.name, policy.template_text, keys))
    return header.id + wallet.mark(header.id)


def _require_distinct_keys(policy: Policy) -> None:
    if len({key.xpub.public_key for key in policy.keys}) != len(policy.keys):
        raise not_supported("a key stands twice in the policy")


async def get_wallet_address(work: Work, wallet: Wallet, data: bytes) -> bytes:
    """The address at a place of a known policy.

    :raises Refused: a policy that is not known, a place that is none, or the person said no.
    """
    reader = Reader(data)
    display = _read_flag(reader)
    policy_id, mark = reader.take(HASH_BYTES), reader.take(HASH_BYTES)
    chain = int(_read_flag(reader))
    index = int.from_bytes(reader.take(4))
    reader.finish()
    if index >= HARDENED:
        raise incorrect_data("a hardened index below an extended public key")
    policy = await fetch_known_policy(Host(work), wallet, policy_id, mark)
    if not any(mark) and index > MAX_DEFAULT_INDEX:
        raise incorrect_data("an index that no wallet would look at")
    address = wallet.show(policy.script_pubkey(chain, index))
    assert address is not None, "every script of a policy has an address"
    if display:
        await work.confirm(screens.address(address, policy.name))
    return address.encode("ascii")


async def sign_message(work: Work, wallet: Wallet, data: bytes) -> bytes:
    """A Bitcoin Signed Message by the key at any path: 65 bytes with the header of a P2PKH address (BIP-137).

    :raises Refused: a message that is too long, or the person said no.
    """
    reader = Reader(data)
    path = read_path(reader)
    length, root = reader.compact_size(), reader.take(HASH_BYTES)
    reader.finish()
    if length > MAX_MESSAGE_BYTES:
        raise incorrect_data("the message is too long")
    text = await _fetch_message(Host(work), length, root)
    await work.confirm(screens.message(path, text, sha256(text).digest()))
    work.reach(Phase.SIGN)
    signature = wallet.sign_message(path, sha256d(with_length(_MAGIC) + with_length(text)))
    work.reach(Phase.RETURN)
    return signature


async def _fetch_message(host: Host, length: int, root: bytes) -> bytes:
    count = -(-length // _CHUNK_BYTES)
    chunks = [await host.element(root, count, at, _CHUNK_BYTES) for at in range(count)]
    text = b"".join(chunks)
    if len(text) != length or any(len(chunk) != _CHUNK_BYTES for chunk in chunks[:-1]):
        raise incorrect_data("the message is not cut into chunks of 64 bytes")
    return text


def _read_flag(reader: Reader) -> bool:
    value = reader.uint(1)
    if value > 1:
        raise incorrect_data("a flag is 0 or 1")
    return bool(value)
