"""``custody proof``: messages that a vault's signers sign for auditors; ``custody verify-proof`` checks
them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.cli.common import confirm, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import chosen, place_of, workspace_option
from custody.cli.proposals import ENDED, OPEN, proposals_of
from custody.cli.vaults import vault_of
from custody.naming import Candidate
from custody.terminal import answer, aside, say, table
from custody.text import short_ids

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.proposals import Proposal

given_proof = click.argument("given", metavar="PROOF", help="Its id, or the beginning of it.")


@click.group()
def proof() -> None:
    """Prove control of a vault's address and coins by a signed message (BIP-322). It moves nothing."""


@proof.command("make")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@click.option("--message", required=True, help="One line; the last block is added to it.")
@click.option("--address", help="Of the vault, which signs; default: its first one.")
@click.option(
    "--with-coins",
    is_flag=True,
    help="Name and sign for the confirmed coins of the vault, the largest 250 at most.",
)
@workspace_option
@yes_option
@json_option
def make_command(
    desk: Desk,
    given: str,
    message: str,
    address: str | None,
    with_coins: bool,
    workspace: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Ask a vault's signers to sign a message."""
    from custody.schemas.proofs import CreateProofRequest
    from multisig import Psbt
    from multisig.bip322 import MAX_COINS, signing_devices

    with desk.client() as client:
        place = place_of(client, workspace)
        one = vault_of(client, place.workspace_id, given, unseen=yes)
        aside(f"The signers of '{one.name}' {one.id} are asked to sign: {message}")
        aside(f"These devices sign such a message: {signing_devices(coins=with_coins)}.")
        confirm(desk.answers, "Ask them?", yes=yes)
        request = CreateProofRequest(
            workspace_id=place.workspace_id,
            vault_id=one.id,
            message=message,
            address=address,
            with_coins=with_coins,
        )
        made = client.create_proof(request)
    if len(Psbt.parse(made.psbt_base64).inputs) > MAX_COINS:
        aside(f"It names the vault's {MAX_COINS} largest coins: no proof names more.")
    if as_json:
        answer(made)
    else:
        say(f"The proof {made.psbt_id} waits for its signers: custody proof show {made.psbt_id}.")


@proof.command("list")
@pass_desk
@workspace_option
@json_option
def list_command(desk: Desk, workspace: str | None, as_json: bool) -> None:
    """List the workspace's proofs, also incomplete ones."""
    with desk.client() as client:
        found = _proofs(client, place_of(client, workspace).workspace_id)
    if as_json:
        answer(found)
        return
    short = short_ids([one.psbt_id for one in found])
    rows = [(short[one.psbt_id], one.status.lower(), _signed(one), one.description or "") for one in found]
    table(("id", "state", "signed", "message"), rows)


@proof.command("show")
@pass_desk
@given_proof
@workspace_option
@json_option
def show_command(desk: Desk, given: str, workspace: str | None, as_json: bool) -> None:
    """Show one proof, and who has signed it."""
    with desk.client() as client:
        one = _proof(client, place_of(client, workspace).workspace_id, given)
    if as_json:
        answer(one)
        return
    say(f"The proof {one.psbt_id} is {one.status.lower()}: {_signed(one)} signatures.")
    say(f"  Message: {one.description or ''}")
    for signer in one.signers:
        say(f"  {signer.name or signer.user_id}: {signer.decision or 'not yet'}")


@proof.command("download")
@pass_desk
@given_proof
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@workspace_option
def download_command(desk: Desk, given: str, file: Path, workspace: str | None) -> None:
    """Write the file of a complete proof, for the auditor who checks it."""
    from custody.schemas.proofs import ProofQuery

    with desk.client() as client:
        workspace_id = place_of(client, workspace).workspace_id
        one = _proof(client, workspace_id, given)
        found = client.proof(ProofQuery(workspace_id=workspace_id, psbt_id=one.psbt_id))
    file.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
    say(f"{file} is written. Anybody checks it with: custody verify-proof {file}")


def _proofs(client: "Client", workspace_id: int) -> "list[Proposal]":
    every = proposals_of(client, workspace_id, (*OPEN, *ENDED), tx_type="proof")
    return sorted(every, key=lambda one: one.created_at)


def _proof(client: "Client", workspace_id: int, given: str) -> "Proposal":
    found = {one.psbt_id: one for one in _proofs(client, workspace_id)}
    candidates = [Candidate(key, (), one.description or "") for key, one in found.items()]
    return found[chosen(given, candidates, "proof", "custody proof list lists them.")]


def _signed(one: "Proposal") -> str:
    return f"{one.collected_signatures} of {one.required_signatures}"
