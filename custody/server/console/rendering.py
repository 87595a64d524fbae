"""The console's templates, and words for what the platform's shapes say in codes."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from markupsafe import Markup

from custody.change_words import PERMISSION_WORDS
from custody.pages.qr import qr_image
from custody.pages.rendering import Templates
from custody.schemas.asset_tokens import CallStatus
from custody.schemas.common import format_time
from custody.schemas.proposals import Advice, ProposalStatus
from custody.server.console.words import (
    CALL_WORDS,
    FUNCTION_WORDS,
    KEY_WORDS,
    MOVEMENT_WORDS,
    PURCHASE_WORDS,
    Limit,
    member_words,
    role_words,
    token_units,
)
from custody.text import SHORT_ID, network_words, plain
from multisig.tokens import Function

STATUS_WORDS: Mapping[ProposalStatus, str] = MappingProxyType(
    {
        ProposalStatus.PENDING: "waiting for signatures",
        ProposalStatus.SIGNED: "signed",
        ProposalStatus.BROADCASTING: "on its way",
        ProposalStatus.CONFIRMED: "confirmed",
        ProposalStatus.STALLED: "stalled",
        ProposalStatus.REJECTED: "declined",
        ProposalStatus.CANCELLED: "cancelled",
        ProposalStatus.EXPIRED: "expired",
        ProposalStatus.INVALIDATED: "no longer possible",
        ProposalStatus.FAILED: "failed",
        ProposalStatus.REPLACED: "replaced",
        ProposalStatus.PROVEN: "proof complete",
    }
)
ADVICE_WORDS: Mapping[Advice, str] = MappingProxyType(
    {
        "bump": "Pay a higher fee, or add a payment that pays for it.",
        "wait": "Wait: nothing has to be done.",
        "resend": "The platform sends it again by itself.",
        "none": "Nothing can be done: it is over.",
    }
)


def moment(at: datetime) -> Markup:
    """In UTC, and labelled so: users are in many time zones."""
    return Markup('<time datetime="{}">{}</time>').format(format_time(at), f"{at:%-d %b %Y, %H:%M} UTC")


_HERE = Path(__file__).parent
STATIC = _HERE / "static"
TEMPLATES = Templates(
    _HERE / "templates",
    filters={
        "moment": moment,
        "network": network_words,
        "qr": qr_image,
        "status_words": lambda status: STATUS_WORDS[status],
        "permission_words": lambda name: PERMISSION_WORDS[name],
        "movement_words": lambda kind: MOVEMENT_WORDS[kind],
        "key_words": lambda state: KEY_WORDS[state],
        "call_words": lambda status: CALL_WORDS[CallStatus(status)],
        "function_words": lambda name: FUNCTION_WORDS[Function[name.upper()]],
        "purchase_words": lambda status: PURCHASE_WORDS[status],
        "limit_shown": Limit,
        "member_words": member_words,
        "token_units": token_units,
        "advice_words": lambda advice: ADVICE_WORDS[advice],
        "short": lambda text: plain(text)[:SHORT_ID],
    },
)

TEMPLATES.environment.globals["role_words"] = role_words
# The sections of a workspace: words, path, and the permissions of which a person needs one.
READERS = ("VIEW_BALANCES", "PAYMENT_INIT", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")
TEMPLATES.environment.globals["sections"] = (
    ("Overview", "", ()),
    ("Proposals", "proposals", READERS),
    ("Vaults", "vaults", READERS),
    ("Proofs", "proofs", READERS),
    ("Advisories", "advisories", ()),
    ("Tokens", "tokens", ("VIEW_BALANCES", "PAYMENT_APPROVE", "MANAGE_WORKSPACE")),
    ("Address book", "addresses", ("PAYMENT_INIT", "MANAGE_WORKSPACE")),
    ("Members", "members", ("MANAGE_USERS",)),
    ("Roles and limits", "roles", ("MANAGE_ROLE", "MANAGE_USERS", "MANAGE_WORKSPACE")),
    ("Your limits", "limits", ()),
    ("Second person", "changes", ()),
    ("Programs", "programs", ("MANAGE_USERS", "MANAGE_WORKSPACE")),
    ("Webhooks", "webhooks", ("MANAGE_WORKSPACE",)),
    ("Audit log", "audit", ("VIEW_LOGS",)),
    ("Identity provider", "identity", ("MANAGE_USERS",)),
    ("Workspace", "workspace", ("MANAGE_WORKSPACE",)),
)
