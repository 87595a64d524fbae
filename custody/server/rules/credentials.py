"""Sign-in: lifetimes and rate limits, bearer tokens and codes and their hashes, passwords, refresh tokens;
the signed-in caller, with the caller's permissions in the workspace; and programs: the permissions that they
never get, their secrets, and their allowed networks.

A program acts in its maker's name with a part of its maker's rights: what it proposes counts for the maker's
limits, and the maker does not approve it where makers may not. It signs nothing and decides nothing about
people, roles, policy or other programs.
"""

import hmac
import re
import unicodedata
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from ipaddress import IPv6Address, ip_address
from typing import Final

from custody.schemas.call import PermissionName
from custody.schemas.service_accounts import SECRET_PREFIX, read_network
from custody.server.errors import Invalid
from custody.server.rules.ports import RandomBytes
from custody.server.rules.roles import Permissions, in_words, require_grantable

ACCESS_LIFETIME = timedelta(minutes=15)
REFRESH_LIFETIME = timedelta(days=30)
# A session from an identity provider: a user who loses access there loses it here within the day.
BOUND_LIFETIME = timedelta(hours=12)
# The browser is at the provider's form, perhaps with a second factor there.
IDENTITY_FLOW_LIFETIME = timedelta(minutes=10)

# Six digits, five minutes, five tries (RFC 4226, section 7.3 asks for a low bound), mailed or of an
# authenticator.
OTP_LIFETIME = timedelta(minutes=5)
OTP_TRIES = 5
# Across all challenges of an account: an attacker with the password gets one chance in 50,000 per hour with
# mailed codes, and one in 16,667 with an authenticator's, of which three are good at a time; not more (P38).
OTP_WINDOW = timedelta(hours=1)
OTP_TRIES_PER_WINDOW = 20
OTP_CHALLENGES_PER_WINDOW = 20

# Sign-in calls from one address.
CALLS_PER_ADDRESS = 120
CALLS_PER_ADDRESS_WINDOW = timedelta(minutes=1)


TOKEN_BYTES = 32
ID_BYTES = 16
OTP_DIGITS = 6
# 80 bits, sixteen characters of base32: too many to guess, so plain SHA-256 is enough and no slow hash is
# needed.
RECOVERY_BYTES = 10
RECOVERY_CODES = 10
# What the libraries of passkeys and of ID tokens raise for malformed input, which proves nothing.
MALFORMED: Final = (
    ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError,
    NotImplementedError,
)  # fmt: skip


def new_token(random: RandomBytes) -> str:
    """43 characters of base64url: 256 bits."""
    return urlsafe_b64encode(random(TOKEN_BYTES)).rstrip(b"=").decode()


def new_id(random: RandomBytes) -> str:
    """32 hex digits. They cannot be guessed, but no check relies on that alone."""
    return random(ID_BYTES).hex()


def token_hash(token: str) -> bytes:
    """A token has 256 random bits, so that plain SHA-256 keeps it safe at rest."""
    return sha256(token.encode()).digest()


def new_otp(random: RandomBytes) -> str:
    """Six digits. The bias of 64 bits modulo a million is negligible."""
    return f"{int.from_bytes(random(8), 'big') % 10**OTP_DIGITS:0{OTP_DIGITS}d}"


def otp_hash(code: str, token_2fa: str) -> bytes:
    """Keyed by the token, which is stored nowhere: a stolen database cannot be searched for a million
    codes.
    """
    return hmac.digest(token_2fa.encode(), code.encode(), "sha256")


