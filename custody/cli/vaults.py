"""``custody vault list``, ``show``, ``create``, ``freeze`` and ``unfreeze``: one person freezes a vault, two
unfreeze it. And ``replace`` and ``sweep``: two people put a new vault in its place, and its coins move there.
"""

from typing import TYPE_CHECKING
from uuid import uuid4

import click

from custody.cli.changes import made_or_asked, told
from custody.cli.common import Amount, FeeRate, confirm, fail, in_btc, json_option, yes_option
from custody.cli.desk import Desk, pass_desk
from custody.cli.meant import chosen, place_of, workspace_option
from custody.cli.members import candidates_of, full_name, people_of
from custody.limit_words import bounds, until
from custody.naming import Candidate, next_name
from custody.terminal import Exit, answer, aside, say, table
from custody.text import amount, network_words

if TYPE_CHECKING:
    from custody.client import Client
    from custody.schemas.members import Member
    from custody.schemas.vaults import Vault, VaultControls, VaultSigner


MAX_SIGNERS = 15
CYCLES = {"week": "W", "month": "M"}
per_cycle_option = click.option(
    "--per-cycle/--per-payment",
    "per_cycle",
    default=None,
    help="A vault's limit is for all payments of a week or month together, or for each payment by itself. "
    "Default: as it is; of a new vault, for each payment.",
)


def vault_of(client: "Client", workspace_id: int, given: str, *, unseen: bool = False) -> "Vault":
    """Raises Stop."""
    found = {vault.id: vault for vault in client.list_wallets(workspace_id)}
    candidates = [
        Candidate(one.id, (one.name,), f"'{one.name}', {one.m} of {one.n}") for one in found.values()
    ]
    return found[chosen(given, candidates, "vault", "custody vault list lists them.", unseen=unseen)]


@click.group("vault")
def vault() -> None:
    """The vaults of a workspace."""


@vault.command("list")
@pass_desk
@workspace_option
@json_option
def list_command(desk: Desk, workspace: str | None, as_json: bool) -> None:
    """List the vaults and what is in them."""
    with desk.client() as client:
        found = client.list_wallets(place_of(client, workspace).workspace_id)
    if as_json:
        answer(found)
    elif found:
        header = ("ID", "NAME", "SIGNERS", "NETWORK", "CONFIRMED", "COMING", "LOCKED", "STOPPED")
        table(header, [_row(one) for one in found])
    else:
        say("No vaults.")


def _row(one: "Vault") -> tuple[str, ...]:
    sums = (one.confirmed_sats, one.unconfirmed_sats, one.locked_sats)
    amounts = (f"{in_btc(sats)} BTC" for sats in sums)
    return one.id, one.name, f"{one.m} of {one.n}", one.chain, *amounts, one.marks


@vault.command("show")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@workspace_option
@json_option
def show_command(desk: Desk, given: str, workspace: str | None, as_json: bool) -> None:
    """Show a vault: balance, limit, signers, a fresh address, and the code that its signers compare."""
    with desk.client() as client:
        place = place_of(client, workspace)
        one = vault_of(client, place.workspace_id, given)
        code = client.vault_export(place.workspace_id, one.id).verification_code
        is_anyone_nameless = not all(full_name(signer, "") for signer in one.signers)
        people = people_of(client, place) if is_anyone_nameless else {}
    if as_json:
        answer({**one.model_dump(mode="json", by_alias=True), "verification_code": code})
        return
    for line in _lines(one, code, people):
        say(line)


