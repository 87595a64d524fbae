"""Where the money of a PSBT goes, read from its own bytes: change is proven from the vault's descriptor, as a
signer's machine proves it (`multisig.inspect`). Nothing here comes from what a record says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from custody.common.pages.flow import Flow, Picture, address_lines, draw
from custody.common.text import count, plain
from custody.schemas.proposals import PROPOSAL_READERS, TxType
from custody.schemas.vaults import Vault
from custody.server.console.addresses import labels_of
from custody.server.console.context import PageContext
from custody.server.console.reviews import Review
from custody.server.vaults.stored import vaults_at
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
    # Of the transaction.
    version: int


def money_of(
    page: PageContext, psbt_base64: str, vault: Vault, tx_type: TxType = TxType.SEND
) -> Money | None:
    """None where it cannot be read, or does not prove what its coins hold."""
    seen = inspected(inspect, psbt_base64, vault)
    if seen is None or (total := seen.total_in) is None or (fee := seen.fee) is None:
        return None
    is_forward = tx_type is TxType.FORWARD
    addresses = [] if is_forward else [each.address for each in seen.payments if each.address]
    shares = _shares(seen, _named(page, vault.chain, addresses), vault.name, is_forward=is_forward)
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
        version=seen.version,
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


def _named(page: PageContext, chain: str, addresses: Sequence[str]) -> dict[str, Markup]:
    """By address: names of the address book, and of the organisation's vaults that the person may see."""
    org_id = page.workspace.organisation.org_id
    ours = (each for each in page.workspaces if each.organisation.org_id == org_id)
    seen = [each.id for each in ours if each.may(*PROPOSAL_READERS)]
    with page.reading() as ctx:
        own = vaults_at(ctx.db, seen, Network(chain), addresses)
    listed, named = Markup("<b>{}</b> in the address book"), Markup("your own vault <b>{}</b>")
    names = {address: listed.format(plain(name)) for address, name in labels_of(page, addresses).items()}
    return names | {address: named.format(plain(name)) for address, name in own.items()}


def _shares(
    seen: Inspection, names: Mapping[str, Markup], vault_name: str, *, is_forward: bool
) -> tuple[Share, ...]:
    away, home, titles, note = "pay", "back", ("Pays", f"Back to {vault_name}"), ""
    if is_forward:
        away, home, titles = home, away, ("Back to the member", f"Into {vault_name}")
        note = "not an address of the vault; the member's machine proves that it is theirs"
    paid = (
        Share(
            away, each.amount, titles[0], address_lines(each.address, each.script_pubkey), each.address,
            each.script_pubkey.hex(), names.get(each.address or "", ""), note,
        )
        for each in seen.payments
    )  # fmt: skip
    kept = (
        Share(
            home, each.amount, titles[1], address_lines(each.address), each.address,
            note=f"an address of this vault by its keys: {_PLACES[each.chain]} address {each.index}",
        )
        for each in seen.change
    )  # fmt: skip
    return (*paid, *kept)
