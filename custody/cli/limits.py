"""``custody limit list`` and ``set``: the limits of vaults, and of each member who holds a role."""

from typing import TYPE_CHECKING

import click

from custody.cli.access import Access, asking_in_workspace, in_workspace
from custody.cli.changes import make_or_ask
from custody.cli.common import Amount, fail, wants_json
from custody.cli.members import role_of
from custody.cli.vaults import CYCLES, cycle_option, day_option, per_cycle_option, vault_of
from custody.common.terminal import Exit, answer, aside, say, table
from custody.common.text import ALL_BITCOIN, btc, limit_words, until

if TYPE_CHECKING:
    from custody.schemas.limits import VaultLimits
    from custody.schemas.roles import RoleDetails
    from custody.schemas.vaults import Vault


@click.group("limit")
def limit() -> None:
    """Limits on payments: from a vault, and by each member who holds a role."""


@limit.command("list")
@in_workspace
def list_command(access: Access) -> None:
    """List the limits of the vaults and of the roles, and what is used of them."""
    vaults = access.client.list_wallets(workspace_id=access.workspace_id)
    roles = access.client.roles(access.workspace_id)
    own = access.client.my_limits(access.workspace_id)
    if wants_json():
        shown = [
            {
                "vault_id": one.id,
                "name": one.name,
                "limits": one.detailed_vault_limits,
                "limit_error": one.limit_error,
            }
            for one in vaults
        ]
        answer({"vaults": shown, "roles": roles, "own": own})
        return
    table(("VAULT", "LIMIT", "LEFT", "UNTIL", "STOPPED"), [(*_of_vault(one), one.marks) for one in vaults])
    say()
    rows = [(role.name, str(role.members), _of_known(role)) for role in roles]
    table(("ROLE", "MEMBERS", "EACH MEMBER"), rows)
    left = "" if own.limit == ALL_BITCOIN else f" {own.unused} BTC left until {until(own.next_reset)}."
    say()
    say(f"You: {_of_role(own.limit, own.cycle_period, own.cycle_day)}.{left}")


def _of_vault(one: "Vault") -> tuple[str, ...]:
    limits = one.detailed_vault_limits
    if limits is None:
        return one.name, "not known now", "", ""
    left = (f"{limits.unused} BTC", until(limits.next_reset)) if limits.per_cycle else ("", "")
    return one.name, _of_limits(limits), *left


def _of_limits(limits: "VaultLimits") -> str:
    return limit_words(
        limits.limit, period=limits.cycle_period, day=limits.cycle_day, per_cycle=limits.per_cycle
    )


def _of_role(limit: str, period: str, day: int) -> str:
    return limit_words(limit, period=period, day=day, is_role=True)


def _of_known(role: "RoleDetails") -> str:
    if role.transaction_limit is None or role.cycle_period is None or role.cycle_day is None:
        return "not known now"
    return _of_role(role.transaction_limit, role.cycle_period, role.cycle_day)


@limit.command("set")
@click.argument("new", metavar="AMOUNT", type=Amount())
@click.option("--vault", help="Of this vault: its id, the beginning of it, or its name.")
@click.option("--role", help="Of each member who holds this role.")
@per_cycle_option
@cycle_option(help="Of a sum. Default: as it is.")
@day_option(help="When a cycle begins; of a week, 1 is Monday. Default: as it is.")
@asking_in_workspace
def set_command(
    access: Access,
    new: int,
    vault: str | None,
    role: str | None,
    per_cycle: bool | None,
    cycle: str | None,
    day: int | None,
) -> None:
    """Set the limit of a vault, or of a role.

    A vault's limit is for each payment, or for all payments of a week or month together. A role's limit is
    for all payments of each member together.
    """
    if (vault is None) == (role is None):
        fail("name either a vault or a role", "Like custody limit set 1.5BTC --vault Reserve.", Exit.USAGE)
    if role is not None and per_cycle is False:
        fail("a role's limit is for all payments together", "Leave --per-payment out.", Exit.USAGE)
    # A role's limit is always of a sum.
    of_sum = None if vault is None else per_cycle
    given = {"cycle_period": CYCLES.get(cycle or ""), "cycle_day": day, "per_cycle": of_sum}
    changed = {name: value for name, value in given.items() if value is not None}
    if vault is not None:
        _set_vault(access, vault_of(access, vault), btc(new), changed)
    else:
        _set_role(access, role_of(access, role or ""), btc(new), changed)


def _set_vault(access: Access, one: "Vault", limit: str, changed: dict[str, str | int]) -> None:
    now, update = one.detailed_vault_limits, access.client.update_vault
    if now is None:
        fail(one.limit_error or "the limit cannot be read", "Try again later.", Exit.PLATFORM)
    kept = {"cycle_period": now.cycle_period, "cycle_day": now.cycle_day, "per_cycle": now.per_cycle}
    wanted = kept | changed
    if not wanted["per_cycle"] and {"cycle_period", "cycle_day"} & changed.keys():
        fail(
            "a limit for each payment has no cycle",
            "Leave --cycle and --day out, or add --per-cycle.",
            Exit.USAGE,
        )
    request = access.request(update, vault_id=one.id, transaction_limit=limit, **wanted)
    period, starts, is_sum = request.cycle_period, request.cycle_day, request.per_cycle is True
    then = limit_words(limit, period=period, day=starts, per_cycle=is_sum)
    _confirm(access, f"the vault '{one.name}'", _of_limits(now), then)
    make_or_ask(access, update, request, f"The limit is {limit} BTC.")


def _set_role(access: Access, role: "RoleDetails", limit: str, changed: dict[str, str | int]) -> None:
    update = access.client.update_role_policies
    kept = {"cycle_period": role.cycle_period, "cycle_day": role.cycle_day}
    request = access.request(update, role_id=role.role_id, new_transaction_limit=limit, **kept | changed)
    whose = f"each of the {role.members} who hold the role {role.name}"
    _confirm(access, whose, _of_known(role), _of_role(limit, request.cycle_period, request.cycle_day))
    make_or_ask(access, update, request, f"The limit is {limit} BTC.")


def _confirm(access: Access, whose: str, before: str, after: str) -> None:
    aside(f"The limit of {whose}:")
    aside(f"  now  {before}")
    aside(f"  then {after}")
    access.confirm("Set this limit?")
