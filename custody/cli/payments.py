"""``custody proposal create``: shows a payment, asks for a yes, and proposes it; ``custody proposal max``."""

from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, chosen, in_workspace
from custody.cli.common import Amount, fail, give
from custody.cli.vaults import vault_of
from custody.common.naming import NamedRecord
from custody.common.recipients import look_alike_words
from custody.common.terminal import Exit, aside
from custody.common.text import amount, foreign, minute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from custody.schemas.address_book import WhitelistAddress
    from custody.schemas.proposals import CreatePsbtRequest, PsbtPreview
    from custody.schemas.vaults import Vault

priority_option = click.option(
    "--priority", type=click.Choice(("low", "medium", "high")), help="How soon it is to be confirmed."
)
fee_rate_option = click.option("--fee-rate", metavar="SAT/VB", help="In sat/vB, instead of a priority.")


@click.command("create")
@click.argument("vault", help="Its id, the beginning of it, or its name.")
@click.argument("sats", metavar="AMOUNT", type=Amount(), help="With its unit, like 0.25BTC or 25000sats.")
@click.argument("recipient", help="An address, a bitcoin: link, or a name of the address book.")
@click.option(
    "--also",
    multiple=True,
    type=(Amount(), str),
    metavar="AMOUNT RECIPIENT",
    help="One more; may be repeated.",
)
@click.option(
    "--coin", "coins", multiple=True, metavar="TXID:N", help="Spend exactly this coin; again for each."
)
@click.option("--description", help="What it is for, as the signers read it.")
@priority_option
@fee_rate_option
@asking_in_workspace
def create_command(
    access: Access,
    /,
    vault: str,
    sats: int,
    recipient: str,
    also: tuple[tuple[int, str], ...],
    coins: tuple[str, ...],
    description: str | None,
    **fee: str | None,
) -> None:
    """Propose a payment from a vault. It is sent only after enough signers have approved it."""
    _require_one(fee)
    source = vault_of(access, vault)
    book = access.client.whitelist_addresses(workspace_id=access.workspace_id)
    wanted = ((sats, recipient), *also)
    request = access.request(
        access.client.create_psbt,
        wallet_id=source.id,
        tx_type="send",
        recipients=[_address(whom, value, source.chain, book, unseen=access.yes) for value, whom in wanted],
        amounts_sats=[value for value, _whom in wanted],
        description=description,
        coins=[one.lower() for one in coins] or None,
        **fee,
    )
    made = access.make(access.client.preview_psbt, request)
    alike = look_alike_words(made.recipients, made.resembles, {one.address: one.name for one in book})
    for line in (*_summary(source, request, made, book), *alike):
        aside(line)
    access.confirm("Propose this payment?")
    propose(access, request)


@click.command("max")
@click.argument("vault", help="Its id, the beginning of it, or its name.")
@click.argument(
    "recipients", nargs=-1, required=True, metavar="RECIPIENT...", help="Addresses, or names of them."
)
@priority_option
@fee_rate_option
@in_workspace
def max_command(access: Access, /, vault: str, recipients: tuple[str, ...], **fee: str | None) -> None:
    """Show the most that one payment to these recipients can send, and why it is not more."""
    _require_one(fee)
    source = vault_of(access, vault)
    book = access.client.whitelist_addresses(workspace_id=access.workspace_id)
    maximum = access.client.max_send(
        workspace_id=access.workspace_id,
        wallet_id=source.id,
        recipients=[_address(one, None, source.chain, book, unseen=False) for one in recipients],
        **fee,
    )
    give(
        maximum,
        f"{amount(maximum.amount_sats)}, with a fee of {amount(maximum.fee_sats)} "
        f"at {maximum.fee_rate} sat/vB ({maximum.least_rate} at least now)",
        f"  {maximum.words}",
    )