def _lines(one: "Vault", code: str, people: dict[str, str]) -> list[str]:
    signers = ", ".join(
        full_name(signer, people.get(signer.user_id, f"member {signer.user_id}")) + _state(signer)
        for signer in one.signers
    )
    lines = [
        f"Vault '{one.name}' {one.id}    {one.chain}",
        f"  Verification code: {code}",
        f"  Signers:    {one.m} of {one.n}: {signers}",
        f"  Confirmed:  {amount(one.confirmed_sats)}",
        f"  Coming:     {amount(one.unconfirmed_sats)}",
        f"  Locked:     {amount(one.locked_sats)}, by proposals that wait",
    ]
    if one.is_frozen:
        lines[1:1] = [
            "  Frozen:     nothing is proposed, signed or sent until two people run custody vault unfreeze."
        ]
    if one.replaced_by is None:
        lines += [
            f"  Receive at: {one.receive_address}",
            "    That is the platform's word: compare it with signerd addresses before money goes there.",
        ]
    else:
        lines[1:1] = [f"  Replaced:   by {one.replaced_by}; custody vault sweep moves there what is left."]
    if one.replaces is not None:
        lines[1:1] = [f"  Replaces:   {one.replaces}"]
    if one.lacks_signers:
        lines[1:1] = [
            f"  Stopped:    fewer than {one.m} of its signers can sign a payment; see the state of each."
        ]
    limits = one.detailed_vault_limits
    if limits is None:
        return [*lines, f"  Limit:      {one.limit_error}"]
    words = bounds(per_cycle=limits.per_cycle, period=limits.cycle_period, day=limits.cycle_day)
    left = f": {limits.unused} BTC left until {until(limits.next_reset)}" if limits.per_cycle else ""
    return [*lines, f"  Limit:      at most {limits.limit} BTC {words}{left}"]


def _state(signer: "VaultSigner") -> str:
    """What keeps a signer from signing, in brackets."""
    key = None if signer.key_state == "active" else f"key {signer.key_state}"
    role = "may not approve" if signer.may_approve is False else None
    why = ", ".join(filter(None, (key, role)))
    return f" ({why})" if why else ""


