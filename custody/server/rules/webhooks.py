"""The fields of each kind of event, the URLs that a webhook may have, and when a delivery is tried again.

Events carry ids, statuses and amounts, and a question whom it pays; a receiver with permission reads texts
through the API. A URL that two parsers could read differently is refused.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

import idna

from custody.schemas.proposals import ProposalStatus
from custody.schemas.webhooks import EVERY_KIND, EventKind

PROPOSAL: Final = (
    "psbt_id", "vault_id", "tx_type", "status", "txid", "amount_sats", "fee_sats",
    "block_height", "block_hash",
)  # fmt: skip
DEPOSIT: Final = ("vault_id", "txid", "vout", "amount_sats", "block_height", "block_hash")
_TOKEN: Final = ("contract_uid", "vault_id", "psbt_id", "txid", "status")
# ``path``: the API path of the requested call.
_CHANGE: Final = ("change_id", "path", "asked_by", "decided_by")

# A field that is not listed here does not leave the platform, even if a use case passes it.
CARRIES: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.PING: ("webhook_id",),
    **{kind: PROPOSAL for kind in EventKind if kind.startswith("proposal.")},
    EventKind.PROPOSAL_APPROVED: (*PROPOSAL, "user_id", "is_complete"),
    EventKind.PROPOSAL_DECLINED: (*PROPOSAL, "user_id"),
    EventKind.PROPOSAL_APPROVAL_WITHDRAWN: (*PROPOSAL, "user_id"),
    EventKind.PROPOSAL_SCREENING: (*PROPOSAL, "recipients", "amounts_sats", "op_return", "answer_by"),
    EventKind.PROPOSAL_TROUBLED: (*PROPOSAL, "trouble"),
    EventKind.PROPOSAL_TROUBLE_ENDED: (*PROPOSAL, "trouble"),
    **{kind: DEPOSIT for kind in EventKind if kind.startswith("deposit.")},
    **{kind: ("vault_id",) for kind in EventKind if kind.startswith("vault.")},
    EventKind.VAULT_REPLACED: ("vault_id", "replaced_by"),
    EventKind.ROLE_LIMIT_CHANGED: ("role_id",),
    **{kind: _TOKEN for kind in EventKind if kind.startswith("token.")},
    **{kind: (*_TOKEN, "call_uid", "function_name") for kind in EventKind if kind.startswith("call.")},
    **{kind: _CHANGE for kind in EventKind if kind.startswith("change.")},
    EventKind.MEMBER_ADDED: ("user_id", "role_id"),
    EventKind.MEMBER_ROLE_CHANGED: ("user_id", "role_id"),
    EventKind.MEMBER_REMOVED: ("user_id",),
    EventKind.KEY_REVOKED: ("key_id", "user_id", "reason", "vault_ids"),
}  # fmt: skip

# Recording one of these in a workspace's log also notifies its webhooks, so no use case can forget it.
EVENT_OF_ACTION: Final[Mapping[str, EventKind]] = {
    # Those that are called as their events.
    **{kind.name: kind for kind in EventKind if kind.startswith(("vault.", "change.", "member."))},
    "PROPOSAL_CREATED": EventKind.PROPOSAL_CREATED,
    "FORWARD_PROPOSED": EventKind.PROPOSAL_CREATED,
    "TOKEN_CREATED": EventKind.PROPOSAL_CREATED,
    "TOKEN_CALLED": EventKind.PROPOSAL_CREATED,
    "SCREENING_PASSED": EventKind.PROPOSAL_CREATED,
    "SIGNATURE_SUBMITTED": EventKind.PROPOSAL_APPROVED,
    "PROPOSAL_DECLINED": EventKind.PROPOSAL_DECLINED,
    "SIGNATURE_WITHDRAWN": EventKind.PROPOSAL_APPROVAL_WITHDRAWN,
    "VAULT_POLICY_REPLACED": EventKind.VAULT_LIMIT_CHANGED,
    "VAULT_CONTROLS_REPLACED": EventKind.VAULT_CONTROLS_CHANGED,
    "CHANGE_ASKED": EventKind.CHANGE_REQUESTED,
    "ROLE_POLICY_REPLACED": EventKind.ROLE_LIMIT_CHANGED,
    "INVITATION_ACCEPTED": EventKind.MEMBER_ADDED,
    "MEMBER_LEFT": EventKind.MEMBER_REMOVED,
}


def kind_of_status(status: ProposalStatus) -> EventKind:
    """The event of a proposal that enters the status. It enters PENDING anew where it cannot be sent yet."""
    if status is ProposalStatus.PENDING:
        return EventKind.PROPOSAL_STALLED
    return EventKind(f"proposal.{status.lower()}")


def wants(kinds: Iterable[str], kind: EventKind) -> bool:
    """Whether a webhook that subscribes to ``kinds`` receives the event."""
    return kind in kinds or EVERY_KIND in kinds


def carried(kind: EventKind, data: Mapping[str, Any]) -> dict[str, Any]:
    """Only the fields of the kind. Raises KeyError where ``data`` lacks one."""
    return {name: data[name] for name in CARRIES[kind]}


Address = IPv4Address | IPv6Address

SPECIAL_IPV4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network (RFC 791)
        "10.0.0.0/8",  # private use (RFC 1918)
        "100.64.0.0/10",  # shared address space of carriers (RFC 6598)
        "127.0.0.0/8",  # loopback (RFC 1122)
        "169.254.0.0/16",  # link local (RFC 3927); the clouds' metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # IETF protocol assignments (RFC 6890); Oracle's metadata
        "192.0.2.0/24",  # documentation (RFC 5737)
        "192.31.196.0/24",  # AS112 (RFC 7535)
        "192.52.193.0/24",  # AMT (RFC 7450)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112 (RFC 7534)
        "198.18.0.0/15",  # benchmarking (RFC 2544)
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast (RFC 5771)
        "240.0.0.0/4",  # reserved (RFC 1112), and the limited broadcast (RFC 919)
        # In no registry: Azure's own services answer virtual machines there.
        "168.63.129.16/32",
    )
)
# All global unicast space that IANA has allocated (RFC 4291). Outside are loopback, the unspecified address,
# IPv4-mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard-only, SRv6, unique local, link
# local, multicast.
GLOBAL_IPV6: Final = IPv6Network("2000::/3")
SPECIAL_IPV6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocol assignments (RFC 2928): Teredo, benchmarking, AMT, ORCHID, DETs
        "2001:db8::/32",  # documentation (RFC 3849)
        "2002::/16",  # 6to4, which holds an IPv4 address (RFC 3056)
        "2620:4f:8000::/48",  # AS112 (RFC 7534)
        "3ffe::/16",  # the 6bone's, given back (RFC 3701)
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# ISATAP holds an IPv4 address behind any prefix (RFC 5214, section 6.1).
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def is_public(address: Address) -> bool:
    """Whether it is a unicast address of the public Internet that embeds no other address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in SPECIAL_IPV4)
    return (
        address.scope_id is None
        and address in GLOBAL_IPV6
        and address.is_global
        and not any(address in network for network in SPECIAL_IPV6)
        and (int(address) >> 32) & 0xFFFF_FFFF not in _ISATAP
    )


