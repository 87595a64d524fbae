"""Problem details (RFC 9457), and the platform's stable error codes with all that is known of each; and
pydantic's findings as a person reads them.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, StringConstraints

from custody.schemas.common import (
    Count,
    Int64,
    Label,
    Many,
    Shape,
)

PROBLEM_CONTENT_TYPE = "application/problem+json"


_CALLER, _AUTHOR = "the caller", "the program's author"
_ADMINISTRATOR, _OPERATOR = "the workspace's administrator", "the platform's operator"
_SIGNER, _OTHER_SIGNER = "the signer", "another signer of the vault"


class ErrorCode(StrEnum):
    """What a program may branch on, with its HTTP status, what it means, what to do about it, and ``who``
    can. Codes are never renamed; the words beside them may be.
    """

    def __new__(cls, code: str, status: int, who: str, meaning: str, advice: str) -> Self:
        made = str.__new__(cls, code)
        made._value_ = code
        made.status, made.who, made.meaning, made.advice = HTTPStatus(status), who, meaning, advice
        return made

    status: HTTPStatus
    who: str
    meaning: str
    advice: str

    # fmt: off
    MALFORMED_JSON = (
        "MALFORMED_JSON", 400, _AUTHOR,
        "The body of the request is not JSON, or not what the call takes.",
        "Send JSON in UTF-8, with `Content-Type: application/json`.",
    )
    UNAUTHENTICATED = (
        "UNAUTHENTICATED", 401, _CALLER,
        "The platform does not know the caller: token, password or signature is missing, wrong or ended.",
        "Sign in again: `custody login`, or `signerd login` at the signer's desk.",
    )
    TOKEN_EXPIRED = (
        "TOKEN_EXPIRED", 401, _AUTHOR,
        "The access token has expired. The session may go on.",
        "Get a new one with `POST /auth/refresh`. The project's own programs do it by themselves.",
    )
    OTP_INVALID = (
        "OTP_INVALID", 401, _CALLER,
        "The one-time code is wrong, was used before, or is too old.",
        "Read the code in the newest mail or on the authenticator, or sign in again to get another.",
    )
    PERMISSION_DENIED = (
        "PERMISSION_DENIED", 403, _ADMINISTRATOR,
        "The caller's role in this workspace does not have the permission that the call needs.",
        "Give the member a role that has it.",
    )
    NOT_ORG_MEMBER = (
        "NOT_ORG_MEMBER", 403, "the organisation's administrator",
        "The caller is not a member of the organisation that the request names.",
        "Invite the caller, or name another organisation.",
    )
    NOT_A_SIGNER = (
        "NOT_A_SIGNER", 403, _OTHER_SIGNER,
        "The caller is no signer of it, used another's key, or proposed it where makers may not approve.",
        "One of its signers approves it. Where only its maker could, another member proposes it.",
    )
    KEY_REVOKED = (
        "KEY_REVOKED", 403, _OTHER_SIGNER,
        "The signer's key is revoked. Lost, it approves nothing; replaced, only what stays in the workspace.",
        "Another signer approves. Register a new device, and move the money to a vault with its key.",
    )
    ROLE_LIMIT_EXCEEDED = (
        "ROLE_LIMIT_EXCEEDED", 403, _ADMINISTRATOR,
        "The payment is above what its maker's role leaves for all their payments of the week or month.",
        "Send less, wait until the sum restarts, or raise the role's limit.",
    )
    VAULT_LIMIT_EXCEEDED = (
        "VAULT_LIMIT_EXCEEDED", 403, _ADMINISTRATOR,
        "The payment is above the vault's limit: of each payment, or of all of a week or month together.",
        "Send less, or raise the limit. Only the sum of a week or month restarts with the next one.",
    )
    NOT_IN_ADDRESS_BOOK = (
        "NOT_IN_ADDRESS_BOOK", 403, "a member with PAYMENT_INIT or MANAGE_WORKSPACE",
        "The policy allows payments only to addresses of the address book, and a recipient is not in it.",
        "Enter the address in the address book, then try again.",
    )
    NOT_FOUND = (
        "NOT_FOUND", 404, _CALLER,
        "Nothing has this id in the workspace that the request names, or the caller may not see it.",
        "Check the id, and the workspace and network beside it.",
    )
    METHOD_NOT_ALLOWED = (
        "METHOD_NOT_ALLOWED", 405, _AUTHOR,
        "The address is right, and its call has another HTTP method.",
        "Use the method that the reference of the API names.",
    )
    STATE_CONFLICT = (
        "STATE_CONFLICT", 409, _CALLER,
        "The request does not fit the present state. Another caller may have been faster.",
        "Read the current state, then decide again.",
    )
    VAULT_FROZEN = (
        "VAULT_FROZEN", 409, "two members with PAYMENT_APPROVE",
        "A member froze the vault. Nothing moves out of it until it is unfrozen.",
        "Find out why. Two members then unfreeze it, on its page or by `custody vault unfreeze`.",
    )
    SECOND_PERSON_NEEDED = (
        "SECOND_PERSON_NEEDED", 409, "another member, in the role that the rule names",
        "The policy lets no member make this change alone.",
        "Ask for it with `POST /api/v1/request-change`. Another member confirms: `custody change confirm`.",
    )
    LOCKED_FUNDS = (
        "LOCKED_FUNDS", 409, "the makers of those proposals",
        "There is enough money, and proposals hold the coins.",
        "Wait until they are sent, or end one of them. Of a cancelled one, take back or free the coins.",
    )
    KEY_ALREADY_ACTIVE = (
        "KEY_ALREADY_ACTIVE", 409, _SIGNER,
        "The signer has another device registered on this network.",
        "Keep that device, or replace it: `signerd register --replace`.",
    )
    KEY_ACCOUNTS_EXHAUSTED = (
        "KEY_ACCOUNTS_EXHAUSTED", 409, _SIGNER,
        "Each account that a signer registered is used by a vault. A new vault needs one of its own.",
        "Connect the device and register more: `signerd register`.",
    )
    DEPLOYMENT_NOT_CONFIRMED = (
        "DEPLOYMENT_NOT_CONFIRMED", 409, _CALLER,
        "The token's deployment is in no block yet, or a reorganisation took it out of its block.",
        "Wait for its first confirmation.",
    )
    CALL_NOT_STALLED = (
        "CALL_NOT_STALLED", 409, _CALLER,
        "The call of the token is on its way or has ended. Only a stalled one is sent again.",
        "Read the call's status. Make a new call for one that ended.",
    )
    ALREADY_PAUSED = (
        "ALREADY_PAUSED", 409, _CALLER,
        "The token is paused already.",
        "Nothing has to be done.",
    )
    NOT_PAUSED = (
        "NOT_PAUSED", 409, _CALLER,
        "The token is not paused.",
        "Nothing has to be done.",
    )
    LAST_ADMIN = (
        "LAST_ADMIN", 409, _ADMINISTRATOR,
        "The change would leave too few members with permissions that a member must hold.",
        "Give the role to another member first.",
    )
    IDEMPOTENCY_IN_PROGRESS = (
        "IDEMPOTENCY_IN_PROGRESS", 409, _AUTHOR,
        "The same request, with the same `Idempotency-Key`, is being worked on.",
        "Ask again in a moment, with the same key.",
    )
    BODY_TOO_LARGE = (
        "BODY_TOO_LARGE", 413, _AUTHOR,
        "The body of the request is larger than the platform reads.",
        "Send less in one request.",
    )
    VALIDATION = (
        "VALIDATION", 422, _CALLER,
        "A value in the request is wrong. `errors` names each one by its place.",
        "Correct these values and send the request again.",
    )
    WRONG_NETWORK_ADDRESS = (
        "WRONG_NETWORK_ADDRESS", 422, _CALLER,
        "The address belongs to another network than the vault, such as one of testnet on mainnet.",
        "Ask the payee for an address of the vault's network.",
    )
    DUST = (
        "DUST", 422, _CALLER,
        "An amount is so small that nodes do not relay it.",
        "Raise the amount.",
    )
    INSUFFICIENT_FUNDS = (
        "INSUFFICIENT_FUNDS", 422, _CALLER,
        "The vault's coins do not pay the amounts and the fee.",
        "Send less, or wait for a deposit. The form of a payment, and `custody proposal max`, name the most.",
    )
    TOKEN_COIN_MISSING = (
        "TOKEN_COIN_MISSING", 422, _CALLER,
        "A token's transaction begins with a confirmed coin at the vault's own address, and none is there.",
        "Send some bitcoin to the vault's address and wait for a confirmation.",
    )
    PSBT_MISMATCH = (
        "PSBT_MISMATCH", 422, _SIGNER,
        "The signed PSBT is about another transaction than the one that was proposed.",
        "Fetch the proposal again and sign exactly that. Ask what changed the file on the way.",
    )
    BAD_SIGNATURE = (
        "BAD_SIGNATURE", 422, _SIGNER,
        "The PSBT has no valid signature of the signer's key.",
        "Sign again with the device whose key is in the vault.",
    )
    WALLET_ADDRESS_MISMATCH = (
        "WALLET_ADDRESS_MISMATCH", 422, _AUTHOR,
        "The address in the request is not the one of the signing profile.",
        "Read the address again with `GET /api/v1/signing-profile-address`.",
    )
    IDEMPOTENCY_KEY_REUSED = (
        "IDEMPOTENCY_KEY_REUSED", 422, _AUTHOR,
        "The same `Idempotency-Key` came with another request before. Nothing was done.",
        "Make a new key for each new request, and keep it for repeating that one.",
    )
    RATE_LIMITED = (
        "RATE_LIMITED", 429, _CALLER,
        "The caller asks too often, or has too much open at a time.",
        "Wait as many seconds as `Retry-After` says.",
    )
    INTERNAL = (
        "INTERNAL", 500, _OPERATOR,
        "The platform failed by a fault of its own.",
        "Give the operator the `trace_id` of the answer: the log has the reason beside it.",
    )
    BACKEND_UNAVAILABLE = (
        "BACKEND_UNAVAILABLE", 503, _OPERATOR,
        "The Bitcoin node, the database or the mail server is away. The sentence says which.",
        "Try again later, with the same `Idempotency-Key`. `custody status` and the log say more.",
    )
    POLICY_UNAVAILABLE = (
        "POLICY_UNAVAILABLE", 503, _OPERATOR,
        "The platform cannot read its spending policies, so it moves nothing.",
        "Repair what the log names, and try again.",
    )
    # fmt: on


def _cut(value: object) -> object:
    """However long a refusal's sentence, or a field's name in it, is: its beginning is read."""
    return value[:MAX_TOLD] if isinstance(value, str) else value


MAX_TOLD = 4_000
Told = Annotated[str, BeforeValidator(_cut), StringConstraints(max_length=MAX_TOLD)]
# limit, used, requested, next_reset.
Figures = Annotated[dict[Label, Label | Int64 | bool | None], Field(max_length=100)]


class FieldError(Shape):
    """One thing that is wrong, and where: ``pointer`` is a JSON pointer (RFC 6901) into the body or query."""

    pointer: Told
    code: Told
    detail: Told


class Problem(Shape):
    """The body of every error. ``trace_id`` equals the audit entry's, so that a person can quote it."""

    success: Literal[False] = False
    type: Label = "about:blank"
    title: Told
    status: Count
    detail: Told
    instance: Told = ""
    code: Label
    trace_id: Label = ""
    errors: Many[FieldError] = Field(default_factory=list)
    # Figures that some codes carry: limit, used, requested, next_reset.
    figures: Figures | None = None