@click.command("consolidate")
@click.argument("vault", help="Its id, the beginning of it, or its name.")
@click.option("--coins", type=click.IntRange(2, 100), default=100, help="How many, the smallest first.")
@fee_rate_option
@asking_in_workspace
def consolidate_command(access: Access, /, vault: str, coins: int, fee_rate: str | None) -> None:
    """Propose to make one coin of a vault's smallest coins, at a low rate, where that saves fees."""
    from custody.schemas.sending import one_coin_of

    source = vault_of(access, vault)
    plan = access.client.consolidation(
        workspace_id=access.workspace_id, vault_id=source.id, coins=coins, fee_rate=fee_rate
    )
    asked = one_coin_of(source.id, plan.address, plan.coins, plan.fee_rate)
    request = access.request(access.client.create_psbt, **asked)
    made = access.make(access.client.preview_psbt, request)
    aside(f"From the vault '{source.name}' {source.id} to its own address {plan.address}")
    aside(f"  fee    {amount(made.fee_sats)}, {made.fee_rate} sat/vB")
    aside(f"  {plan.words}")
    access.confirm("Propose it?")
    propose(access, request)


def propose(access: Access, request: "CreatePsbtRequest") -> None:
    """Makes the proposal, and says what comes next."""
    proposal = access.client.proposal(access.make(access.client.create_psbt, request).psbt_id)
    until = minute(proposal.expires_at)
    give(
        proposal,
        f"Proposed: {proposal.psbt_id}",
        f"  fee    {amount(proposal.fee_sats)}, {proposal.fee_rate} sat/vB",
        f"  {proposal.required_signatures} of {proposal.n} signers approve it with signerd, until {until}.",
        f"  custody proposal show {proposal.psbt_id} says who has.",
    )


def _require_one(fee: dict[str, str | None]) -> None:
    """At most. Raises Stop."""
    if None not in fee.values():
        fail("a fee rate takes the place of a priority", "Give one of the two.", Exit.USAGE)


def _summary(
    source: "Vault", request: "CreatePsbtRequest", made: "PsbtPreview", book: "Sequence[WhitelistAddress]"
) -> "Iterator[str]":
    """``made``: what the platform would make of the request now."""
    labelled = {one.address: f"{one.name}, {one.address}" for one in book}
    amounts = request.amounts_sats or []
    yield f"From the vault '{source.name}' {source.id}, {source.m} of {source.n}    {source.chain}"
    for sats, address in zip(amounts, request.recipients, strict=True):
        yield f"  pays   {amount(sats)} to {labelled.get(address, address)}"
    if len(amounts) > 1:
        yield f"  in all {amount(sum(amounts))}"
    if request.description:
        yield f'  for    "{foreign(request.description)}"'
    soon = f" for {request.priority} priority" if request.priority else ""
    yield f"  fee    {amount(made.fee_sats)}, {made.fee_rate} sat/vB{soon}, as it is now"
    yield f"  of     {amount(source.confirmed_sats)} confirmed, {amount(source.locked_sats)} locked"
    yield from (f"  spends {coin}" for coin in request.coins or ())
    if made.same_as is not None:
        yield f"! The proposal {made.same_as} pays the same, or has paid it: it would be paid twice."


def _address(
    whom: str, sats: int | None, chain: str, book: "Sequence[WhitelistAddress]", *, unseen: bool
) -> str:
    """An address, also in groups, or a payment link is never looked up as a name in the address book.
    ``sats``: what it is to get, where that is known. Raises Stop.
    """
    from custody.common.recipients import read_recipient, typed_address
    from multisig import MultisigError, Network, WrongNetwork, decode_address

    typed = typed_address(whom)
    if typed is None:
        known = [NamedRecord(str(one.uid), (one.name,), f"'{one.name}', {one.address}", one) for one in book]
        hint = "It is not an address either. Check it, or have it added to the address book."
        return chosen(whom, known, "recipient", hint, unseen=unseen).address
    try:
        named = read_recipient(typed, Network(chain))
        decode_address(named.address, Network(chain))
    except WrongNetwork as error:
        fail(f"'{whom}' cannot be paid here: {error}", f"The vault is on {chain}.", Exit.NOT_DECIDED)
    except MultisigError as error:
        fail(f"'{whom}' cannot be paid: {error}", error.hint, Exit.NOT_DECIDED)
    if sats is not None and named.amount not in {None, sats}:
        asks = f"'{whom}' asks for another amount than {amount(sats)}"
        fail(asks, f"Give the link's amount, {amount(named.amount or 0)}, or the address alone.", Exit.USAGE)
    return named.address
