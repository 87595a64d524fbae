"""``custody vault freeze`` and ``unfreeze``: one person freezes a vault, two unfreeze it."""

from typing import TYPE_CHECKING

import click

from custody.cli.common import confirm, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import place_of, workspace_option
from custody.cli.vaults import vault_of
from custody.terminal import answer, aside, say

if TYPE_CHECKING:
    from custody.schemas.vaults import VaultControls


@click.command("freeze")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@click.option("--reason", help="Why, as the audit log has it.")
@workspace_option
@yes_option
@json_option
def freeze_command(
    desk: Desk, given: str, reason: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Stop all payments from a vault at once. Two people are needed to undo it."""
    from custody.schemas.vaults import FreezeVaultRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = vault_of(client, place.workspace_id, given, unseen=yes)
        aside(f"The vault '{one.name}' {one.id}: nothing is proposed, signed or sent while it is frozen.")
        confirm(desk.answers, "Freeze it?", yes=yes)
        request = FreezeVaultRequest(workspace_id=place.workspace_id, vault_id=one.id, reason=reason)
        done = client.freeze_vault(request)
    _tell(one.name, done, as_json=as_json)


@click.command("unfreeze")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@workspace_option
@yes_option
@json_option
def unfreeze_command(desk: Desk, given: str, workspace: str | None, yes: bool, as_json: bool) -> None:
    """Unfreeze a vault: it takes effect when a second person does the same within a day."""
    from custody.schemas.vaults import UnfreezeVaultRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        one = vault_of(client, place.workspace_id, given, unseen=yes)
        now = client.vault_controls(place.workspace_id, one.id)
        for line in _waiting(now):
            aside(line)
        confirm(desk.answers, f"Let the vault '{one.name}' go on?", yes=yes)
        request = UnfreezeVaultRequest(workspace_id=place.workspace_id, vault_id=one.id)
        done = client.unfreeze_vault(request)
    _tell(one.name, done, as_json=as_json)


def _tell(name: str, now: "VaultControls", *, as_json: bool) -> None:
    if as_json:
        answer(now)
        return
    if not now.is_frozen:
        say(f"The vault '{name}' goes on.")
        return
    say(f"The vault '{name}' is frozen.")
    if now.unfreeze_asked_at is not None:
        say("  It goes on once another person says so, within a day: custody vault unfreeze.")
    for line in _waiting(now):
        say(line)


def _waiting(now: "VaultControls") -> list[str]:
    return [
        *(f"  Approved, and not sent while it is frozen: {one}" for one in now.waiting_psbt_ids),
        *(f"  On the network already, where nothing stops it: {one}" for one in now.on_network_psbt_ids),
    ]
