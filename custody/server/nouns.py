"""Imports every noun, so that each declared call has the function that makes it (`custody.server.calls`)."""

from custody.server import (  # noqa: F401
    address_book,
    changes,
    forwards,
    identity_providers,
    invitations,
    key_revocation,
    keys,
    limits,
    logs,
    mail_settings,
    members,
    onboarding,
    proofs,
    purchases,
    roles,
    second_person_rule,
    sending,
    service_accounts,
    users,
    vault_controls,
    vault_replacement,
    vaults,
    webhooks,
    workspaces,
)
from custody.server.history import coins, movements  # noqa: F401
from custody.server.proposals import ending, paying, reading, signing  # noqa: F401
from custody.server.sign_in import accounts, passwords, second_factor, sessions, signing_in  # noqa: F401
from custody.server.tokens import calling, creating, listing  # noqa: F401