# By pydantic's type of error (https://docs.pydantic.dev/latest/errors/validation_errors/), with its context.
_WORDS = MappingProxyType(
    {
        **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
        **dict.fromkeys(
            ("decimal_parsing", "decimal_type", "finite_number", "float_parsing", "float_type"),
            "must be a number",
        ),
        **dict.fromkeys(("int_from_float", "int_parsing"), "must be a whole number"),
        **dict.fromkeys(("frozen_set_type", "list_type", "tuple_type"), "must be a list"),
        **dict.fromkeys(("string_sub_type", "string_type"), "must be text"),
        "decimal_max_digits": "has too many digits: at most {max_digits}",
        "decimal_max_places": "has too many places after the point: at most {decimal_places}",
        "enum": "must be {expected}",
        "extra_forbidden": "is not known here; look for a mistyped name",
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be {ge} or more",
        "int_parsing_size": "is too large a number",
        "int_type": "must be a whole number, without quotes or a point",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be {le} or less",
        "literal_error": "must be {expected}",
        "missing": "is missing",
        "path_not_file": "names no existing file",
        "path_type": "must be a path in quotes",
        "string_too_long": "is too long: at most {max_length} characters",
        "string_unicode": "must be text in UTF-8",
        "too_long": "must be {max_length} at most",
        "too_short": "must be {min_length} at least",
        "union_tag_invalid": "must have as its {discriminator} one of {expected_tags}",
        "union_tag_not_found": "must have a {discriminator}",
    }
)
_KINDS = {
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "date_": "a date, such as 2026-05-31",
    "datetime_": "a moment, such as 2026-05-31T12:00:00Z",
}


