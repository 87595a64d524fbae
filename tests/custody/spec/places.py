"""Where the platform shows the specification's records: a path, and the way through its answer."""

from tests.custody.spec.shapes import EACH, Step

Place = tuple[str, tuple[Step, ...]]

_USER = "/api/v1/get-user-info"
_ORGANISATION: tuple[Step, ...] = ("OrganisationsInfo", "Organisations", EACH)
_WORKSPACE: tuple[Step, ...] = (*_ORGANISATION, "Workspaces", "Workspaces", EACH)
_VAULTS = "/api/v1/list-wallets"
_TOKENS = "/api/v1/contracts"
_ROLES = "/api/v1/get-roles-and-perms-detailed"

PLACES: dict[str, tuple[Place, ...]] = {
    "User": ((_USER, ()), ("/auth/login", ("user_info",))),
    "Organisation": ((_USER, _ORGANISATION),),
    "WorkspaceInfo": ((_USER, (*_WORKSPACE, "WorkspaceInfo")),),
    "Role": ((_USER, (*_WORKSPACE, "Role")), (_ROLES, (EACH,))),
    "Role.Perm": ((_USER, (*_WORKSPACE, "Role", "Perm", EACH)), (_ROLES, (EACH, "Perm", EACH))),
    "Key": (("/api/v1/keys", (EACH,)), ("/api/v1/register-key", ()), ("/api/v1/revoke-key", ())),
    "Vault": ((_VAULTS, (EACH,)), ("/api/v1/create_wallet", ())),
    "Vault.signers": ((_VAULTS, (EACH, "signers", EACH)),),
    "detailed_vault_limits": (
        (_VAULTS, (EACH, "detailed_vault_limits")),
        ("/api/v1/get-vault-limits", ()),
        ("/api/v1/update-vault", ()),
    ),
    "Contract": ((_TOKENS, (EACH,)), ("/api/v1/contract", ())),
    "Contract.signers": ((_TOKENS, (EACH, "signers", EACH)),),
    "TokenBalance": (("/api/v1/get-tokens", (EACH,)),),
    "AuditLogEntry": (("/api/v1/get-logs", ("logs", EACH)),),
    "PurchaseTransaction": (("/api/v1/purchases", (EACH,)),),
    "OnboardingRequest": (("/api/v1/onboarding-requests", (EACH,)),),
}
# ``limit_error`` may stand in its place: absent, then, and never null.
MAY_BE_ABSENT = {("Vault", "detailed_vault_limits")}
