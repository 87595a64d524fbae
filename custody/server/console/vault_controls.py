"""What bounds a vault: its limit, the address book, who approves, a freeze; a signer's key that is lost."""

from datetime import timedelta
from typing import Any

from custody.common.text import until
from custody.schemas import vaults as wire
from custody.schemas.call import PermissionName
from custody.schemas.keys import REVOKE_KEY
from custody.schemas.limits import UPDATE_VAULT
from custody.schemas.roles import ROLES
from custody.schemas.users import MEMBERS
from custody.schemas.webhooks import WEBHOOKS
from custody.server.console.context import PageContext
from custody.server.console.limits import vault_limit
from custody.server.console.rendering import member_words, sats_of
from custody.server.console.reviews import Facts, Review, in_force_mark, shown_mark
from custody.server.console.table import form, template_view
from custody.server.console.vaults import names_of, vault_here
from custody.server.errors import NotFound, StateConflict
from custody.server.rules.limits import Cycle, unused_of
from custody.server.vaults.controls import CONTROLS
from multisig import Sats, format_btc, parse_btc


def _controls(page: PageContext) -> wire.VaultControls:
    return page.read(wire.VAULT_CONTROLS, vault_id=page.path_param("vault_id"))


# A signer's signerd keeps what was refused while the vault was frozen, and submits it afterwards.
_SIGNED_MEANWHILE = (
    "Its pending proposals may then get signatures that signers have already made, and are sent as well."
)


def _limit(page: PageContext) -> dict[str, Any] | None:
    """As the form sends it. None where it is not known."""
    now = vault_here(page).detailed_vault_limits
    if now is None:
        return None
    cycle = {"cycle_period": now.cycle_period, "cycle_day": now.cycle_day}
    return {"transaction_limit": now.limit, "per_cycle": now.per_cycle, **cycle}


limits = template_view(
    "vaults/limits.html", vault=vault_here, in_force_mark=lambda page: in_force_mark(page, _limit(page))
)


def _used(page: PageContext) -> Facts:
    """What counts already in the sum that is to be the limit."""
    now, typed = vault_here(page).detailed_vault_limits, page.typed(UPDATE_VAULT, **vault_limit(page))
    if now is None or not typed["per_cycle"]:
        return ()
    words = "What was paid since the beginning of that week or month counts."
    if (now.cycle_period, now.cycle_day) == (typed["cycle_period"], typed["cycle_day"]):
        since = Cycle(now.cycle_period, now.cycle_day).start(now.next_reset - timedelta(days=1))
        left = Sats(unused_of(parse_btc(typed["transaction_limit"]), sats_of(now.used)))
        words = (
            f"{now.used} BTC is used already since {until(since)}: "
            f"{format_btc(left)} BTC left until {until(now.next_reset)}"
        )
    return (("Of this sum", words),)


def _warning_of_limit(page: PageContext) -> str:
    now = vault_here(page).detailed_vault_limits
    is_sum = now is not None and not now.per_cycle and vault_limit(page)["per_cycle"]
    ends = " The limit of each payment ends." if is_sum else ""
    return f"It applies from the next payment on.{ends} Waiting proposals stay."


def _in_force(page: PageContext) -> dict[str, Any]:
    """As the form sends it."""
    now = _controls(page)
    in_force = now.model_dump(include=set(CONTROLS)) | {
        "approvers": [each.key for each in now.named_approvers]
    }
    return in_force | {"screening_webhook_id": now.screening_webhook_id or wire.NO_SCREENING}


def _approvers(page: PageContext) -> list[tuple[str, str]]:
    """Of whom an approval may be asked: each key, and its words."""
    roles = [role for role in page.read(ROLES) if "PAYMENT_APPROVE" in {each.rule_name for each in role.perm}]
    people = names_of(page, vault_here(page))
    return [
        *((f"role:{role.role_id}", f"The role {role.name}") for role in roles),
        *((f"user:{user_id}", name) for user_id, name in people.items()),
    ]


controls = template_view(
    "vaults/controls.html", vault=vault_here, controls=_in_force, approvers=_approvers,
    now=_controls,
    webhooks=lambda page: [
        (wire.NO_SCREENING, "No program"), *((each.webhook_id, each.url) for each in page.read(WEBHOOKS))
    ],
    in_force_mark=lambda page: in_force_mark(page, _in_force(page)),
)  # fmt: skip