@cache
def _patterns() -> Mapping[str, str]:
    """What a text of each pattern is. Loaded only after a mistake: most programs need few of the shapes."""
    from custody.schemas.asset_tokens import RawUnits
    from custody.schemas.auth import OneTimeCode, SixDigits
    from custody.schemas.common import DecimalText, EmailAddress, TextId
    from custody.schemas.history import MonthText
    from custody.schemas.keys import FingerprintText, PathText
    from custody.schemas.proposals import FeeRateText, OutpointText
    from custody.schemas.purchases import CurrencyCode
    from custody.schemas.users import PhoneNumberOrNothing

    named: Mapping[Any, str] = {
        CurrencyCode: "must be a currency's code, such as EUR",
        DecimalText: 'must be a number in quotes, such as "0.25", with at most eight places',
        EmailAddress: "must be written like ada@example.org",
        FeeRateText: 'must be a rate in sat/vB in quotes, such as "2.5", with at most three places',
        FingerprintText: "must be a fingerprint: eight hexadecimal digits",
        MonthText: "must be a month of the years 2000 to 2099, such as 2026-11",
        OneTimeCode: "must be six digits, or a recovery code",
        OutpointText: "must be a transaction's id of 64 hexadecimal digits, a colon and the output's number",
        PathText: "must be a derivation path, such as m/48h/0h/0h/2h",
        PhoneNumberOrNothing: "must be a telephone number, such as +44 20 7946 0000",
        RawUnits: "must be whole raw units in plain digits, at most 40, with no point, sign or leading zero: "
        "1000.00 of a token with two decimals is 100000",
        SixDigits: "must be six digits",
        TextId: "takes only letters, digits, - and _",
    }
    limits = ((each, words) for of, words in named.items() for each in get_args(of))
    return {
        each.pattern: words
        for each, words in limits
        if isinstance(each, StringConstraints) and isinstance(each.pattern, str)
    }