def new_recovery_code(random: RandomBytes) -> str:
    """``abcd-efgh-ijkl-mnop``: written on paper, typed by hand, good once."""
    text = b32encode(random(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[at : at + 4] for at in range(0, len(text), 4))


def recovery_hash(code: str) -> bytes:
    return token_hash(plain_code(code))


def plain_code(typed: str) -> str:
    """A typed code without spaces and hyphens, in lower case."""
    return re.sub(r"[\s-]", "", typed).lower()


def session_id(sid: str) -> str:
    """A session's id in lists. ``sid`` itself is not shown: with the cookie it renews the session."""
    return sha256(b"session-id" + sid.encode()).hexdigest()[: 2 * ID_BYTES]


# NIST SP 800-63B, section 3.1.1.2: refuse repetitive strings, what derives from the account's own name or the
# service's, and what everybody tries. Besides those, a password has so many different characters.
MIN_DISTINCT_CHARACTERS = 5
_TRIED_BY_ALL: Final = re.compile(
    "passwor[dt]|qwert[yz]|asdf|letmein|welcome|admin|bitcoin|custody|signerd|1234?5?6?7?8?9?0?"
)


def normalised(password: str) -> str:
    """NFKC, so that the same key strokes on another keyboard are the same password (NIST SP 800-63B)."""
    return unicodedata.normalize("NFKC", password)


def check_new_password(password: str, email: str, field: str = "password") -> None:
    """Raises Invalid for a password that is easily guessed. ``email`` is in lower case; ``field`` is the
    request's field that held the password.
    """
    rest = _TRIED_BY_ALL.sub("", normalised(password).lower())
    for word in (email, *re.findall(r"\w{3,}", email)):
        rest = rest.replace(word, "")
    if len(set(rest)) < MIN_DISTINCT_CHARACTERS:
        sentence = (
            "This password is guessed too easily: besides the account's name and words that everybody tries, "
            f"it has fewer than {MIN_DISTINCT_CHARACTERS} different characters."
        )
        raise Invalid.at(f"/{field}", sentence, "weak-password")


@dataclass(frozen=True)
class ServiceCaller:
    """The service account of a call, and the hash of the secret that it sent."""

    account_id: int
    workspace_id: int
    secret_hash: bytes = field(repr=False)


@dataclass(frozen=True)
class Caller:
    """A signed-in person. ``trace_id`` ties log, error and audit entry of one request together.

    ``service``: the program that acts in the person's name; such a call has no session. ``bound_to``: the
    organisation whose identity provider signed the person in; the session reaches no other organisation.
    ``needs_no_provider``: the call is allowed with a password even where an organisation requires its
    identity provider; ``decides``: so it is for a member who confirms the organisation's changes.
    ``address``: of the client; behind a trusted proxy, the one that it reports.
    """

    user_id: int
    session_id: int
    name: str
    trace_id: str
    service: ServiceCaller | None = None
    bound_to: int | None = None
    needs_no_provider: bool = False
    decides: bool = False
    address: str = ""

    @property
    def counted_as(self) -> int:
        """The key of the rate limit. All programs of one person share one, which is not the person's own."""
        return self.user_id if self.service is None else -self.user_id


def anybody(address: str, trace_id: str) -> Caller:
    """Who makes a call that needs no sign-in."""
    return Caller(user_id=0, session_id=0, name="", trace_id=trace_id, address=address)


# Callers that are no member, for the audit log: the platform itself, and its operator at the command line.
PLATFORM = Caller(user_id=0, session_id=0, name="platform", trace_id="")
OPERATOR = Caller(user_id=0, session_id=0, name="operator", trace_id="")


@dataclass(frozen=True)
class WorkspaceAccess:
    """A caller's role and permissions in the workspace that the request names.

    ``network`` is mainnet or testnet; ``chain`` is the actual chain (mainnet, testnet4, signet or regtest).
    ``has_webhooks``: whether one may listen, as of the transaction that let the caller in.
    """

    workspace_id: int
    organisation_id: int
    network: str
    chain: str
    role_id: int
    permissions: frozenset[PermissionName]
    has_webhooks: bool = True

    def holds_any(self, wanted: frozenset[PermissionName]) -> bool:
        return bool(self.permissions & wanted)


# Only a person approves, with a device; managing people and roles would let a program grant rights.
NEVER_GIVEN: Final = frozenset(
    {PermissionName.PAYMENT_APPROVE, PermissionName.MANAGE_ROLE, PermissionName.MANAGE_USERS}
)
LONGEST_LIFE: Final = timedelta(days=366)
_SECRET: Final = re.compile(SECRET_PREFIX + r"([1-9][0-9]{0,17})_[A-Za-z0-9_-]{43}")


def new_secret(account_id: int, random: RandomBytes) -> str:
    """The account's id and 256 random bits: nothing guesses one, so no account is locked after failures."""
    return f"{SECRET_PREFIX}{account_id}_{new_token(random)}"


def is_secret(token: str) -> bool:
    """Whether a bearer token is a service account's, by its prefix, and not a session's."""
    return token.startswith(SECRET_PREFIX)


def account_of(secret: str) -> int | None:
    """The account's id in a secret; None for a malformed one."""
    match = _SECRET.fullmatch(secret)
    return None if match is None else int(match[1])


def matches(secret: str, hashes: Iterable[bytes | None]) -> bytes | None:
    """The stored hash of this secret, or None. Compares all of them, each in constant time."""
    own, result = token_hash(secret), None
    for stored in hashes:
        if stored is not None and compare_digest(own, stored):
            result = stored
    return result


def require_givable(rights: Permissions, held: Permissions) -> None:
    """Raises Invalid (never given to a program), PermissionDenied (the giver does not hold it)."""
    if never := rights & NEVER_GIVEN:
        raise Invalid.at("/rights", f"A program cannot be given {in_words(never)}.")
    require_grantable(rights, held)


def require_end(expires_at: datetime, now: datetime) -> None:
    """Raises Invalid."""
    if not now < expires_at <= now + LONGEST_LIFE:
        days = LONGEST_LIFE.days
        raise Invalid.at("/expires_at", f"A program's account ends in the future, and within {days} days.")


def plain_address(text: str) -> str:
    """A caller's IP address in canonical form: without a zone, and IPv4-mapped IPv6 as IPv4."""
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return text[:60]
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)


def is_inside(address: str, networks: Iterable[str]) -> bool:
    """``address``: as `plain_address` returns it. False where it is not an IP address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return any(ip in read_network(network) for network in networks)


def is_wider(before: Collection[str], after: Collection[str]) -> bool:
    """Whether ``after`` has a network that lies in none of ``before``. Adjacent networks are not joined."""
    old = [read_network(each) for each in before]
    return not all(
        any(new.version == one.version and new.subnet_of(one) for one in old)  # type: ignore[arg-type]
        for new in map(read_network, after)
    )
