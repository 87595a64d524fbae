"""Who may call what, where the specification does not say it.

The table of endpoints enforces it; this is the second opinion. A new endpoint gets its line here too.
"""

MANAGE_WORKSPACE, PAYMENT_INIT, PAYMENT_APPROVE, VIEW_BALANCES, MANAGE_ROLE, MANAGE_USERS, VIEW_LOGS = (
    "MANAGE_WORKSPACE", "PAYMENT_INIT", "PAYMENT_APPROVE", "VIEW_BALANCES", "MANAGE_ROLE", "MANAGE_USERS",
    "VIEW_LOGS"
)  # fmt: skip
OPEN, SIGNED_IN, ANY_MEMBER = "open", "signed in", "any member"
WHO_PAYS_OR_LOOKS = {MANAGE_WORKSPACE, PAYMENT_APPROVE, PAYMENT_INIT, VIEW_BALANCES}
WHO_SEES_VAULTS = {MANAGE_WORKSPACE, PAYMENT_APPROVE, VIEW_BALANCES}
WHO_KEEPS_ADDRESSES = {MANAGE_WORKSPACE, PAYMENT_INIT}

PERMISSIONS: dict[str, set[str]] = {
    "GET /api/v1/get-users-from-workspace": {MANAGE_USERS},
    "POST /api/v1/change-user-role": {MANAGE_USERS},
    "POST /api/v1/remove-user-from-workspace": {MANAGE_USERS},
    "POST /api/v1/revoke-invite": {MANAGE_USERS},
    "POST /api/v1/create-workspace": {MANAGE_WORKSPACE},
    "POST /api/v1/update-workspace": {MANAGE_WORKSPACE},
    "POST /api/v1/create_wallet": {MANAGE_WORKSPACE},
    "GET /api/v1/get-roles-and-perms-detailed": {MANAGE_ROLE, MANAGE_USERS, MANAGE_WORKSPACE},
    "POST /api/v1/create-role": {MANAGE_ROLE},
    "POST /api/v1/update-role": {MANAGE_ROLE},
    "POST /api/v1/delete-role": {MANAGE_ROLE},
    "POST /api/v1/add-perm-to-role": {MANAGE_ROLE},
    "POST /api/v1/remove-perm-from-role": {MANAGE_ROLE},
    "GET /api/v1/get-role-limit": {MANAGE_ROLE},
    # A forward names its vault, and whoever proposes a transfer follows it.
    "GET /api/v1/list-wallets": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/vault-names": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/contract-calls": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/contract": WHO_SEES_VAULTS,
    "GET /api/v1/get-tokens": WHO_SEES_VAULTS,
    "GET /api/v1/token-history": WHO_SEES_VAULTS,
    "GET /api/v1/vault-export": WHO_SEES_VAULTS,
    "GET /api/v1/get-vault-limits": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/check-vault-limit": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/vault-controls": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/max-send": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/workspace-contracts": {MANAGE_WORKSPACE, PAYMENT_APPROVE, VIEW_BALANCES},
    "POST /api/v1/preview-psbt": {MANAGE_WORKSPACE},
    "POST /api/v1/preview-forward": {PAYMENT_INIT},
    "POST /api/v1/create-proof": {MANAGE_WORKSPACE},
    "GET /api/v1/proof": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/vault-history": WHO_PAYS_OR_LOOKS,
    "GET /api/v1/vault-coins": WHO_PAYS_OR_LOOKS,
    "POST /api/v1/update-vault-controls": {MANAGE_WORKSPACE},
    "POST /api/v1/replace-vault": {MANAGE_WORKSPACE},
    "POST /api/v1/sweep-vault": {MANAGE_WORKSPACE},
    "POST /api/v1/freeze-vault": {PAYMENT_APPROVE},
    "POST /api/v1/unfreeze-vault": {PAYMENT_APPROVE},
    "POST /api/v1/update-second-person-rule": {MANAGE_WORKSPACE},
    "GET /api/v1/psbt": WHO_PAYS_OR_LOOKS,
    # PAYMENT_INIT for the caller's own forward alone:
    # tests/custody/server/service/proposals/test_forwarding.py.
    "POST /api/v1/cancel-psbt": {MANAGE_WORKSPACE, PAYMENT_INIT},
    "POST /api/v1/sign-psbt": {PAYMENT_APPROVE, PAYMENT_INIT},
    "GET /api/v1/get-whitelist-addresses": WHO_KEEPS_ADDRESSES,
    "POST /api/v1/add-whitelist-address": WHO_KEEPS_ADDRESSES,
    "POST /api/v1/rename-whitelist-address": WHO_KEEPS_ADDRESSES,
    "POST /api/v1/remove-whitelist-address": WHO_KEEPS_ADDRESSES,
    # A transfer takes PAYMENT_INIT, all else MANAGE_WORKSPACE:
    # tests/custody/server/service/tokens/test_calling.py.
    "POST /api/v1/call-contract": {MANAGE_WORKSPACE, PAYMENT_INIT},
    "POST /api/v1/add-to-contract-whitelist": {MANAGE_WORKSPACE},
    "POST /api/v1/remove-from-contract-whitelist": {MANAGE_WORKSPACE},
    "GET /api/v1/get-logs": {VIEW_LOGS},
    "GET /api/v1/webhooks": {MANAGE_WORKSPACE},
    "POST /api/v1/create-webhook": {MANAGE_WORKSPACE},
    "POST /api/v1/update-webhook": {MANAGE_WORKSPACE},
    "POST /api/v1/delete-webhook": {MANAGE_WORKSPACE},
    "GET /api/v1/webhook-deliveries": {MANAGE_WORKSPACE},
    "POST /api/v1/redeliver-webhook": {MANAGE_WORKSPACE},
    "POST /api/v1/test-webhook": {MANAGE_WORKSPACE},
    "GET /api/v1/service-accounts": {MANAGE_WORKSPACE, MANAGE_USERS},
    "POST /api/v1/create-service-account": {MANAGE_WORKSPACE},
    "POST /api/v1/update-service-account": {MANAGE_WORKSPACE},
    "POST /api/v1/issue-service-secret": {MANAGE_WORKSPACE},
    "POST /api/v1/revoke-service-account": {MANAGE_WORKSPACE, MANAGE_USERS},
    "POST /api/v1/update-identity-provider": {MANAGE_USERS},
    "POST /api/v1/update-identity-provider-secret": {MANAGE_USERS},
    "POST /api/v1/remove-identity-provider": {MANAGE_USERS},
    "GET /api/v1/identity-links": {MANAGE_USERS},
}
# What a service account may call, where its rights allow it (P67).
PROGRAMS = {
    "own-service-account", "list-wallets", "vault-names", "vault-export", "vault-controls", "max-send",
    "get-vault-limits", "check-vault-limit", "get-my-limits", "psbt", "get-whitelist-addresses",
    "get-workspace-whitelist", "get-tokens", "contract", "contracts", "workspace-contracts", "contract-calls",
    "vault-history", "vault-coins", "token-history", "webhook-deliveries", "get-logs",
    "export-audit-logs", "create-psbt", "preview-psbt", "cancel-psbt", "create-token",
    "call-contract", "create-proof", "proof",
    "contract-calls/resubmit", "add-to-contract-whitelist", "remove-from-contract-whitelist",
    "redeliver-webhook",
}  # fmt: skip
# What changes a workspace and never needs a second person: all else does (P56).
ALONE = {
    # What a vault's signers decide, and what stops something.
    "create-psbt", "preview-psbt", "cancel-psbt", "sign-psbt", "forward-to-vault", "preview-forward",
    "create-proof", "create-token", "call-contract", "contract-calls/resubmit",
    "add-to-contract-whitelist", "remove-from-contract-whitelist", "create_wallet", "freeze-vault",
    "unfreeze-vault", "sweep-vault",
    # People and programs: fewer of them, one's own, and secrets of what is there.
    "leave-workspace", "set-default-workspace", "revoke-invite", "unlink-identity", "revoke-service-account",
    "issue-service-secret", "update-identity-provider-secret",
    "update-workspace", "redeliver-webhook", "test-webhook",
    "request-change", "confirm-change", "decline-change",
}  # fmt: skip
# The handler asks for all seven.
OWNERS = {
    f"/api/v1/{name}"
    for name in (
        "update-second-person-rule", "update-identity-provider", "update-identity-provider-secret",
        "remove-identity-provider",
    )
}  # fmt: skip
WITHOUT_PERMISSION: dict[str, tuple[str, ...]] = {
    OPEN: (
        "POST /auth/register",
        "POST /auth/login",
        "POST /auth/otp-validate",
        "POST /auth/refresh",
        "POST /auth/request-password-reset",
        "POST /auth/reset-password",
        "POST /webhooks/purchases",
    ),
    SIGNED_IN: (
        "POST /auth/logout",
        "POST /auth/change-password",
        "POST /auth/two-factor",
        "POST /auth/totp/enrol",
        "POST /auth/totp/confirm",
        "GET /auth/sessions",
        "POST /auth/sessions/revoke",
        "GET /api/v1/own-service-account",
        "GET /api/v1/get-user-info",
        "POST /api/v1/update-user-info",
        "GET /api/v1/mail-settings",
        "POST /api/v1/update-mail-settings",
        "POST /api/v1/key-challenge",
        "POST /api/v1/register-key",
        "POST /api/v1/revoke-key",
        "GET /api/v1/keys",
        "GET /api/v1/signing-profile-address",
        "GET /api/v1/get-invites-pending",
        "GET /api/v1/accept-invite",
        "GET /api/v1/purchases",
        "POST /api/v1/onboarding-requests",
        "GET /api/v1/onboarding-requests",
        "POST /api/v1/onboarding-requests/{uid}/review",
    ),
    ANY_MEMBER: (
        "POST /api/v1/set-default-workspace",
        "POST /api/v1/leave-workspace",
        "GET /api/v1/get-my-limits",
        "GET /api/v1/second-person-rule",
        "GET /api/v1/identity-provider",
        # Another member's by MANAGE_USERS: tests/custody/server/web/test_identity.py.
        "POST /api/v1/unlink-identity",
        # The permission of the call that is asked for: tests/custody/server/web/test_second_person.py.
        "POST /api/v1/request-change",
        "GET /api/v1/changes",
        # The role of the organisation's rule.
        "POST /api/v1/confirm-change",
        "POST /api/v1/decline-change",
    ),
}
