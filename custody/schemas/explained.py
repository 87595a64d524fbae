"""What each of the platform's codes means, what to do about it and who can: one table, for
``custody explain``, ``signerd explain`` and the site.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from custody.schemas.errors import ErrorCode


@dataclass(frozen=True)
class ExplainedCode:
    """``who`` can do what ``advice`` says."""

    code: ErrorCode
    meaning: str
    advice: str
    who: str


CALLER, AUTHOR, ADMINISTRATOR = "the caller", "the author of the program", "an administrator of the workspace"
OPERATOR, SIGNER = "the platform's operator", "the signer"

_WORDS: Mapping[ErrorCode, tuple[str, str, str]] = {
    ErrorCode.MALFORMED_JSON: (
        "The body of the request is not JSON, or not what the call takes.",
        "Send JSON in UTF-8, with `Content-Type: application/json`.",
        AUTHOR,
    ),
    ErrorCode.UNAUTHENTICATED: (
        "The platform does not know the caller: token, password or signature is missing, wrong or ended.",
        "Sign in again: `custody login`, or `signerd login` at the signer's desk.",
        CALLER,
    ),
    ErrorCode.TOKEN_EXPIRED: (
        "The access token has expired. The session may go on.",
        "Get a new one with `POST /auth/refresh`. The project's own programs do it by themselves.",
        AUTHOR,
    ),
    ErrorCode.OTP_INVALID: (
        "The one-time code is wrong, was used before, or is too old.",
        "Read the code in the newest mail or on the authenticator, or sign in again to get another.",
        CALLER,
    ),
    ErrorCode.PERMISSION_DENIED: (
        "The caller's role in this workspace does not have the permission that the call needs.",
        "Give the member a role that has it.",
        ADMINISTRATOR,
    ),
    ErrorCode.NOT_ORG_MEMBER: (
        "The caller is not a member of the organisation that the request names.",
        "Invite the caller, or name another organisation.",
        "an administrator of the organisation",
    ),
    ErrorCode.NOT_A_SIGNER: (
        "The caller is no signer of the vault, or proposed the payment where its makers may not approve it.",
        "Approve it at the desk of another signer of the vault.",
        "another signer of the vault",
    ),
    ErrorCode.KEY_REVOKED: (
        "The signer's key is revoked. Lost, it approves nothing; replaced, only what stays in the workspace.",
        "Another signer approves. Register a new device, and move the money to a vault with its key.",
        "another signer of the vault",
    ),
    ErrorCode.ROLE_LIMIT_EXCEEDED: (
        "The payment is above what its maker's role leaves for all their payments of the week or month.",
        "Send less, wait until the sum restarts (`figures.next_reset`), or raise the role's limit.",
        ADMINISTRATOR,
    ),
    ErrorCode.VAULT_LIMIT_EXCEEDED: (
        "The payment is above the vault's limit: of each payment, or of all of a week or month together.",
        "Send less, or raise the limit. A sum restarts at `figures.next_reset`.",
        ADMINISTRATOR,
    ),
    ErrorCode.NOT_IN_ADDRESS_BOOK: (
        "The policy allows payments only to addresses of the address book, and a recipient is not in it.",
        "Enter the address in the address book, then propose again.",
        "a member with PAYMENT_INIT or MANAGE_WORKSPACE",
    ),
    ErrorCode.NOT_FOUND: (
        "Nothing has this id in the workspace that the request names, or the caller may not see it.",
        "Check the id, and the workspace and network beside it.",
        CALLER,
    ),
    ErrorCode.METHOD_NOT_ALLOWED: (
        "The address is right, and its call has another HTTP method.",
        "Use the method that the reference of the API names.",
        AUTHOR,
    ),
    ErrorCode.STATE_CONFLICT: (
        "The request does not fit the present state. Another caller may have been faster.",
        "Read the current state, then decide again.",
        CALLER,
    ),
    ErrorCode.VAULT_FROZEN: (
        "A member froze the vault. Nothing moves out of it until it is unfrozen.",
        "Find out why it was frozen. Two members then unfreeze it: `custody vault unfreeze`.",
        "two members with PAYMENT_APPROVE",
    ),
    ErrorCode.SECOND_PERSON_NEEDED: (
        "The policy lets no member make this change alone.",
        "Ask for it with `POST /api/v1/request-change`. Another member confirms: `custody change confirm`.",
        "another member, in the role that the rule names",
    ),
    ErrorCode.LOCKED_FUNDS: (
        "There is enough money, and pending proposals hold the coins.",
        "Wait until those proposals are sent, or end one of them.",
        "the makers of those proposals",
    ),
    ErrorCode.KEY_ALREADY_ACTIVE: (
        "The signer has another device registered on this network.",
        "Keep that device, or replace it: `signerd register --replace`.",
        SIGNER,
    ),
    ErrorCode.KEY_ACCOUNTS_EXHAUSTED: (
        "Each account that a signer registered is used by a vault. A new vault needs one of its own.",
        "Connect the device and register more: `signerd register`.",
        SIGNER,
    ),
    ErrorCode.DEPLOYMENT_NOT_CONFIRMED: (
        "The token's deployment is in no block yet, or a reorganisation took it out of its block.",
        "Wait for its first confirmation.",
        CALLER,
    ),
    ErrorCode.CALL_NOT_STALLED: (
        "The call of the token is on its way or has ended. Only a stalled one is sent again.",
        "Read the call's status. Make a new call for one that ended.",
        CALLER,
    ),
    ErrorCode.ALREADY_PAUSED: ("The token is paused already.", "Nothing has to be done.", CALLER),
    ErrorCode.NOT_PAUSED: ("The token is not paused.", "Nothing has to be done.", CALLER),
    ErrorCode.LAST_ADMIN: (
        "The change would leave too few members with permissions that a member must hold.",
        "Give the role to another member first.",
        ADMINISTRATOR,
    ),
    ErrorCode.IDEMPOTENCY_IN_PROGRESS: (
        "The same request, with the same `Idempotency-Key`, is being worked on.",
        "Ask again in a moment, with the same key.",
        AUTHOR,
    ),
    ErrorCode.BODY_TOO_LARGE: (
        "The body of the request is larger than the platform reads.",
        "Send less in one request.",
        AUTHOR,
    ),
    ErrorCode.VALIDATION: (
        "A value in the request is wrong. `errors` names each one by its place.",
        "Correct these values and send the request again.",
        CALLER,
    ),
    ErrorCode.WRONG_NETWORK_ADDRESS: (
        "The address belongs to another network than the vault, such as one of testnet on mainnet.",
        "Ask the payee for an address of the vault's network.",
        CALLER,
    ),
    ErrorCode.DUST: (
        "An amount is so small that nodes do not relay it.",
        "Raise the amount.",
        CALLER,
    ),
    ErrorCode.INSUFFICIENT_FUNDS: (
        "The vault's coins do not pay the amounts and the fee.",
        "Send less (`custody max-send` names the most), or wait for a deposit.",
        CALLER,
    ),
    ErrorCode.TOKEN_COIN_MISSING: (
        "A token's transaction begins with a confirmed coin at the vault's own address, and none is there.",
        "Send some bitcoin to the vault's address and wait for a confirmation.",
        CALLER,
    ),
    ErrorCode.PSBT_MISMATCH: (
        "The signed PSBT is about another transaction than the one that was proposed.",
        "Fetch the proposal again and sign exactly that. Ask what changed the file on the way.",
        SIGNER,
    ),
    ErrorCode.BAD_SIGNATURE: (
        "The PSBT has no valid signature of the signer's key.",
        "Sign again with the device whose key is in the vault.",
        SIGNER,
    ),
    ErrorCode.WALLET_ADDRESS_MISMATCH: (
        "The address in the request is not the one of the signing profile.",
        "Read the address again with `GET /api/v1/signing-profile-address`.",
        AUTHOR,
    ),
    ErrorCode.IDEMPOTENCY_KEY_REUSED: (
        "The same `Idempotency-Key` came with another request before. Nothing was done.",
        "Make a new key for each new request, and keep it for repeating that one.",
        AUTHOR,
    ),
    ErrorCode.RATE_LIMITED: (
        "The caller asks too often, or has too much open at a time.",
        "Wait as many seconds as `Retry-After` says.",
        CALLER,
    ),
    ErrorCode.INTERNAL: (
        "The platform failed by a fault of its own.",
        "Give the operator the `trace_id` of the answer: the log has the reason beside it.",
        OPERATOR,
    ),
    ErrorCode.BACKEND_UNAVAILABLE: (
        "The Bitcoin node, the database or the mail server is away. The sentence says which.",
        "Try again later, with the same `Idempotency-Key`. `custody status` and the log say more.",
        OPERATOR,
    ),
    ErrorCode.POLICY_UNAVAILABLE: (
        "The platform cannot read its spending policies, so it moves nothing.",
        "Repair what the log names, and try again.",
        OPERATOR,
    ),
}
EXPLAINED: Mapping[str, ExplainedCode] = MappingProxyType(
    {code.value: ExplainedCode(code, *words) for code, words in _WORDS.items()}
)
