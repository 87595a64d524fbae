"""A pending change in words: its title, and each field of the call."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final

from custody.common.text import limit_words, minute, network_words
from custody.schemas.call import PERMISSION_WORDS, Call, PermissionName
from custody.schemas.calls import CONFIRMABLE
from custody.schemas.changes import Change, ChangeStatus
from custody.schemas.limits import UPDATE_VAULT
from custody.schemas.vaults import CREATE_WALLET
from custody.schemas.webhooks import EVERY_KIND

# In BTC; and the fields that the sentence about a limit includes.
_AMOUNTS: Final = ("transaction_limit", "new_transaction_limit")
BESIDE_AMOUNT: Final = frozenset({"cycle_period", "cycle_day", "per_cycle"})

_OF_VAULTS: Final = frozenset({CREATE_WALLET.path, UPDATE_VAULT.path})

# By the path of the call that waits.
TITLES: Final[Mapping[str, str]] = {path: call.second_person for path, call in CONFIRMABLE.items()}
# Of those whose own names do not say it.
FIELDS: Final[Mapping[str, str]] = {
    "role_uid": "Role",
    "confirming_role_id": "Role whose members confirm",
    "user_uuid": "Person",
    "rule_name": "Permission",
    "transaction_limit": "Limit",
    "new_transaction_limit": "Limit of each member",
    "only_address_book": "It pays only addresses of the address book",
    "maker_may_approve": "Who proposed a payment may approve it, too",
    "screening_webhook_id": "Program that screens proposals",
    "screening_seconds": "Seconds until it has to decide",
    "screening_fails_open": "A proposal that it does not decide in time goes on",
    "approvers": "One approval has to come from each of",
    "invited_email": "E-mail address",
    "uid": "Entry of the address book",
    "resembles": "Only resembles",
    "url": "Address on the Internet",
    "kinds": "Events",
    "enabled": "Switched on",
    "rotate_secret": "Make a new secret",
    "service_account_id": "Program",
    "expires_at": "Ends",
    "is_on": "Switched on",
    "cooling_off_hours": "Hours of cooling off",
    "is_required": "Members have to use it",
    "force": "Even where a vault is left with too few signers",
    "key_check_months": "Months between key checks",
    "m": "Signatures needed",
    "psbt_id": "Proposal",
    "overlap_hours": "Hours that the current secret stays valid",
    "with_coins": "Its confirmed coins are named and signed for",
}
# A box that nobody ticked.
_UNFORCED: Final[Mapping[str, bool]] = {"force": False, "rotate_secret": False, "release_coins": False}
# Fields that hold the id of a record.
_RECORDS: Final[Mapping[str, str]] = {
    "role_id": "a role",
    "role_uid": "a role",
    "confirming_role_id": "a role",
    "user_uuid": "a member",
    "signers": "members",
    "approvers": "a role or a member",
    "vault_id": "a vault",
    "uid": "an entry",
    "webhook_id": "a webhook",
    "screening_webhook_id": "a webhook",
    "service_account_id": "a program",
    "key_id": "a key",
}
# The caller's workspace and organisation: the change's workspace is shown apart.
UNSAID: Final = frozenset(
    {"workspace_id", "workspace_context", "org_id", "creator_workspace_id", "creator_org_uuid"}
)


def title_of(change: Change) -> str:
    return TITLES.get(change.path, "A change")


def open_words(change: Change, now: datetime) -> str:
    """When it can be confirmed."""
    ends = f"can be confirmed until {minute(change.expires_at)}"
    if now < change.not_before:
        return f"cools off until {minute(change.not_before)}, then {ends}"
    return f"has cooled off, {ends}" if change.not_before > change.asked_at else ends


def question_of(call: Call[Any, Any]) -> str:
    """Whether the call is to be made, for the person who asks for it: ``Delete a role?``."""
    words = call.second_person or call.attempt
    return f"{words[:1].upper()}{words[1:]}?"


def kind_words(kind: str) -> str:
    """``deposit.seen`` in words; kinds of a newer platform, too."""
    about, _, what = kind.partition(".")
    return "all events" if kind == EVERY_KIND else f"{about} {what}".replace("_", " ").strip()


def field_words(field: str) -> str:
    return FIELDS.get(field) or field.removesuffix("_id").replace("_", " ").capitalize()


def facts_of(change: Change) -> list[tuple[str, str]]:
    said = [
        (field_words(field), _beside_now(change, field, value))
        for field, value in change.body.items()
        if field not in UNSAID and field not in BESIDE_AMOUNT and value is not _UNFORCED.get(field)
    ]
    if "ends" in change.in_force:
        said.append(("Cancelled", _plain_words(change.in_force["ends"] or "no payment")))
    return [("Workspace", f"{change.workspace_name}, on {change.chain}"), *said]


def _beside_now(change: Change, field: str, value: Any) -> str:
    """The new value, with the one in force where the change includes it."""
    is_limit = field in _AMOUNTS
    words = _limit_words(change, change.body) if is_limit else _words(change, field, value)
    if field not in change.in_force:
        return words
    # Of a record, its name is in force.
    shown = _plain_words if field in _RECORDS else partial(_words, change, field)
    now = _limit_words(change, change.in_force) if is_limit else shown(change.in_force[field])
    if change.status != ChangeStatus.PENDING:
        return f"before {now}, then {words}"
    return f"{words}, as now" if words == now else f"now {now}, from then on {words}"


def nameless_field(change: Change) -> str | None:
    """The field of a record that no longer exists; None where all that it names is there."""
    return next((name for name in change.body if name in _RECORDS and name not in change.names), None)


def _limit_words(change: Change, limit: Mapping[str, Any]) -> str:
    """The whole limit, of a body or of what is in force: an amount alone does not say what it bounds."""
    given = next(f"{Decimal(str(limit[field])):.8f}" for field in _AMOUNTS if field in limit)
    is_vaults = change.path in _OF_VAULTS
    # Where the change leaves it out it stays; a change that has ended does not say what was in force.
    per_cycle = limit.get("per_cycle", change.in_force.get("per_cycle")) if is_vaults else True
    if per_cycle is None:
        return f"at most {given} BTC"
    cycle = {"period": limit["cycle_period"], "day": limit["cycle_day"]}
    return limit_words(given, per_cycle=per_cycle, is_role=not is_vaults, **cycle)


def _words(change: Change, field: str, value: Any) -> str:
    if field in _RECORDS:
        return change.names.get(field, f"{_RECORDS[field]} that no longer exists")
    if field in {"expires_at", "until"}:
        return minute(datetime.fromisoformat(value))
    if field == "kinds":
        return "; ".join(map(kind_words, value)) or "none"
    if isinstance(value, list):
        return "; ".join(_words(change, field, each) for each in value) or "none"
    return network_words(value) if field == "network" else _plain_words(value)


def _plain_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in set(PermissionName):
        return PERMISSION_WORDS[PermissionName(value)]
    return str(value)
