"""SIGN_PSBT: fetch and prove the transaction, show it, sign it."""

from dataclasses import dataclass

from device_simulators.faults import Faults, Phase
from device_simulators.ledger import screens
from device_simulators.ledger.errors import not_supported
from device_simulators.ledger.host import Host
from device_simulators.ledger.op_return import describe_op_return
from device_simulators.ledger.ownership import Ownership
from device_simulators.ledger.receive import Receiver
from device_simulators.ledger.request import SignRequest, fetch_known_policy
from device_simulators.ledger.spend import Spend
from device_simulators.ledger.wallet import Wallet
from device_simulators.ledger.work import Work
from device_simulators.panel import Prompt
from multisig import DerivationPath, SighashCache, TxOut
from multisig.wire import compact_size


@dataclass(frozen=True)
class Signature:
    """As the app yields it: input, compressed key, DER with the sighash byte."""

    index: int
    public_key: bytes
    signature: bytes

    def serialize(self, *, with_key: bool) -> bytes:
        key = bytes((len(self.public_key),)) + self.public_key if with_key else b""
        return compact_size(self.index) + key + self.signature


async def sign_psbt(work: Work, wallet: Wallet, data: bytes, *, version: int) -> bytes:
    """Sign every input of the wallet that the host names; the signatures are given before the end, which is empty.

    Version 0 of the protocol gives them without their keys.
    :raises Refused: the transaction is not one that the device signs, or the person said no.
    """
    request = SignRequest.parse(data)
    work.reach(Phase.RECEIVE)
    host = Host(work)
    policy = await fetch_known_policy(host, wallet, request.policy_id, request.mark)
    ownership = Ownership(wallet, policy)
    receiver = Receiver(host, ownership)
    spend = await receiver.receive(request)
    spend.check()
    await receiver.read_again(request)
    await _approve(work, wallet, spend, policy.name)
    work.reach(Phase.SIGN)
    hashes = SighashCache(spend.transaction)
    to_sign = _to_sign(ownership, spend, work.faults)
    for left, (account, at) in zip(reversed(range(len(to_sign))), to_sign, strict=True):
        await receiver.read_input(request, at)
        spoiled = at in work.faults.wrong_signatures
        signature = _signature(wallet, ownership, spend, at, account, hashes, spoiled=spoiled)
        if not left:
            work.reach(Phase.RETURN)
        await host.take(signature.serialize(with_key=version > 0))
    return b""


async def _approve(work: Work, wallet: Wallet, spend: Spend, wallet_name: str) -> None:
    """Every warning, then the whole transaction, in the app's order. The first no ends it."""
    payments = [(out.amount, _described(wallet, out)) for out in spend.payments]
    for prompt in _warnings(spend):
        await work.confirm(prompt)
    review = screens.transaction(wallet_name, payments, spend.fee, wallet.ticker, high_fee=spend.has_high_fee)
    await work.confirm(review)


def _warnings(spend: Spend) -> list[Prompt]:
    due = (
        (spend.has_unusual_sighash, screens.unusual_sighash()),
        (spend.has_external_inputs, screens.external_inputs()),
        (spend.has_unverified_inputs, screens.unverified_inputs()),
    )
    return [prompt for is_due, prompt in due if is_due]


def _described(wallet: Wallet, out: TxOut) -> str:
    """:raises Refused: an output that cannot be shown."""
    shown = wallet.show(out.script_pubkey) or describe_op_return(out.script_pubkey)
    if shown is None:
        raise not_supported("an output that has no address")
    return shown


def _to_sign(ownership: Ownership, spend: Spend, faults: Faults) -> list[tuple[DerivationPath, int]]:
    """In the app's order: with each own key all inputs."""
    return [
        (account, at)
        for account in ownership.accounts
        for at, _ in spend.own_coins
        if at not in faults.missing_signatures
    ]


def _signature(
    wallet: Wallet,
    ownership: Ownership,
    spend: Spend,
    at: int,
    account: DerivationPath,
    hashes: SighashCache,
    *,
    spoiled: bool,
) -> Signature:
    coin = spend.coins[at]
    assert coin.place is not None, "only own coins are signed"
    digest = hashes.segwit_v0(at, ownership.script_code(coin.place), coin.amount, coin.sighash)
    path = account / coin.place.chain / coin.place.index
    signature = wallet.sign(path, digest[::-1] if spoiled else digest)
    return Signature(at, wallet.public_key(path), signature + bytes((coin.sighash,)))
