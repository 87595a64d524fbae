"""Where the money of a PSBT goes, read from its own bytes: change is proven from the vault's descriptor, as a
signer's machine proves it (`multisig.inspect`). Nothing here comes from what a record says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from custody.common.pages.flow import Flow, Picture, address_lines, draw
from custody.common.text import count
from custody.schemas.proposals import TxType
from custody.schemas.vaults import Vault
from custody.server.console.reviews import Review
from multisig import Inspection, MultisigError, Network, Psbt, inspect
from multisig import Vault as Policy
from multisig.bip322 import inspect_proof
from multisig.inspection import ProvenCoin

# By an address's chain: 0 receives, 1 takes change.
_PLACES = ("receive", "change")


@dataclass(frozen=True)
class Share:
    """A row of the table. ``kind``: pay, back or fee. ``per_mille``: its part of all that is spent."""

    kind: str
    title: str
    sats: int
    per_mille: int
    address: str | None = None
    script: str = ""
    label: str = ""
    note: str = ""


@dataclass(frozen=True)
class Money:
    """``data``: what its OP_RETURN carries. ``faults``: why its figures cannot be trusted."""

    picture: Picture
    shares: tuple[Share, ...]
    data: tuple[bytes, ...]
    coins: int
    total_sats: int
    faults: tuple[str, ...]


def money_of(
    psbt_base64: str, vault: Vault, labels: Mapping[str, str], tx_type: TxType = TxType.SEND
) -> Money | None:
    """None where it cannot be read, or does not prove what its coins hold.

    ``labels``: names of the address book, by address.
    """
    network = Network(vault.chain)
    try:
        seen = inspect(
            Psbt.parse(psbt_base64), Policy.from_descriptor(vault.descriptor, network), network=network
        )
    except MultisigError:
        return None
    total, fee = seen.total_in, seen.fee
    if total is None or fee is None:
        return None
    is_forward = tx_type is TxType.FORWARD
    shares = _shares(seen, total, fee, labels, vault.name, is_forward=is_forward)
    coins = [Flow("coin", coin.amount or 0, f"Coin {n}") for n, coin in enumerate(seen.inputs, start=1)]
    return Money(
        picture=draw(coins, _flows(shares, seen)),
        shares=shares,
        data=tuple(output.data for output in seen.op_returns),
        coins=len(seen.inputs),
        total_sats=total,
        # A forward spends the member's own coins: their own machine inspects it.
        faults=() if seen.ok or is_forward else tuple(finding.sentence for finding in seen.findings),
    )


@dataclass(frozen=True)
class MoneyReview(Review):
    """``money``: where it goes. ``left``: of the limits, after it."""

    money: Money | None = None
    taken_from: str = ""
    left: Sequence[tuple[str, int]] = ()
    amounts: Sequence[tuple[str, int]] = ()
    template: str = field(default="proposals/review.html")


@dataclass(frozen=True)
class SignedMessage:
    """What a proof of control signs. ``coins``: those that it covers. ``faults``: why it is no proof."""

    message: str
    address: str
    coins: tuple[ProvenCoin, ...]
    sats: int
    faults: tuple[str, ...]


def proof_of(psbt_base64: str, vault: Vault) -> SignedMessage | None:
    """None where it cannot be read."""
    network = Network(vault.chain)
    try:
        psbt = Psbt.parse(psbt_base64)
        seen = inspect_proof(psbt, Policy.from_descriptor(vault.descriptor, network), network=network)
    except MultisigError:
        return None
    assert seen.proof is not None, "inspect_proof sets it"
    faults = tuple(finding.sentence for finding in seen.findings) if not seen.ok else ()
    coins = seen.proof.coins
    return SignedMessage(
        seen.proof.message, seen.proof.address, coins, sum(coin.amount for coin in coins), faults
    )


def _shares(
    seen: Inspection, total: int, fee: int, labels: Mapping[str, str], vault_name: str, *, is_forward: bool
) -> tuple[Share, ...]:
    full = max(total, seen.total_out + max(fee, 0), 1)

    def part(sats: int) -> int:
        return max(sats, 0) * 1_000 // full

    to_others = "Back to the member" if is_forward else "Pays"
    not_ours = (
        "not an address of the vault; the member's machine proves that it is theirs" if is_forward else ""
    )
    to_vault = f"Into {vault_name}" if is_forward else f"Back to {vault_name}"
    return (
        *(
            Share(
                "back" if is_forward else "pay",
                to_others,
                payment.amount,
                part(payment.amount),
                payment.address,
                payment.script_pubkey.hex(),
                labels.get(payment.address or "", ""),
                not_ours,
            )
            for payment in seen.payments
        ),
        *(
            Share(
                "pay" if is_forward else "back",
                to_vault,
                change.amount,
                part(change.amount),
                change.address,
                note=f"derived again from its descriptor, {_PLACES[change.chain]} address {change.index}",
            )
            for change in seen.change
        ),
        Share("fee", "Network fee", fee, part(fee), note=str(seen.fee_rate)),
    )


def _flows(shares: Sequence[Share], seen: Inspection) -> tuple[Flow, ...]:
    money = [
        Flow(share.kind, share.sats, share.title, () if share.kind == "fee" else address_lines(share.address))
        for share in shares
    ]
    data = [
        Flow("data", 0, f"Data, {count(len(output.data), 'byte', 'bytes')}") for output in seen.op_returns
    ]
    return (*money[:-1], *data, money[-1])
