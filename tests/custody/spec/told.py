"""What the specification tells in sentences, in a form that can be held against a server; and where the
platform shows its records: a path, and the way through its answer.
"""

from dataclasses import dataclass, field

from tests.custody.spec.reading import Asked
from tests.custody.spec.shapes import EACH, Step


@dataclass(frozen=True)
class Told:
    """``answered``: ``a[].b`` is in each entry of ``a``. A name that the sentence only describes is ours."""

    asked: dict[str, Asked] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)


# The method is not shown there.
METHODS = {
    "/auth/login": "POST",
    "/api/v1/create-token": "POST",
    "/api/v1/get-workspace-whitelist": "GET",
    "/api/v1/export-audit-logs": "GET",
}
_NEEDED, _FREE = Asked("string", required=True), Asked("string", required=False)

TOLD: dict[str, Told] = {
    # using `token_2fa` and the emailed one-time code
    "/auth/otp-validate": Told({"token_2fa": _NEEDED, "otp": _NEEDED}),
    # uses it, with `sid`, to issue a fresh access token
    "/auth/refresh": Told({"sid": _NEEDED}, {"token": "string"}),
    "/api/v1/get-workspace-whitelist": Told(
        answered={
            # one entry per unique address, with `contract_uids` listing the tokens
            "aggregate": "array",
            "aggregate[].contract_uids": "array",
            # one entry per token, with the owning vault and the addresses the token accepts
            # each address with a friendly name
            "contracts": "array",
            "contracts[].vault_id": "string",
            "contracts[].addresses": "array",
            "contracts[].addresses[].name": "string",
            # whose whitelist could not be read carries an `error` string
            "contracts[].error": "string or null",
            # vaults that could not be reached
            "vault_errors": "array",
        }
    ),
    # returned as a string in the `csv` field of a JSON body
    "/api/v1/export-audit-logs": Told(answered={"csv": "string"}),
    "/api/v1/get-logs": Told(
        {
            # same filters as `GET /api/v1/get-logs` but no page parameter
            "org_uid": _NEEDED,
            "from_day": _FREE,
            "to_day": _FREE,
            "category": _FREE,
            "page": Asked("number", required=False),
            # `workspace_uid` is a string here, a number on get-logs
            "workspace_uid": Asked("number", required=True),
        }
    ),
    # Each entry gives `InviteUID`, the invited address and the name of the role offered
    "/api/v1/get-pending-workspace-invites": Told(
        answered={"[].InviteUID": "", "[].InvitedEmail": "string", "[].RoleName": "string"}
    ),
    # the proposal id and the unsigned PSBT in base64
    "/api/v1/create-psbt": Told(answered={"psbt_id": "string", "psbt_base64": "string"}),
    # carries `psbt_id` and the unsigned PSBT
    "/api/v1/forward-to-vault": Told(answered={"psbt_base64": "string"}),
    # the call identifier (`call_uid`, reported as `UID` by `GET /api/v1/contract-calls`)
    "/api/v1/call-contract": Told(answered={"call_uid": "integer"}),
    # (check its Status first)
    "/api/v1/contract-calls": Told(answered={"[].UID": "integer", "[].Status": "string"}),
    # the resulting `txid` and the call's new status
    "/api/v1/contract-calls/resubmit": Told(answered={"status": "string"}),
    # shows status and Bitcoin transaction id once broadcast, shows who has approved
    "/api/v1/psbt": Told(answered={"status": "string", "txid": "string or null", "signers": "array"}),
    # user id (the UUID integer from get-user-info and get-users-from-workspace)
    "/api/v1/get-users-from-workspace": Told(answered={"[].UUID": "integer"}),
    # profile address to forward from, as given by `GET /api/v1/signing-profile-address`
    "/api/v1/signing-profile-address": Told(answered={"wallet_address": "string"}),
}

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
