"""``custody proposal list``, ``show``, ``bump`` and ``cancel``: payments that are under way."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace
from custody.cli.common import give, give_list, wants_json
from custody.cli.members import id_of, of_person_and_days
from custody.cli.payments import propose
from custody.common.naming import NamedRecord
from custody.common.terminal import answer, aside, say, table
from custody.common.text import amount, count, day_words, foreign, minute, plain, short_ids

if TYPE_CHECKING:
    from custody.schemas.proposals import Proposal, ProposalSigner


OPEN: Final = ("pending", "signed", "broadcasting", "stalled")
ANY: Final = (None,)
PAGE: Final = 200
MOST_PAGES: Final = 25


def proposals_of(access: Access, statuses: Iterable[str | None], **filters: Any) -> "Iterator[Proposal]":
    """The proposals of these statuses, the newest first, up to MOST_PAGES pages of each status. ``filters``:
    as `PsbtQuery` has them.
    """
    for name in statuses:
        after: str | None = None
        filters |= {"status": name and name.upper(), "order": "newest", "limit": PAGE}
        for _ in range(MOST_PAGES):
            page = access.client.proposals(access.workspace_id, after=after, **filters)
            yield from page.items
            after = page.following
            if after is None:
                break
        else:
            aside(f"There are more: the first {MOST_PAGES} pages were read.")


def title_of(proposal: "Proposal") -> str:
    """The token call in words, else the description, else the type."""
    if proposal.decoded_call is not None:
        return proposal.decoded_call.words
    return foreign(proposal.description or proposal.tx_type)


_ADVICE: Final = {
    "bump": "A new version at a higher fee takes its place: `custody proposal bump`.",
    "wait": "Wait: nothing can be done here.",
    "cancel": "It waits for that deposit to return. `custody proposal cancel` ends it.",
    "resend": "The platform sends it again by itself.",
    "none": "It is over: propose it anew where it is still to be paid.",
}


_given = click.argument("given", metavar="PROPOSAL", help="Its id, or the beginning of it.")


@click.command("list")
@click.option("--all", "ended", is_flag=True, help="Also those that have come to an end.")
@click.option("--status", help="Only those: pending, confirmed, cancelled, …")
@click.option(
    "--search",
    metavar="WORDS",
    help="Only those with each word: of the title, a recipient's name, an amount, the begin of an id.",
)
@of_person_and_days
@in_workspace
def list_command(access: Access, ended: bool, status: str | None, by: str | None, **filters: Any) -> None:
    """List the proposals of the workspace that are under way."""
    filters["created_by"] = id_of(access, by)
    statuses = (status,) if status else ANY if ended else OPEN
    listed = sorted(proposals_of(access, statuses, **filters), key=lambda one: one.created_at)
    short = short_ids([one.psbt_id for one in listed])
    rows = (_row(one, short[one.psbt_id]) for one in listed)
    header = ("ID", "STATUS", "VAULT", "PAYS", "SIGNED", "BY", "FOR")
    is_filtered = status or ended or any(filters.values())
    empty = "None is found." if is_filtered else "None is under way; --all shows the rest."
    give_list(listed, header, rows, empty)


def _row(one: "Proposal", short: str) -> tuple[str, ...]:
    vault = one.vault_name or one.vault_id
    by = one.created_by_name or f"member {one.created_by}"
    paid = amount(sum(one.amounts_sats) if one.pays_others else 0)
    return short, one.state.lower(), vault, paid, signed(one), by, title_of(one)


@click.command("show")
@_given
@in_workspace
def show_command(access: Access, given: str) -> None:
    """Show who approved or declined a proposal, when and why, who has not answered, and its status."""
    one = proposal_of(access, given)
    if wants_json():
        answer(one)
        return
    say("\n".join(map(plain, lines_of(one))))
    rows = [
        (
            s.name or f"member {s.user_id}",
            _decision(s),
            minute(s.decided_at) if s.decided_at else "",
        )
        for s in one.signers
    ]
    table(("SIGNER", "DECISION", "WHEN"), rows)


def _decision(one: "ProposalSigner") -> str:
    if one.decision == "reject":
        return f"declined: {foreign(one.reason)}" if one.reason else "declined"
    return "approved" if one.is_signed else "no answer yet"


def lines_of(one: "Proposal") -> Iterator[str]:
    yield f"Proposal {one.psbt_id}: {title_of(one)}"
    yield f"  Status:  {one.state.lower()}, {signed(one)} signatures"
    for address, sats in zip(one.recipients, one.amounts_sats, strict=False):
        yield f"  {'pays ' if one.pays_others else 'moves'}    {amount(sats)} to {address}"
    yield f"  fee      {amount(one.fee_sats)}, {one.fee_rate} sat/vB"
    for approver in one.waits_for:
        nobody = "" if approver.user_ids else ", which nobody who has not decided can give"
        yield f"  Waits for an approval from {foreign(approver.words)}{nobody}"
    if one.status == "PENDING":
        yield f"  Expires: {minute(one.expires_at)}"
    if one.screening:
        until, why = one.screening.until, one.screening.reason
        how = f"until {day_words(until)}, {until:%H:%M:%S} UTC" if until else "and not asked yet"
        state = f"held {how}, and no signer gets it" if one.is_held else one.screening.state
        yield f"  Screening: {state}{f': {why}' if why else ''}"
    if one.txid:
        yield f"  Transaction {one.txid}, {count(one.confirmations, 'confirmation', 'confirmations')}"
    if one.failure_reason:
        yield f"  {one.failure_reason}"
    if one.trouble:
        yield f"  Trouble: {one.trouble.words}"
        yield f"    {_ADVICE[one.trouble.advice]}"
    if one.replaced_by_psbt_id:
        ends = ": it takes no signatures any more, unless that one ends" if one.status == "PENDING" else ""
        yield f"  Replaced by {one.replaced_by_psbt_id}{ends}"


def proposal_of(access: Access, given: str) -> "Proposal":
    """Raises Stop."""
    listed = proposals_of(access, ANY, search=given)
    known = [NamedRecord(one.psbt_id, (), title_of(one), one) for one in listed]
    return access.pick(given, known, "proposal", "custody proposal list --all lists them.")


@click.command("bump")
@_given
@click.option("--fee-rate", help="In sat/vB; else as the platform chooses.")
@asking_in_workspace
def bump_command(access: Access, given: str, fee_rate: str | None) -> None:
    """Propose the same payment at a higher fee: it replaces the earlier one once it is approved."""
    one = proposal_of(access, given)
    replaced = {"replaces_psbt_id": one.psbt_id, "wallet_id": one.vault_id}
    request = access.request(access.client.create_psbt, tx_type="send", fee_rate=fee_rate, **replaced)
    preview = access.make(access.client.preview_psbt, request)
    _show(one)
    aside(f"  The new one's fee: {amount(preview.fee_sats)}, {preview.fee_rate} sat/vB")
    access.confirm("Propose it at this fee?")
    propose(access, request)


@click.command("cancel")
@_given
@click.option("--reason", help="Why, for those who look at it later.")
@click.option(
    "--release-coins", is_flag=True, help="Free its coins, although whoever has its signatures can send it."
)
@asking_in_workspace
def cancel_command(access: Access, given: str, **how: Any) -> None:
    """Cancel a proposal that waits for signatures. Signatures already given stay valid, and it says so."""
    one = proposal_of(access, given)
    _show(one)
    access.confirm("Cancel it, and free its coins?" if how["release_coins"] else "Cancel it?")
    done = access.make(access.client.cancel_psbt, psbt_id=one.psbt_id, **how)
    give(done, f"Cancelled: {title_of(one)}, proposal {done.psbt_id}. {done.detail}")


def _show(one: "Proposal") -> None:
    aside("\n".join(map(plain, lines_of(one))))


def signed(one: "Proposal") -> str:
    return f"{one.collected_signatures} of {one.required_signatures}"
