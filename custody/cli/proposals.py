"""``custody proposals`` and ``approve-status``: the proposals that are under way, and who has approved one;
``custody proposal bump`` and ``cancel`` change or end one. ``custody proof``: messages that a vault's signers
sign for auditors; ``custody verify-proof`` checks them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from custody.cli.access import (
    Access,
    asking_in_workspace,
    in_workspace,
    with_access,
    workspace_option,
)
from custody.cli.common import give, give_list, wants_json
from custody.cli.members import people_of
from custody.cli.payments import propose
from custody.cli.vaults import given_vault, vault_of
from custody.common.naming import NamedRecord
from custody.common.terminal import answer, aside, say, table
from custody.common.text import amount, count, short_ids

if TYPE_CHECKING:
    from custody.schemas.proposals import Proposal


# A copy of `custody.schemas.proposals.ProposalStatus`, so that help loads no schema; a test compares them.
OPEN: Final = ("pending", "signed", "broadcasting", "stalled")
ENDED: Final = (
    "confirmed",
    "rejected",
    "cancelled",
    "expired",
    "invalidated",
    "failed",
    "replaced",
    "proven",
)
PAGE: Final = 200
MOST_PAGES: Final = 25


def proposals_of(
    access: Access,
    statuses: tuple[str, ...],
    search: str | None = None,
    tx_type: Literal["proof"] | None = None,
) -> "Iterator[Proposal]":
    """The proposals of these statuses, oldest first, up to MOST_PAGES pages of each status."""
    from custody.schemas.proposals import ProposalStatus

    for name in statuses:
        after = None
        for _ in range(MOST_PAGES):
            status = ProposalStatus(name.upper())
            page = access.client.proposals(
                access.workspace_id, status=status, after=after, limit=PAGE, search=search, tx_type=tx_type
            )
            yield from page.items
            after = page.following
            if after is None:
                break
        else:
            aside(f"There are more that are {name}: the first {MOST_PAGES} pages were read.")


def title_of(proposal: "Proposal") -> str:
    """The token call in words, else the description, else the type."""
    if proposal.decoded_call is not None:
        return proposal.decoded_call.words
    return proposal.description or proposal.tx_type


_ADVICE: Final = {
    "bump": "A new version at a higher fee takes its place: `custody proposal bump`.",
    "wait": "Wait: nothing can be done here.",
    "cancel": "It waits for that deposit to return. `custody proposal cancel` ends it.",
    "resend": "The platform sends it again by itself.",
    "none": "It is over: propose it anew where it is still to be paid.",
}


_given = click.argument("given", metavar="PROPOSAL", help="Its id, or the beginning of it.")


@click.command("proposals")
@click.option("--all", "ended", is_flag=True, help="Also those that have come to an end.")
@click.option("--status", type=click.Choice((*OPEN, *ENDED)), help="Only those.")
@click.option(
    "--search",
    metavar="WORDS",
    help="Only those with each word: of the title, a recipient's name, an amount, the begin of an id.",
)
@in_workspace
def proposals_command(access: Access, ended: bool, status: str | None, search: str | None) -> None:
    """List the proposals of the workspace that are under way."""
    statuses = (status,) if status else (*OPEN, *ENDED) if ended else OPEN
    listed = sorted(proposals_of(access, statuses, search), key=lambda one: one.created_at)
    names = (
        {one.id: one.name for one in access.client.vault_names(workspace_id=access.workspace_id)}
        if listed
        else {}
    )
    is_anyone_nameless = any(not one.created_by_name for one in listed)
    people = people_of(access) if is_anyone_nameless else {}
    short = short_ids([one.psbt_id for one in listed])
    rows = (_row(one, short[one.psbt_id], names, people) for one in listed)
    header = ("ID", "STATUS", "VAULT", "PAYS", "SIGNED", "BY", "FOR")
    give_list(listed, header, rows, "No proposals.")


def _row(one: "Proposal", short: str, vaults: dict[str, str], people: dict[str, str]) -> tuple[str, ...]:
    vault = vaults.get(one.vault_id, one.vault_id)
    by = one.created_by_name or people.get(str(one.created_by), f"member {one.created_by}")
    return short, one.status.lower(), vault, amount(sum(one.amounts_sats)), _signed(one), by, title_of(one)


@click.command("approve-status")
@_given
@in_workspace
def approve_status_command(access: Access, given: str) -> None:
    """Show who has approved a proposal, who has not answered, and its status."""
    one = proposal_of(access, given)
    people = people_of(access)
    if wants_json():
        answer(one)
        return
    say("\n".join(lines_of(one)))
    rows = [
        (
            people.get(s.user_id, f"member {s.user_id}"),
            _decision(s.decision, is_signed=s.is_signed),
            f"{s.signed_at:%Y-%m-%d %H:%M} UTC" if s.signed_at else "",
        )
        for s in one.signers
    ]
    table(("SIGNER", "DECISION", "WHEN"), rows)


def _decision(decision: str | None, *, is_signed: bool) -> str:
    if is_signed:
        return "approved"
    return "declined" if decision == "reject" else "no answer yet"


def lines_of(one: "Proposal") -> Iterator[str]:
    yield f"Proposal {one.psbt_id}: {title_of(one)}"
    yield f"  Status:  {one.status.lower()}, {_signed(one)} signatures"
    for address, sats in zip(one.recipients, one.amounts_sats, strict=False):
        yield f"  pays     {amount(sats)} to {address}"
    yield f"  fee      {amount(one.fee_sats)}, {one.fee_rate} sat/vB"
    if one.status == "PENDING":
        yield f"  Expires: {one.expires_at:%Y-%m-%d %H:%M} UTC"
    if one.txid:
        yield f"  Transaction {one.txid}, {count(one.confirmations, 'confirmation', 'confirmations')}"
    if one.failure_reason:
        yield f"  {one.failure_reason}"
    if one.trouble:
        yield f"  Trouble: {one.trouble.words}"
        yield f"    {_ADVICE[one.trouble.advice]}"
    if one.replaced_by_psbt_id:
        yield f"  Replaced by {one.replaced_by_psbt_id}"


def proposal_of(access: Access, given: str) -> "Proposal":
    """Looked for among the proposals under way first, then among the ended ones. Raises Stop."""
    listed = list(proposals_of(access, OPEN))
    if not any(one.psbt_id.startswith(given.strip().lower()) for one in listed):
        listed = list(proposals_of(access, ENDED))
    known = [NamedRecord(one.psbt_id, (), title_of(one), one) for one in listed]
    return access.pick(given, known, "proposal", "custody proposals --all lists them.")


@click.group("proposal")
def proposal() -> None:
    """Bump or cancel a payment that is under way."""


@proposal.command("bump")
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


@proposal.command("cancel")
@_given
@click.option("--reason", help="Why, for those who look at it later.")
@asking_in_workspace
def cancel_command(access: Access, given: str, reason: str | None) -> None:
    """Cancel a proposal that waits for signatures. Signatures already given stay valid, and it says so."""
    one = proposal_of(access, given)
    _show(one)
    access.confirm("Cancel it?")
    done = access.make(access.client.cancel_psbt, psbt_id=one.psbt_id, reason=reason)
    give(done, f"Cancelled: {title_of(one)}, proposal {done.psbt_id}. {done.detail}")


def _show(one: "Proposal") -> None:
    aside("\n".join(lines_of(one)))


given_proof = click.argument("given", metavar="PROOF", help="Its id, or the beginning of it.")


@click.group()
def proof() -> None:
    """Prove control of a vault's address and coins by a signed message (BIP-322). It moves nothing."""