def _who_may_unfreeze(page: PageContext) -> list[str]:
    """By name: all of them for a person who may see the members, else those among the vault's signers. None
    where it is not frozen.
    """
    if not _controls(page).is_frozen:
        return []
    if page.workspace.may(*MEMBERS.permissions):
        return [
            member_words(each)
            for each in page.read(MEMBERS)
            if any(permission.rule_name == PermissionName.PAYMENT_APPROVE for permission in each.role.perm)
        ]
    shown = vault_here(page)
    names = names_of(page, shown)
    return [names[each.user_id] for each in shown.signers if each.may_approve]


freeze_page = template_view(
    "vaults/freeze.html", vault=vault_here, controls=_controls, able=_who_may_unfreeze,
    signed_meanwhile=_SIGNED_MEANWHILE,
)  # fmt: skip


def _is_second(page: PageContext) -> bool:
    return _controls(page).unfreeze_asked_by not in (None, str(page.user.uuid))


def _unfreezing(page: PageContext) -> Facts:
    """Bound: of two who looked at the same time, the second learns that it is they. Raises StateConflict."""
    in_force = _controls(page)
    if not in_force.is_frozen:
        raise StateConflict("The vault is not frozen.")
    return (
        ("Your request is", "the second: it unfreezes the vault" if _is_second(page) else "the first of two"),
        ("Payments that are sent then", str(len(in_force.waiting_psbt_ids))),
    )


def review_unfreeze(page: PageContext) -> Review:
    facts, is_second = _unfreezing(page), _is_second(page)
    agrees = "" if is_second else "Another member who may approve has to agree within a day. "
    return Review(
        f"Unfreeze {vault_here(page).name}",
        facts,
        "Unfreeze it" if is_second else "Ask to unfreeze it",
        f"{agrees}{_SIGNED_MEANWHILE}",
        pinned=(shown_mark(facts),),
    )


def _after_unfreeze(now: wire.VaultControls) -> str:
    if now.is_frozen:
        return "You asked to unfreeze it: another member has to agree within a day."
    return "The vault is no longer frozen."


# --- a signer's key -----------------------------------------------------------------------------------------


def _signer_name(page: PageContext) -> str:
    """Raises NotFound for a key that no signer of the vault has."""
    shown = vault_here(page)
    for each in shown.signers:
        if each.key_id == page.path_param("key_id"):
            return names_of(page, shown)[each.user_id]
    raise NotFound("No signer of this vault has that key.")


lost_page = template_view("vaults/lost.html", vault=vault_here, signer_name=_signer_name)


def _lost(page: PageContext) -> dict[str, Any]:
    """``workspace_id``: in which a second person confirms it, where one has to."""
    asks = page.form.ticked("ask_second_person")
    return {"reason": "lost", "workspace_id": page.workspace.id if asks else None}


_VAULT = "/w/{workspace_id:int}/vaults/{vault_id}"
ROWS = (
    form(
        f"{_VAULT}/limits", UPDATE_VAULT, limits, "The limit is changed.", asks="Change the limit",
        warns=_warning_of_limit, beside=_used, in_force=_limit, given=vault_limit, has_page=True,
    ),
    form(
        f"{_VAULT}/controls", wire.UPDATE_VAULT_CONTROLS, controls, "The controls are changed.",
        asks="Change the controls", in_force=_in_force,
        warns="They apply to the next proposal, and all but the screening to the next approval of those that "
        "wait.", has_page=True,
    ),
    form(
        f"{_VAULT}/freeze", wire.FREEZE_VAULT, freeze_page, "The vault is frozen.", asks="Freeze it now",
        optional=("reason",),
        warns="At once nothing is proposed, approved or sent from it. Two members unfreeze it, never one "
        "alone. What is on the network stays there.", has_page=True,
    ),
    form(
        f"{_VAULT}/unfreeze", wire.UNFREEZE_VAULT, freeze_page, _after_unfreeze, review=review_unfreeze,
        bound=_unfreezing, steps_up=True,
    ),
    form(
        f"{_VAULT}/signers/{{key_id}}/lost", REVOKE_KEY, lost_page, "The key is marked as lost.",
        to="vaults/{vault_id}", asks="Mark it as lost", given=_lost,
        beside=lambda page: (("Signer", _signer_name(page)),), has_page=True,
        warns="It approves nothing any more, in any vault, and its approvals of pending proposals no longer "
        "count. This is final: a device that is found again is registered as a new key, for new vaults.",
    ),
)  # fmt: skip