def fault_words(fault: Mapping[str, Any], patterns: Mapping[str, str] | None = None) -> str:
    """One of pydantic's ``errors()`` as the rest of a sentence that begins with the value's name.
    ``patterns``: what a text of each of the caller's own patterns is.

    Of pydantic's own findings it does not repeat the value, which may have been a password. A sentence of our
    own validators is told as it is: two repeat a count or a check's name, and none a secret.
    """
    kind, context = str(fault["type"]), fault.get("ctx", {})
    if pattern := context.get("pattern"):
        return (patterns or {}).get(pattern) or _patterns().get(pattern, "is not written as it must be")
    # A secret's own kind of value: no list.
    if kind in {"too_short", "too_long"} and context.get("field_type") == "Value":
        kind = f"string_{kind}"
    if kind == "string_too_short":
        least = context["min_length"]
        return "must not be empty" if least == 1 else f"is too short: at least {least} characters"
    if kind in _WORDS:
        return _WORDS[kind].format(**context)
    for prefix, words in _KINDS.items():
        if kind.startswith(prefix):
            return f"must be {words}"
    # Our own validators' sentences, and what pydantic may come to say.
    return re.sub(r"^(Value|Assertion) error, ", "", str(fault["msg"]))


# Fields whose own name does not say what a person fills in.
_FIELDS = MappingProxyType(
    {
        "cycle_day": "day",
        "email": "e-mail address",
        "expires_at": "day on which it ends",
        "from_day": "first day",
        "from_time": "first day",
        "invited_email": "e-mail address",
        "key_check_months": "months between key checks",
        "m": "number of signatures",
        "max_sats": "largest amount",
        "min_sats": "smallest amount",
        "organisation": "organisation's name",
        "org_name": "organisation's name",
        "otp": "one-time code",
        "psbt_base64": "PSBT",
        "psbt_id": "proposal's id",
        "screening_seconds": "seconds for the screening program",
        "since": "first day",
        "to_day": "last day",
        "to_time": "last day",
        "tx_type": "kind of payment",
        "txid": "transaction's id",
        "until": "last day",
        "url": "URL",
        "wallet_id": "vault's id",
        "work_email": "e-mail address",
        "xpub": "extended public key",
    }
)
_ID = re.compile(r"_u?u?id$")
_SATS = re.compile(r"_sats$")
# A sentence of our own validators that begins with the field of a program.
_OF_A_MODEL = re.compile(r"^[a-z_0-9]+(, [a-z_0-9]+)*: ")
_MOST_TOLD = 3


