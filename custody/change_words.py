"""What a pending change would do, in words: its title, and each thing that it names."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from custody.schemas.changes import Change
from custody.schemas.users import PermissionName
from custody.text import network_words

PERMISSION_WORDS: Final[Mapping[PermissionName, str]] = MappingProxyType(
    {
        PermissionName.MANAGE_WORKSPACE: "Manage the workspace, its vaults and tokens",
        PermissionName.PAYMENT_INIT: "Forward own money, sign, keep the address book",
        PermissionName.PAYMENT_APPROVE: "Approve, freeze and unfreeze",
        PermissionName.VIEW_BALANCES: "See balances and payments",
        PermissionName.MANAGE_ROLE: "Manage roles and their limits",
        PermissionName.MANAGE_USERS: "Invite, move and remove members",
        PermissionName.VIEW_LOGS: "Read the audit log",
    }
)
# In BTC.
_AMOUNTS: Final = frozenset({"transaction_limit", "new_transaction_limit"})
_CYCLES: Final = {"W": "each week", "M": "each month"}

# By the path of the call that waits.
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"/api/v1/{name}": words
        for name, words in {
            "add-perm-to-role": "Add a permission to a role",
            "remove-perm-from-role": "Take a permission from a role",
            "create-role": "Make a role",
            "update-role": "Change a role's name",
            "delete-role": "Delete a role",
            "update-role-policies": "Change a role's spending limit",
            "update-vault": "Change a vault's spending limit",
            "update-vault-controls": "Change what bounds a vault",
            "revoke-key": "Revoke a signing key",
            "invite-to-workspace": "Invite a person",
            "add-workspace-to-user": "Add a colleague to the workspace",
            "change-user-role": "Give a member another role",
            "remove-user-from-workspace": "Remove a member",
            "create-workspace": "Make a workspace",
            "add-whitelist-address": "Add an address to the address book",
            "rename-whitelist-address": "Rename an address of the address book",
            "remove-whitelist-address": "Remove an address from the address book",
            "create-webhook": "Make a webhook",
            "update-webhook": "Change a webhook",
            "delete-webhook": "Delete a webhook",
            "create-service-account": "Make an account for a program",
            "update-service-account": "Change a program's account",
            "update-second-person-rule": "Change the rule of the second person",
            "start-evacuation": "Evacuate exposed vaults",
            "update-identity-provider": "Set the organisation's identity provider",
            "remove-identity-provider": "Remove the organisation's identity provider",
        }.items()
    }
)
# What a field of such a call is called.
FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "name": "Name",
        "description": "Description",
        "role_id": "Role",
        "role_uid": "Role",
        "role_name": "Role whose members confirm",
        "user_uuid": "Person",
        "vault_id": "Vault",
        "rule_name": "Permission",
        "permissions": "Permissions",
        "rights": "Rights",
        "networks": "Networks",
        "transaction_limit": "Limit in BTC",
        "new_transaction_limit": "Limit in BTC",
        "cycle_period": "The sum begins anew",
        "cycle_day": "On day",
        "only_address_book": "Pay addresses of the book alone",
        "maker_may_approve": "Whoever proposed may approve",
        "invited_email": "E-mail address",
        "address": "Address",
        "uid": "Entry of the address book",
        "url": "Address on the Internet",
        "kinds": "Events",
        "enabled": "Switched on",
        "rotate_secret": "Make a new secret",
        "webhook_id": "Webhook",
        "service_account_id": "Program",
        "expires_at": "Ends",
        "is_on": "Switched on",
        "key_id": "Key",
        "reason": "Why",
        "cooling_off_hours": "Hours of cooling off",
        "issuer": "Issuer",
        "client_id": "Client",
        "is_required": "Members have to use it",
        "network": "Network",
        "force": "Even where a vault keeps too few signers",
        "exposed_keys": "Exposed keys",
        "advisory_id": "Advisory number",
        "substitutes": "Who takes their place",
        "priority": "Fee of the sweeps",
        "plan_hash": "Plan",
    }
)
# What the fields mean that name a record.
_RECORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "role_id": "a role",
        "role_uid": "a role",
        "user_uuid": "a member",
        "vault_id": "a vault",
        "uid": "an entry",
        "webhook_id": "a webhook",
        "service_account_id": "a program",
        "key_id": "a key",
    }
)
# Who asks from where: the change's workspace is told beside it.
UNSAID: Final = frozenset(
    {"workspace_id", "workspace_context", "org_id", "creator_workspace_id", "creator_org_uuid"}
)


def title_of(change: Change) -> str:
    return TITLES.get(change.path, "A change")


def facts_of(change: Change) -> list[tuple[str, str]]:
    said = [
        (FIELDS.get(field, field.replace("_", " ")), _beside_now(change, field, value))
        for field, value in change.body.items()
        if field not in UNSAID
    ]
    return [("Workspace", f"{change.workspace_name}, on {network_words(change.network)}"), *said]


def _beside_now(change: Change, field: str, value: Any) -> str:
    """What would be, beside what is in force, where the change tells that."""
    words = _words(change, field, value)
    if field not in change.in_force:
        return words
    now = _words(change, field, change.in_force[field])
    return f"{words}, as now" if words == now else f"now {now}, from then on {words}"


def names_nothing(change: Change) -> bool:
    """Whether a record that it names is not there any more."""
    return any(field in _RECORDS and field not in change.names for field in change.body)


def _words(change: Change, field: str, value: Any) -> str:
    if field in _RECORDS:
        return change.names.get(field, f"{_RECORDS[field]} that is not there any more")
    if isinstance(value, dict):
        # By exposed key, the member who takes its place.
        return (
            "; ".join(f"{key}: member {member}" for key, member in value.items())
            or "whom the platform proposes"
        )
    if isinstance(value, list):
        return "; ".join(_words(change, field, each) for each in value) or "none"
    return _plain_words(field, value)


def _plain_words(field: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field in _AMOUNTS:
        return f"{Decimal(str(value)):.8f}"
    if field == "cycle_period":
        return _CYCLES.get(str(value), str(value))
    if value in set(PermissionName):
        return PERMISSION_WORDS[PermissionName(value)]
    return str(value)
