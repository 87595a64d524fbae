"""What the specification tells in sentences, in a form that can be held against a server. Each carries the
words that it was read from, which stand in the specification.
"""

from dataclasses import dataclass, field

from tests.custody.spec.reading import Asked


@dataclass(frozen=True)
class Told:
    words: str
    asked: dict[str, Asked] = field(default_factory=dict)
    # ``a[].b``: in each entry of ``a``. A name that the sentence only describes is ours.
    answered: dict[str, str] = field(default_factory=dict)
    method: str | None = None


_NOT_SHOWN = "Method: not shown."
_NEEDED, _FREE = Asked("string", required=True), Asked("string", required=False)

TOLD: dict[str, tuple[Told, ...]] = {
    "/auth/login": (
        Told(_NOT_SHOWN, method="POST"),
        Told("A refresh cookie is set through Set-Cookie."),
    ),
    "/auth/otp-validate": (
        Told(
            "`POST /auth/otp-validate` using `token_2fa` and the emailed one-time code",
            {"token_2fa": _NEEDED, "otp": _NEEDED},
        ),
    ),
    "/auth/refresh": (
        Told("uses it, with `sid`, to issue a fresh access token", {"sid": _NEEDED}, {"token": "string"}),
    ),
    "/api/v1/create-token": (Told(_NOT_SHOWN, method="POST"),),
    "/api/v1/get-workspace-whitelist": (
        Told(_NOT_SHOWN, method="GET"),
        Told(
            "one entry per unique address, with `contract_uids` listing the tokens",
            answered={"aggregate": "array", "aggregate[].contract_uids": "array"},
        ),
        Told(
            "one entry per token, with the owning vault and the addresses the token accepts",
            answered={
                "contracts": "array",
                "contracts[].vault_id": "string",
                "contracts[].addresses": "array",
            },
        ),
        Told("each address with a friendly name", answered={"contracts[].addresses[].name": "string"}),
        Told("`vault_errors` (vaults that could not be reached)", answered={"vault_errors": "array"}),
        Told(
            "whose whitelist could not be read carries an `error` string",
            answered={"contracts[].error": "string or null"},
        ),
    ),
    "/api/v1/export-audit-logs": (
        Told(_NOT_SHOWN, method="GET"),
        Told("returned as a string in the `csv` field of a JSON body", answered={"csv": "string"}),
    ),
    "/api/v1/get-logs": (
        Told(
            "same filters as `GET /api/v1/get-logs` but no page parameter",
            {
                "org_uid": _NEEDED,
                "from_day": _FREE,
                "to_day": _FREE,
                "category": _FREE,
                "page": Asked("number", required=False),
            },
        ),
        Told(
            "`workspace_uid` is a string here, a number on get-logs",
            {"workspace_uid": Asked("number", required=True)},
        ),
    ),
    "/api/v1/get-pending-workspace-invites": (
        Told(
            "Each entry gives `InviteUID`, the invited address and the name of the role offered",
            answered={"[].InviteUID": "", "[].InvitedEmail": "string", "[].RoleName": "string"},
        ),
    ),
    "/api/v1/create-psbt": (
        Told(
            "the proposal id and the unsigned PSBT in base64",
            answered={"psbt_id": "string", "psbt_base64": "string"},
        ),
    ),
    "/api/v1/forward-to-vault": (
        Told("carries `psbt_id` and the unsigned PSBT", answered={"psbt_base64": "string"}),
    ),
    "/api/v1/call-contract": (
        Told(
            "the call identifier (`call_uid`, reported as `UID` by `GET /api/v1/contract-calls`)",
            answered={"call_uid": "integer"},
        ),
    ),
    "/api/v1/contract-calls": (
        Told("the `UID` reported by `GET /api/v1/contract-calls`", answered={"[].UID": "integer"}),
        Told("(check its Status first)", answered={"[].Status": "string"}),
    ),
    "/api/v1/contract-calls/resubmit": (
        Told("the resulting `txid` and the call's new status", answered={"status": "string"}),
    ),
    "/api/v1/psbt": (
        Told(
            "`GET /api/v1/psbt` shows status and Bitcoin transaction id once broadcast",
            answered={"status": "string", "txid": "string or null"},
        ),
        Told("`GET /api/v1/psbt` shows who has approved", answered={"signers": "array"}),
    ),
    "/api/v1/get-users-from-workspace": (
        Told(
            "user id (the UUID integer from get-user-info and get-users-from-workspace)",
            answered={"[].UUID": "integer"},
        ),
    ),
    "/api/v1/signing-profile-address": (
        Told(
            "profile address to forward from, as given by `GET /api/v1/signing-profile-address`",
            answered={"wallet_address": "string"},
        ),
    ),
}

# By path: why the server is not as the specification tells. A row that is exact has no place here.
REASONS: dict[str, str] = {}
