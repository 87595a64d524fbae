"""What the app does for a host: keys, registrations, addresses, messages; and SIGN_PSBT, which fetches and
proves the transaction, shows it, and signs it.
"""

from dataclasses import dataclass
from hashlib import sha256

from device_simulators.faults import Faults, Phase
from device_simulators.ledger import screens
from device_simulators.ledger.host import HASH_BYTES, Host
from device_simulators.ledger.policy import Header, fetch_policy
from device_simulators.ledger.receive import Ownership, Receiver, SignRequest, fetch_known_policy
from device_simulators.ledger.spend import LedgerSpend, describe_op_return
from device_simulators.ledger.wallet import LedgerWallet, is_usual, read_path
from device_simulators.ledger.work import LedgerWork, incorrect_data, not_supported
from multisig import SIGHASH_ALL, DerivationPath, SighashCache, TxOut, sha256d
from multisig.wire import Reader, compact_size, with_length

_CHUNK_BYTES = 64
_MAGIC = b"Bitcoin Signed Message:\n"


async def get_extended_pubkey(work: LedgerWork, wallet: LedgerWallet, data: bytes) -> bytes:
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
    work.misbehaviour.reach(Phase.XPUB)
    if display:
        await work.confirm(screens.public_key(path, xpub))
    return xpub.encode("ascii")


async def register_wallet(work: LedgerWork, wallet: LedgerWallet, data: bytes) -> bytes:
    """The policy's id and the HMAC by which the device will know it again.

    :raises Refused: an unacceptable policy, one without a key of ours, or the person said no.
    """
    reader = Reader(data)
    header = Header.parse(reader.sized())
    reader.finish()
    policy = await fetch_policy(Host(work), header, wallet.network)
    own = [wallet.own_key(key) is not None for key in policy.cosigners]
    if not any(own):
        raise incorrect_data("no key of this policy is of this device")
    keys = zip(policy.keys, own, strict=True)
    await work.confirm(screens.enrolment(policy.name, policy.template, keys))
    return header.id + wallet.policy_hmac(header.id)


async def get_wallet_address(work: LedgerWork, wallet: LedgerWallet, data: bytes) -> bytes:
    """The address at a place of a known policy.

    :raises Refused: a policy that is not known, an invalid place, or the person said no.
    """
    reader = Reader(data)
    display = _read_flag(reader)
    policy_id, policy_hmac = reader.take(HASH_BYTES), reader.take(HASH_BYTES)
    chain = int(_read_flag(reader))
    index = int.from_bytes(reader.take(4))
    reader.finish()
    policy = await fetch_known_policy(Host(work), wallet, policy_id, policy_hmac)
    address = wallet.show(policy.of.script_pubkey(chain, index))
    assert address is not None, "every script of a policy has an address"
    if display:
        await work.confirm(screens.address(address, policy.name))
    return address.encode("ascii")


async def sign_message(work: LedgerWork, wallet: LedgerWallet, data: bytes) -> bytes:
    """A Bitcoin Signed Message by the key at any path: 65 bytes with the header of a P2PKH address (BIP-137).

    :raises Refused: the person said no.
    """
    reader = Reader(data)
    path = read_path(reader)
    length, root = reader.compact_size(), reader.take(HASH_BYTES)
    reader.finish()
    text = await _fetch_message(Host(work), length, root)
    await work.confirm(screens.message(path, text, sha256(text).digest()))
    work.misbehaviour.reach(Phase.SIGN)
    signature = wallet.seed.sign_recoverable(path, sha256d(with_length(_MAGIC) + with_length(text)))
    work.misbehaviour.reach(Phase.RETURN)
    return signature


async def _fetch_message(host: Host, length: int, root: bytes) -> bytes:
    count = -(-length // _CHUNK_BYTES)
    chunks = [await host.element(root, count, at, _CHUNK_BYTES) for at in range(count)]
    return b"".join(chunks)


def _read_flag(reader: Reader) -> bool:
    return bool(reader.uint(1))


@dataclass(frozen=True)
class LedgerSignature:
    """As the app yields it: input, compressed key, DER with the sighash byte."""

    index: int
    public_key: bytes
    signature: bytes

    def serialize(self, *, with_key: bool) -> bytes:
        key = bytes((len(self.public_key),)) + self.public_key if with_key else b""
        return compact_size(self.index) + key + self.signature


async def sign_psbt(work: LedgerWork, wallet: LedgerWallet, data: bytes, *, version: int) -> bytes:
    """Sign every input of the wallet that the host names; the signatures are given before the end, which is
    empty.

    Version 0 of the protocol gives them without their keys.
    :raises Refused: the transaction is not one that the device signs, or the person said no.
    """
    request = SignRequest.parse(data)
    work.misbehaviour.reach(Phase.RECEIVE)
    host = Host(work)
    policy = await fetch_known_policy(host, wallet, request.policy_id, request.policy_hmac)
    ownership = Ownership(wallet, policy)
    receiver = Receiver(host, ownership)
    spend = await receiver.receive(request)
    await receiver.read_again(request)
    await _approve(work, wallet, spend, policy.name)
    work.misbehaviour.reach(Phase.SIGN)
    hashes = SighashCache(spend.transaction)
    to_sign = _to_sign(ownership, spend, work.misbehaviour.faults)
    for left, (account, at) in zip(reversed(range(len(to_sign))), to_sign, strict=True):
        await receiver.read_input(request, at)
        signature = _signature(wallet, ownership, spend, at, account, hashes, work.misbehaviour.faults)
        if not left:
            work.misbehaviour.reach(Phase.RETURN)
        await host.take(signature.serialize(with_key=version > 0))
    return b""


async def _approve(work: LedgerWork, wallet: LedgerWallet, spend: LedgerSpend, wallet_name: str) -> None:
    """A coin whose previous transaction the host left out, then the whole. The first no ends it."""
    payments = [(out.amount, _described(wallet, out)) for out in spend.payments]
    if spend.has_unverified_inputs:
        await work.confirm(screens.unverified_inputs())
    review = screens.transaction(wallet_name, payments, spend.fee, wallet.ticker, high_fee=spend.has_high_fee)
    await work.confirm(review)


def _described(wallet: LedgerWallet, out: TxOut) -> str:
    """:raises Refused: an output that cannot be shown."""
    shown = wallet.show(out.script_pubkey) or describe_op_return(out.script_pubkey)
    if shown is None:
        raise not_supported("an output that has no address")
    return shown


def _to_sign(ownership: Ownership, spend: LedgerSpend, faults: Faults) -> list[tuple[DerivationPath, int]]:
    """In the app's order: with each own key all inputs."""
    return [
        (account, at)
        for account in ownership.accounts
        for at, _ in spend.own_coins
        if at not in faults.missing_signatures
    ]


def _signature(
    wallet: LedgerWallet,
    ownership: Ownership,
    spend: LedgerSpend,
    at: int,
    account: DerivationPath,
    hashes: SighashCache,
    faults: Faults,
) -> LedgerSignature:
    coin = spend.coins[at]
    assert coin.place is not None, "only own coins are signed"
    digest = hashes.segwit_v0(
        at, ownership.policy.script_code(coin.place.chain, coin.place.index), coin.amount
    )
    path = account / coin.place.chain / coin.place.index
    signature = faults.signature(wallet.seed, path, at, digest)
    assert signature is not None, "the missing ones are left out before"
    return LedgerSignature(at, wallet.seed.public_key(path), signature + bytes((SIGHASH_ALL,)))