@vault.command("create")
@pass_desk
@click.argument("name")
@click.option(
    "--signatures", "-m", "m", required=True, type=click.IntRange(1, MAX_SIGNERS), help="How many must sign."
)
@click.option(
    "--signer",
    "signers",
    multiple=True,
    required=True,
    metavar="MEMBER",
    help="E-mail address, name or id; again for each.",
)
@click.option("--limit", required=True, type=Amount(), help="What is paid at most, like 1.5BTC.")
@per_cycle_option
@click.option(
    "--cycle", default="month", type=click.Choice(tuple(CYCLES)), help="The cycle of a limit per cycle."
)
@click.option(
    "--day", default=1, type=click.IntRange(1, 31), help="When a cycle begins; of a week, 1 is Monday."
)
@workspace_option
@yes_option
@json_option
def create_command(
    desk: Desk,
    name: str,
    m: int,
    signers: tuple[str, ...],
    limit: int,
    per_cycle: bool | None,
    cycle: str,
    day: int,
    workspace: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Create a vault. Its signers and how many must sign are fixed for ever."""
    from custody.schemas.vaults import CreateWalletRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        members = _signers(client, place.workspace_id, signers, yes=yes)
        request = CreateWalletRequest.model_validate(
            {
                "workspace_id": place.workspace_id,
                "name": name,
                "network": place.network,
                "m": m,
                "signers": [member.uuid for member in members],
                "transaction_limit": in_btc(limit),
                "per_cycle": per_cycle is True,
                "cycle_period": CYCLES[cycle],
                "cycle_day": day,
            }
        )
        where = f"'{place.name}' of {place.organisation}, on {network_words(place.network)}"
        aside(f"Vault '{request.name}' in {where}")
        aside(f"  Any {m} of these {len(members)} can spend from it; that never changes:")
        for member in members:
            aside(f"    {full_name(member)} <{member.email}>")
        words = bounds(per_cycle=request.per_cycle, period=request.cycle_period, day=day)
        aside(f"  Limit: at most {amount(limit)} {words}")
        confirm(desk.answers, "Create this vault?", yes=yes)
        made = client.create_wallet(request, idempotency_key=uuid4().hex)
        code = client.vault_export(place.workspace_id, made.id).verification_code
    if as_json:
        answer({**made.model_dump(mode="json", by_alias=True), "verification_code": code})
        return
    say(f"Vault '{made.name}' {made.id} is created. Verification code: {code}")
    for warning in made.warnings or ():
        say(f"  Note: {warning}")
    say(f"  Before money goes there, each signer runs signerd pin {made.id} and compares the code.")


def _signers(client: "Client", workspace_id: int, given: tuple[str, ...], *, yes: bool) -> "list[Member]":
    known = {str(member.uuid): member for member in client.members(workspace_id)}
    hint = "custody member list lists them."
    found = [known[chosen(one, candidates_of(known.values()), "member", hint, unseen=yes)] for one in given]
    for member in found:
        if not member.can_sign:
            fail(
                f"{member.email} has no device registered on this network",
                "The member runs signerd register first.",
                Exit.NOT_DECIDED,
            )
    return found


@click.command("replace")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@click.argument(
    "name", metavar="[NAME]", required=False, help="Of the new vault. Default: the next free one, as Cold 2."
)
@click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="MEMBER",
    help="E-mail address, name or id; again for each. Default: the same people, with their active keys.",
)
@click.option(
    "--signatures",
    "-m",
    "m",
    type=click.IntRange(1, MAX_SIGNERS),
    help="How many must sign. Default: as many as now.",
)
@workspace_option
@yes_option
@json_option
def replace_command(
    desk: Desk,
    given: str,
    name: str | None,
    signers: tuple[str, ...],
    m: int | None,
    workspace: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Put a new vault in the place of one. Another manager of the workspace has to confirm it."""
    from custody.schemas.vaults import ReplaceVaultRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        old = vault_of(client, place.workspace_id, given, unseen=yes)
        name = name or next_name(old.name, (one.name for one in client.vault_names(place.workspace_id)))
        same = tuple(signer.user_id for signer in old.signers)
        members = _signers(client, place.workspace_id, signers or same, yes=yes)
        request = ReplaceVaultRequest(
            workspace_id=place.workspace_id,
            vault_id=old.id,
            name=name,
            m=m or old.m,
            signers=[member.uuid for member in members],
        )
        aside(f"Vault '{name}' in the place of '{old.name}' {old.id}")
        aside(f"  Any {request.m} of these {len(members)} can spend from it:")
        for member in members:
            is_new = "" if str(member.uuid) in same else ", new"
            aside(f"    {full_name(member)} <{member.email}>{is_new}")
        aside("  Its coins then move there alone, beside every limit. Unsigned payments are cancelled.")
        for entry in client.whitelist_addresses(place.workspace_id, leads_to=old.id):
            aside(f"  In the address book '{entry.name}' leads to the old vault: {entry.address}")
        done = made_or_asked(
            desk,
            client,
            place,
            "/api/v1/replace-vault",
            request,
            lambda: client.replace_vault(request),
            yes=yes,
        )
    told(done, f"The vault '{old.name}' is replaced.", as_json=as_json)


@click.command("sweep")
@pass_desk
@click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")
@click.option("--fee-rate", type=FeeRate(), help="In sat/vB. Default: the platform's priority.")
@workspace_option
@yes_option
@json_option
def sweep_command(
    desk: Desk, given: str, fee_rate: str | None, workspace: str | None, yes: bool, as_json: bool
) -> None:
    """Propose to move what is free of a replaced vault into the one in its place."""
    from custody.schemas.vaults import SweepVaultRequest

    with desk.client() as client:
        place = place_of(client, workspace)
        old = vault_of(client, place.workspace_id, given, unseen=yes)
        free = amount(old.confirmed_sats - old.locked_sats)
        aside(f"The vault '{old.name}' {old.id}: about {free} are free.")
        confirm(desk.answers, f"Propose to move them to {old.replaced_by or 'its replacement'}?", yes=yes)
        request = SweepVaultRequest(workspace_id=place.workspace_id, vault_id=old.id, fee_rate=fee_rate)
        done = client.sweep_vault(request)
    if as_json:
        answer(done)
        return
    for psbt_id in done.psbt_ids:
        say(f"Proposed: {psbt_id}")


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