def is_public_text(text: str) -> bool:
    """`is_public` of a resolver's text; False where it is not an address."""
    try:
        return is_public(ip_address(text))
    except ValueError:
        return False


MAX_URL: Final = 1_000
HTTPS_PORT: Final = 443
# Below are well-known ports (RFC 6335): a webhook must not make the platform call a mail server.
FIRST_FREE_PORT: Final = 1_024
MAX_PORT: Final = 65_535
MAX_NAME: Final = 253
# Names of the machine itself, of its own network, or reserved (RFC 6761, 6762, 7686, 8375, 9476; ICANN's
# internal).
SPECIAL_NAMES: Final = frozenset({
    "localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "arpa",
    "test", "example", "invalid", "onion", "alt",
})  # fmt: skip

# Only RFC 3986's characters: no space, backslash, control, bracket or raw non-ASCII; no fragment, user or
# password.
_URL = re.compile(
    r"https://(?P<host>[^/?#@:\\\[\]\s]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(?P<query>\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# A last label that the URL standard and C libraries (inet_aton) take for an IPv4 address: 2130706433, 0x7f.1,
# 0177.0.0.1.
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")


class BadUrl(ValueError):
    """The message says what is wrong, for the webhook's maker."""


@dataclass(frozen=True)
class WebhookUrl:
    """``host`` in lower case, in ASCII; ``target`` is the path with its query. ``is_allowed``: the operator
    allows this host even at a private address.
    """

    host: str
    port: int
    target: str
    is_allowed: bool = False

    @property
    def authority(self) -> str:
        return self.host if self.port == HTTPS_PORT else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"https://{self.authority}{self.target}"


def read_url(text: str, allowed: Collection[str] = ()) -> WebhookUrl:
    """``allowed``: hosts that the operator allows, in lower case: ``host`` at any port, or ``host:port``.
    Raises BadUrl.
    """
    if len(text) > MAX_URL:
        raise BadUrl(f"The URL has at most {MAX_URL} characters.")
    match = _URL.fullmatch(text)
    if match is None:
        raise BadUrl(
            "The URL is https://, a host's name, perhaps a port, and a path: no user, password or fragment, "
            "and other characters percent-encoded."
        )
    host = match["host"].lower()
    is_allowed = host in allowed or f"{host}:{match['port'] or HTTPS_PORT}" in allowed
    return WebhookUrl(
        host=host if is_allowed else _name(host),
        port=_port(match["port"], is_allowed=is_allowed),
        target=(match["path"] or "/") + (match["query"] or ""),
        is_allowed=is_allowed,
    )


def _port(text: str | None, *, is_allowed: bool) -> int:
    port = HTTPS_PORT if text is None else int(text)
    lowest = 1 if is_allowed else FIRST_FREE_PORT
    if port != HTTPS_PORT and not lowest <= port <= MAX_PORT:
        raise BadUrl(f"The URL's port is {HTTPS_PORT}, or one from {FIRST_FREE_PORT} to {MAX_PORT}.")
    return port


def _name(host: str) -> str:
    """A fully qualified DNS name, in ASCII (RFC 5891); never an IP address in any notation."""
    name = _encoded(host)
    labels = name.split(".")
    if len(name) > MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl("The URL's host is not a DNS name; give one, without a trailing dot.")
    if _NUMBER.fullmatch(labels[-1]):
        raise BadUrl("The URL's host is an address; give a name.")
    if len(labels) == 1 or labels[-1] in SPECIAL_NAMES:
        raise BadUrl("The URL's host is not a name of the public Internet.")
    return name


def _encoded(host: str) -> str:
    """Encodes without the mappings of UTS 46, which turn look-alike characters into dots and digits."""
    try:
        return idna.encode(host, strict=True).decode()
    except (idna.IDNAError, UnicodeError):
        raise BadUrl("The URL's host is not a DNS name; give one, without a trailing dot.") from None


# Soon at first, for a restart; then less and less often. Eleven attempts in three days, as Stripe's and
# Svix's deliveries.
RETRIES: Final = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=20),
)
GIVEN_UP_AFTER: Final = timedelta(days=3)
# A webhook all of whose deliveries failed for this long is disabled.
DISABLED_AFTER: Final = timedelta(days=5)
SHORTEST_PAUSE: Final = timedelta(seconds=5)
# An attempt that took longer than this counts as hung: unlike a refusal, it keeps a worker waiting for a
# name, a connection or an answer.
HANGS_FROM: Final = timedelta(seconds=2)
AFTER_A_HANG: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)


def next_attempt(attempts: int, queued_at: datetime, now: datetime) -> datetime | None:
    """When to try again after ``attempts`` failures, one at least; None where the delivery is given up."""
    if attempts > len(RETRIES):
        return None
    following = now + RETRIES[attempts - 1]
    return following if following <= queued_at + GIVEN_UP_AFTER else None


def quiet_until(failing_since: datetime, now: datetime, *, hung: bool = False) -> datetime:
    """Until when nothing is delivered to a failing webhook: the longer it fails, the longer. Without this
    every new event would call it.
    """
    least = AFTER_A_HANG if hung else SHORTEST_PAUSE
    return now + min(LONGEST_PAUSE, max(least, (now - failing_since) / 8))


def is_hopeless(failing_since: datetime, now: datetime) -> bool:
    return now - failing_since >= DISABLED_AFTER
