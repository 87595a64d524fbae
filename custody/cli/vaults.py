"""``custody vault list``, ``show``, ``create``, ``approvers``, ``freeze`` and ``unfreeze``: one person
freezes a vault, two unfreeze it. And ``replace`` and ``sweep``: two people put a new vault in its place, and
its coins move there.
"""

from functools import partial
from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace
from custody.cli.changes import make_or_ask
from custody.cli.common import Amount, fail, give, give_list
from custody.cli.members import full_name, members_of, role_of
from custody.common.naming import NamedRecord, next_name
from custody.common.terminal import Exit, aside
from custody.common.text import amount, bounds, btc, day_words, foreign, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from custody.schemas.users import Member
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
cycle_option = partial(click.option, "--cycle", type=click.Choice(tuple(CYCLES)))
day_option = partial(click.option, "--day", type=click.IntRange(1, 31))
signatures_option = partial(click.option, "--signatures", "-m", "m", type=click.IntRange(1, MAX_SIGNERS))
signer_option = partial(click.option, "--signer", "signers", multiple=True, metavar="MEMBER")
given_vault = click.argument("given", metavar="VAULT", help="Its id, the beginning of it, or its name.")


def vault_of(access: Access, given: str) -> "Vault":
    """Raises Stop."""
    vaults = access.client.list_wallets(workspace_id=access.workspace_id)
    known = [NamedRecord(one.id, (one.name,), f"'{one.name}', {one.m} of {one.n}", one) for one in vaults]
    return access.pick(given, known, "vault", "custody vault list lists them.")


@click.group("vault")
def vault() -> None:
    """The vaults of a workspace."""


