"""``custody proof``: messages that a vault's signers sign for auditors."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace, with_access, workspace_option
from custody.cli.common import give, give_list, write_file
from custody.cli.proposals import ANY, proposals_of, signed
from custody.cli.vaults import given_vault, vault_of
from custody.common.naming import NamedRecord
from custody.common.terminal import aside, say
from custody.common.text import foreign, short_ids

if TYPE_CHECKING:
    from custody.schemas.proposals import Proposal


given_proof = click.argument("given", metavar="PROOF", help="Its id, or the beginning of it.")


@click.command("make")
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


@click.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List the workspace's proofs, also incomplete ones."""
    proofs = _proofs(access)
    short = short_ids([one.psbt_id for one in proofs])
    rows = [(short[one.psbt_id], one.status.lower(), signed(one), one.description or "") for one in proofs]
    give_list(proofs, ("id", "state", "signed", "message"), rows)


@click.command("show")
@given_proof
@in_workspace
def show_command(access: Access, given: str) -> None:
    """Show one proof, and who has signed it."""
    one = _proof(access, given)
    give(
        one,
        f"The proof {one.psbt_id} is {one.status.lower()}: {signed(one)} signatures.",
        f"  Message: {foreign(one.description or '')}",
        *(f"  {signer.name or signer.user_id}: {signer.decision or 'not yet'}" for signer in one.signers),
    )


@click.command("download")
@given_proof
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@workspace_option
@with_access
def download_command(access: Access, given: str, file: Path) -> None:
    """Write the new file of a complete proof, for the auditor who checks it."""
    one = _proof(access, given)
    proof_file = access.client.proof(workspace_id=access.workspace_id, psbt_id=one.psbt_id)
    write_file(file, f"{proof_file.model_dump_json(indent=2)}\n".encode())
    say(f"{file} is written. Anybody checks it with: custody proof verify {file}")


def _proofs(access: Access) -> "list[Proposal]":
    return [*proposals_of(access, ANY, tx_type="proof")][::-1]


def _proof(access: Access, given: str) -> "Proposal":
    known = [NamedRecord(one.psbt_id, (), one.description or "", one) for one in _proofs(access)]
    return access.pick(given, known, "proof", "custody proof list lists them.")
