"""Where the money of a PSBT goes, read from its own bytes: change is proven from the vault's descriptor, as a
signer's machine proves it (`multisig.inspect`). Nothing here comes from what a record says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from custody.common.pages.flow import Flow, Picture, address_lines, draw
from custody.common.text import count
from custody.schemas.proposals import TxType
from custody.schemas.vaults import Vault
from custody.server.console.reviews import Review
from multisig import Inspection, MultisigError, Network, Psbt, inspect
from multisig import Vault as Policy

# By an address's chain: 0 receives, 1 takes change.
_PLACES = ("receive", "change")


@dataclass(frozen=True)
class Share(Flow):
    """A row of the table, and its band in the drawing. ``kind``: pay, back or fee."""

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
    # What the whole bar of a share stands for. The outputs of an unproven transaction may exceed its inputs.
    full_sats: int
    faults: tuple[str, ...]
    named_in: str


def money_of(
    psbt_base64: str,
    vault: Vault,
    labels: Mapping[str, str],
    tx_type: TxType = TxType.SEND,
    *,
    named_in: str = "in the address book",
) -> Money | None:
    """None where it cannot be read, or does not prove what its coins hold.

    ``labels``: names, by address. ``named_in``: where they are from.
    """
    seen = inspected(inspect, psbt_base64, vault)
    if seen is None or (total := seen.total_in) is None or (fee := seen.fee) is None:
        return None
    is_forward = tx_type is TxType.FORWARD
    shares = _shares(seen, labels, vault.name, is_forward=is_forward)
    spent = Share("fee", fee, "Network fee", note=str(seen.fee_rate))
    data = [
        Flow("data", 0, f"Data, {count(len(output.data), 'byte', 'bytes')}") for output in seen.op_returns
    ]
    coins = [Flow("coin", coin.amount or 0, f"Coin {n}") for n, coin in enumerate(seen.inputs, start=1)]
    return Money(
        picture=draw(coins, (*shares, *data, spent)),
        shares=(*shares, spent),
        data=tuple(output.data for output in seen.op_returns),
        coins=len(seen.inputs),
        total_sats=total,
        full_sats=max(total, seen.total_out + max(fee, 0), 1),
        # A forward spends the member's own coins: their own machine inspects it.
        faults=() if seen.ok or is_forward else tuple(finding.sentence for finding in seen.findings),
        named_in=named_in,
    )


@dataclass(frozen=True)
class MoneyReview(Review):
    """``money``: where it goes. ``left``: of the limits, after it."""

    money: Money | None = None
    taken_from: str = ""
    left: Sequence[tuple[str, int]] = ()
    amounts: Sequence[tuple[str, int]] = ()
    template: str = field(default="proposals/review.html")


def inspected(look: Callable[..., Inspection], psbt_base64: str, vault: Vault) -> Inspection | None:
    """``look``: `inspect`, or `inspect_proof` for what a proof of control signs. None where it cannot be
    read.
    """
    network = Network(vault.chain)
    try:
        psbt = Psbt.parse(psbt_base64)
        return look(psbt, Policy.from_descriptor(vault.descriptor, network), network=network)
    except MultisigError:
        return None


def _shares(
    seen: Inspection, labels: Mapping[str, str], vault_name: str, *, is_forward: bool
) -> tuple[Share, ...]:
    away, home, titles, note = "pay", "back", ("Pays", f"Back to {vault_name}"), ""
    if is_forward:
        away, home, titles = home, away, ("Back to the member", f"Into {vault_name}")
        note = "not an address of the vault; the member's machine proves that it is theirs"
    paid = (
        Share(
            away, each.amount, titles[0], address_lines(each.address), each.address,
            each.script_pubkey.hex(), labels.get(each.address or "", ""), note,
        )
        for each in seen.payments
    )  # fmt: skip
    kept = (
        Share(
            home, each.amount, titles[1], address_lines(each.address), each.address,
            note=f"derived again from its descriptor, {_PLACES[each.chain]} address {each.index}",
        )
        for each in seen.change
    )  # fmt: skip
    return (*paid, *kept)