@proof.command("make")
@given_vault
@click.option("--message", required=True, help="One line; the last block is added to it.")
@click.option("--address", help="Of the vault, which signs; default: its first one.")
@click.option(
    "--with-coins",
    is_flag=True,
    help="Name and sign for the confirmed coins of the vault, the largest 250 at most.",
)
@asking_in_workspace
def make_command(access: Access, given: str, message: str, address: str | None, with_coins: bool) -> None:
    """Ask a vault's signers to sign a message."""
    from firmware_bridge.makers import signing_devices
    from multisig import Psbt
    from multisig.bip322 import MAX_COINS

    one = vault_of(access, given)
    aside(f"The signers of '{one.name}' {one.id} are asked to sign: {message}")
    aside(f"These devices sign such a message: {signing_devices(coins=with_coins)}.")
    access.confirm("Ask them?")
    fields = {"message": message, "address": address, "with_coins": with_coins}
    made = access.make(access.client.create_proof, vault_id=one.id, **fields)
    if len(Psbt.parse(made.psbt_base64).inputs) > MAX_COINS:
        aside(f"It names the vault's {MAX_COINS} largest coins: no proof names more.")
    give(made, f"The proof {made.psbt_id} waits for its signers: custody proof show {made.psbt_id}.")


@proof.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List the workspace's proofs, also incomplete ones."""
    proofs = _proofs(access)
    short = short_ids([one.psbt_id for one in proofs])
    rows = [(short[one.psbt_id], one.status.lower(), _signed(one), one.description or "") for one in proofs]
    give_list(proofs, ("id", "state", "signed", "message"), rows)


@proof.command("show")
@given_proof
@in_workspace
def show_command(access: Access, given: str) -> None:
    """Show one proof, and who has signed it."""
    one = _proof(access, given)
    give(
        one,
        f"The proof {one.psbt_id} is {one.status.lower()}: {_signed(one)} signatures.",
        f"  Message: {one.description or ''}",
        *(f"  {signer.name or signer.user_id}: {signer.decision or 'not yet'}" for signer in one.signers),
    )


@proof.command("download")
@given_proof
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@workspace_option
@with_access
def download_command(access: Access, given: str, file: Path) -> None:
    """Write the file of a complete proof, for the auditor who checks it."""
    one = _proof(access, given)
    proof_file = access.client.proof(workspace_id=access.workspace_id, psbt_id=one.psbt_id)
    file.write_text(proof_file.model_dump_json(indent=2) + "\n", encoding="utf-8")
    say(f"{file} is written. Anybody checks it with: custody verify-proof {file}")


def _proofs(access: Access) -> "list[Proposal]":
    every = proposals_of(access, (*OPEN, *ENDED), tx_type="proof")
    return sorted(every, key=lambda one: one.created_at)


def _proof(access: Access, given: str) -> "Proposal":
    known = [NamedRecord(one.psbt_id, (), one.description or "", one) for one in _proofs(access)]
    return access.pick(given, known, "proof", "custody proof list lists them.")


def _signed(one: "Proposal") -> str:
    return f"{one.collected_signatures} of {one.required_signatures}"