def _field_words(place: Iterable[Any]) -> str:
    words = ""
    for part in place:
        step = f"number {part + 1}" if isinstance(part, int) else f"the {_name(str(part))}"
        words = f"{step} of {words}" if words else step
    return words or "the request"


def _name(field: str) -> str:
    return _FIELDS.get(field) or _SATS.sub("", _ID.sub("'s id", field)).replace("_", " ")


def fault_sentence(
    fault: Mapping[str, Any], patterns: Mapping[str, str] | None = None, *, within: tuple[str, ...] = ()
) -> str:
    """One of pydantic's ``errors()``, with the value in the words of a person, who sees no field's name.
    ``within``: the names around it. ``patterns``: as of `fault_words`.
    """
    words, place = fault_words(fault, patterns), (*within, *fault["loc"])
    if fault["type"] == "value_error":
        goes_on = words.startswith("has a character")
        said = f"{_field_words(place)}{'' if goes_on else ':'} {words}"
        return said if place else _OF_A_MODEL.sub("", words, count=1)
    if fault["type"] == "extra_forbidden":
        return f"'{place[-1]}' {words}"
    return f"{_field_words(place)} {words}"


def fault_sentences(faults: Iterable[Mapping[str, Any]]) -> str:
    """The first of them."""
    words = "; ".join(fault_sentence(each) for each in islice(faults, _MOST_TOLD))
    return f"{words[:1].upper()}{words[1:]}."


def fault_place(fault: Mapping[str, Any]) -> str:
    """The value's name, with those around it: ``recipients.0``; empty for the whole."""
    return ".".join(str(part) for part in fault["loc"])
