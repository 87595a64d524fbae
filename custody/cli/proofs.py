"""``custody proof``: messages that a vault's signers sign for auditors; ``custody verify-proof`` checks
them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace, with_access, workspace_option
from custody.cli.common import give, give_list
from custody.cli.proposals import ENDED, OPEN, proposals_of
from custody.cli.vaults import given_vault, vault_of
from custody.common.naming import NamedRecord
from custody.common.terminal import aside, say
from custody.common.text import short_ids

if TYPE_CHECKING:
    from custody.schemas.proposals import Proposal

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
    found = _proofs(access)
    short = short_ids([one.psbt_id for one in found])
    rows = [(short[one.psbt_id], one.status.lower(), _signed(one), one.description or "") for one in found]
    give_list(found, ("id", "state", "signed", "message"), rows)


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
    found = access.client.proof(workspace_id=access.workspace_id, psbt_id=one.psbt_id)
    file.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
    say(f"{file} is written. Anybody checks it with: custody verify-proof {file}")


def _proofs(access: Access) -> "list[Proposal]":
    every = proposals_of(access, (*OPEN, *ENDED), tx_type="proof")
    return sorted(every, key=lambda one: one.created_at)


def _proof(access: Access, given: str) -> "Proposal":
    def candidate(one: "Proposal") -> NamedRecord:
        return NamedRecord(one.psbt_id, (), one.description or "")

    return access.pick(given, _proofs(access), candidate, "proof", "custody proof list lists them.")


def _signed(one: "Proposal") -> str:
    return f"{one.collected_signatures} of {one.required_signatures}"