@vault.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List the vaults and what is in them."""
    vaults = access.client.list_wallets(workspace_id=access.workspace_id)
    header = ("ID", "NAME", "SIGNERS", "NETWORK", "CONFIRMED", "UNCONFIRMED", "LOCKED", "STOPPED")
    give_list(vaults, header, map(_row, vaults), "No vaults.")


def _row(one: "Vault") -> tuple[str, ...]:
    sums = (one.confirmed_sats, one.unconfirmed_sats, one.locked_sats)
    amounts = (f"{btc(sats)} BTC" for sats in sums)
    return one.id, one.name, f"{one.m} of {one.n}", one.chain, *amounts, one.marks


@vault.command("show")
@given_vault
@in_workspace
def show_command(access: Access, given: str) -> None:
    """Show a vault: balance, limit, signers, a fresh address, and the code that its signers compare."""
    one = vault_of(access, given)
    code = access.client.vault_export(workspace_id=access.workspace_id, vault_id=one.id).verification_code
    now = access.client.vault_controls(access.workspace_id, one.id)
    approvers = now.model_dump(mode="json", include={"named_approvers"})
    shown = {**one.model_dump(mode="json", by_alias=True), "verification_code": code, **approvers}
    give(shown, *_lines(one, code, now))


def _lines(one: "Vault", code: str, now: "VaultControls") -> "Iterator[str]":
    yield f"Vault '{one.name}' {one.id}    {one.chain}"
    if one.lacks_signers:
        yield f"  Stopped:     fewer than {one.m} of its signers can sign a payment; see the state of each."
    if one.lacks_approver:
        yield "  Stopped:     nobody of whom custody vault approvers says that they must approve can sign."
    if one.replaces is not None:
        yield f"  Replaces:    {one.replaces}"
    if one.replaced_by is not None:
        yield f"  Replaced:    by {one.replaced_by}; custody vault sweep moves there what is left."
    if one.is_frozen:
        yield "  Frozen:      nothing is proposed, signed or sent until two people call vault unfreeze."
    yield f"  Verification code: {code}"
    yield f"  Signers:     {one.m} of {one.n}, and when the device of each last signed:"
    for each in one.signers:
        signed = day_words(each.last_signed_at) if each.last_signed_at else "not known"
        yield f"    {signed:11}  {each.name or f'member {each.user_id}'}{_state(each)}"
    yield from (f"  One approval has to come from {foreign(each.words)}" for each in now.named_approvers)
    yield f"  Confirmed:   {amount(one.confirmed_sats)}"
    yield f"  Unconfirmed: {amount(one.unconfirmed_sats)}"
    named = f"; custody vault coins {one.id[:8]} --state {{}} names them"
    which = named.format("locked") if one.locked_sats else ""
    yield f"  Locked:      {amount(one.locked_sats)}, by proposals{which}"
    if one.set_aside_sats:
        yield f"  Set aside:   {amount(one.set_aside_sats)}{named.format('set-aside')}"
    if one.replaced_by is None:
        yield f"  Receive at:  {one.receive_address}"
        yield "    That is the platform's word: compare it with signerd addresses before money goes there."
    limits = one.detailed_vault_limits
    if limits is None:
        yield f"  Limit:       {one.limit_error}"
        return
    words = bounds(per_cycle=limits.per_cycle, period=limits.cycle_period, day=limits.cycle_day)
    left = f": {limits.unused} BTC left until {until(limits.next_reset)}" if limits.per_cycle else ""
    yield f"  Limit:       at most {limits.limit} BTC {words}{left}"


def _state(signer: "VaultSigner") -> str:
    """What keeps a signer from signing, or may, in brackets."""
    key = None if signer.key_state == "active" else f"key {signer.key_state}"
    role = "may not approve" if signer.may_approve is False else None
    why = ", ".join(filter(None, (key, role, "device to be checked" if signer.check_due else None)))
    return f" ({why})" if why else ""


@vault.command("create")
@click.argument("name")
@signatures_option(required=True, help="How many must sign.")
@signer_option(required=True, help="E-mail address, name or id; again for each.")
@click.option("--limit", required=True, type=Amount(), help="What is paid at most, like 1.5BTC.")
@per_cycle_option
@cycle_option(default="month", help="The cycle of a limit per cycle.")
@day_option(default=1, help="When a cycle begins; of a week, 1 is Monday.")
@asking_in_workspace
def create_command(
    access: Access,
    name: str,
    m: int,
    signers: tuple[str, ...],
    limit: int,
    per_cycle: bool | None,
    cycle: str,
    day: int,
) -> None:
    """Create a vault. Its signers and how many must sign are fixed for ever."""
    members = _signers(access, signers)
    request = access.request(
        access.client.create_wallet,
        name=name,
        network=access.workspace.network,
        m=m,
        signers=[member.uuid for member in members],
        transaction_limit=btc(limit),
        per_cycle=per_cycle is True,
        cycle_period=CYCLES[cycle],
        cycle_day=day,
    )
    where = access.workspace
    aside(f"Vault '{request.name}' in {where.words}, on {where.chain}")
    aside(f"  Any {m} of these {len(members)} can spend from it; that never changes:")
    for member in members:
        aside(f"    {full_name(member)} <{member.email}>")
    words = bounds(per_cycle=request.per_cycle, period=request.cycle_period, day=day)
    aside(f"  Limit: at most {amount(limit)} {words}")
    access.confirm("Create this vault?")
    made = access.make(access.client.create_wallet, request)
    code = access.client.vault_export(workspace_id=access.workspace_id, vault_id=made.id).verification_code
    give(
        {**made.model_dump(mode="json", by_alias=True), "verification_code": code},
        f"Vault '{made.name}' {made.id} is created. Verification code: {code}",
        *(f"  Note: {warning}" for warning in made.warnings or ()),
        f"  Before money goes there, each signer runs signerd pin {made.id} and compares the code.",
    )


def _signers(access: Access, given: tuple[str, ...]) -> "list[Member]":
    members = members_of(access, given)
    for member in members:
        if not member.can_sign:
            fail(
                f"{member.email} has no device registered on this network",
                "The member runs signerd register first.",
                Exit.NOT_DECIDED,
            )
    return members


@vault.command("replace")
@given_vault
@click.argument(
    "name", metavar="[NAME]", required=False, help="Of the new vault. Default: the next free one, as Cold 2."
)
@signer_option(
    help="E-mail address, name or id; again for each. Default: the same people, with their active keys."
)
@signatures_option(help="How many must sign. Default: as many as now.")
@asking_in_workspace
def replace_command(
    access: Access, given: str, name: str | None, signers: tuple[str, ...], m: int | None
) -> None:
    """Put a new vault in the place of one. Another manager of the workspace has to confirm it."""
    old = vault_of(access, given)
    if old.replaced_by is not None:
        fail(
            f"the vault '{old.name}' is replaced already, by {old.replaced_by}",
            f"custody vault replace {old.replaced_by}",
            Exit.NOT_DECIDED,
        )
    name = name or next_name(
        old.name, (one.name for one in access.client.vault_names(workspace_id=access.workspace_id))
    )
    same = tuple(signer.user_id for signer in old.signers)
    members = _signers(access, signers or same)
    quorum = {"m": m or old.m, "signers": [member.uuid for member in members]}
    request = access.request(access.client.replace_vault, vault_id=old.id, name=name, **quorum)
    aside(f"Vault '{name}' in the place of '{old.name}' {old.id}")
    aside(f"  Any {request.m} of these {len(members)} can spend from it:")
    for member in members:
        is_new = "" if str(member.uuid) in same else ", new"
        aside(f"    {full_name(member)} <{member.email}>{is_new}")
    aside("  Its coins then move there alone, beside every limit. Unsigned payments are cancelled.")
    for entry in access.client.whitelist_addresses(workspace_id=access.workspace_id, leads_to=old.id):
        aside(f"  In the address book '{entry.name}' leads to the old vault: {entry.address}")
    make_or_ask(access, access.client.replace_vault, request, f"The vault '{old.name}' is replaced.")


@vault.command("sweep")
@given_vault
@click.option("--fee-rate", metavar="SAT/VB", help="In sat/vB. Default: the platform's priority.")
@asking_in_workspace
def sweep_command(access: Access, given: str, fee_rate: str | None) -> None:
    """Propose to move what is free of a replaced vault into the one in its place."""
    old = vault_of(access, given)
    free = amount(old.confirmed_sats - old.locked_sats)
    aside(f"The vault '{old.name}' {old.id}: at most {free} are free. What is set aside stays.")
    access.confirm(f"Propose to move them to {old.replaced_by or 'its replacement'}?")
    done = access.make(access.client.sweep_vault, vault_id=old.id, fee_rate=fee_rate)
    stays = f"{amount(done.set_aside_sats)} that are set aside stay: custody vault coins {old.id[:8]}"
    proposed = (f"Proposed: {psbt_id}" for psbt_id in done.psbt_ids)
    give(done, *proposed, *([stays] if done.set_aside_sats else ()))


@vault.command("approvers")
@given_vault
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="Its name or id: one of its members approves.",
)
@click.option(
    "--member", "members", multiple=True, metavar="MEMBER", help="E-mail address, name or id: approves."
)
@click.option("--nobody", is_flag=True, help="It has no named approver any more.")
@asking_in_workspace
def approvers_command(
    access: Access, given: str, roles: tuple[str, ...], members: tuple[str, ...], nobody: bool
) -> None:
    """Show of whom one approval has to come, or set it: two at most, each a role or a member."""
    if nobody and (roles or members):
        raise click.UsageError("--nobody stands alone.")
    one = vault_of(access, given)
    now = access.client.vault_controls(access.workspace_id, one.id)
    if not (nobody or roles or members):
        asked = [f"  {foreign(each.words)}" for each in now.named_approvers]
        each = f"One approval of the vault '{one.name}' has to come from each of:"
        give(now, each if asked else f"The vault '{one.name}' has no named approver.", *asked)
        return
    request = access.request(
        access.client.update_vault_controls,
        vault_id=one.id,
        only_address_book=now.only_address_book,
        maker_may_approve=now.maker_may_approve,
        approvers=[
            *(f"role:{role_of(access, each).role_id}" for each in roles),
            *(f"user:{each.uuid}" for each in (members_of(access, members) if members else ())),
        ],
    )
    access.confirm(f"Change of whom approvals of the vault '{one.name}' have to come?")
    make_or_ask(access, access.client.update_vault_controls, request, "It is changed.")


@vault.command("freeze")
@given_vault
@click.option("--reason", help="Why, as the audit log has it.")
@asking_in_workspace
def freeze_command(access: Access, given: str, reason: str | None) -> None:
    """Stop all payments from a vault at once. Two people are needed to undo it."""
    one = vault_of(access, given)
    aside(f"The vault '{one.name}' {one.id}: nothing is proposed, signed or sent while it is frozen.")
    access.confirm("Freeze it?")
    done = access.make(access.client.freeze_vault, vault_id=one.id, reason=reason)
    give(done, *_stopped(one.name, done))


@vault.command("unfreeze")
@given_vault
@asking_in_workspace
def unfreeze_command(access: Access, given: str) -> None:
    """Unfreeze a vault: it takes effect when a second person does the same within a day."""
    one = vault_of(access, given)
    now = access.client.vault_controls(access.workspace_id, one.id)
    for line in _waiting(now):
        aside(line)
    access.confirm(f"Let the vault '{one.name}' go on?")
    done = access.make(access.client.unfreeze_vault, vault_id=one.id)
    give(done, *_stopped(one.name, done))


def _stopped(name: str, now: "VaultControls") -> "Iterator[str]":
    if not now.is_frozen:
        yield f"The vault '{name}' goes on."
        return
    yield f"The vault '{name}' is frozen."
    if now.unfreeze_asked_at is not None:
        yield "  Payments go on once a second person unfreezes it, within a day: custody vault unfreeze."
    yield from _waiting(now)


def _waiting(now: "VaultControls") -> list[str]:
    return [
        *(f"  Approved, and not sent while it is frozen: {one}" for one in now.waiting_psbt_ids),
        *(f"  On the network already, where nothing stops it: {one}" for one in now.on_network_psbt_ids),
    ]
