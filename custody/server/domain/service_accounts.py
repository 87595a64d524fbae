"""Service accounts: the permissions that they never get, their secrets, and their allowed networks.

A program acts in its maker's name with a part of its maker's rights: what it proposes counts for the maker's
limits, and the maker does not approve it where makers may not. It signs nothing and decides nothing about
people, roles, policy or other programs.
"""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from hmac import compare_digest
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from custody.schemas.service_accounts import SECRET_PREFIX, read_network
from custody.schemas.users import PermissionName
from custody.server.domain.credentials import new_token, token_hash
from custody.server.domain.errors import Invalid
from custody.server.domain.ports import RandomBytes
from custody.server.domain.roles import Permissions, in_words, require_grantable

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
    found = _SECRET.fullmatch(secret)
    return None if found is None else int(found[1])


def matches(secret: str, hashes: Iterable[bytes | None]) -> bytes | None:
    """The stored hash of this secret, or None. Compares all of them, each in constant time."""
    own, found = token_hash(secret), None
    for stored in hashes:
        if stored is not None and compare_digest(own, stored):
            found = stored
    return found


def require_givable(rights: Permissions, held: Permissions) -> None:
    """Raises Invalid (never given to a program), PermissionDenied (the giver does not hold it)."""
    if never := rights & NEVER_GIVEN:
        raise Invalid.at("/rights", f"A program cannot be given {in_words(never)}.")
    require_grantable(rights, held)


def require_end(expires_at: datetime, now: datetime) -> None:
    """Raises Invalid."""
    if not now < expires_at <= now + LONGEST_LIFE:
        raise Invalid.at("/expires_at", f"A program's account ends within {LONGEST_LIFE.days} days from now.")


def plain_address(text: str) -> str:
    """A caller's IP address in canonical form: without a zone, and IPv4-mapped IPv6 as IPv4."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return text[:60]
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def is_inside(address: str, networks: Iterable[str]) -> bool:
    """``address``: as `plain_address` returns it. False where it is not an IP address."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in read_network(network) for network in networks)


def is_wider(before: Collection[str], after: Collection[str]) -> bool:
    """Whether ``after`` has a network that lies in none of ``before``. Adjacent networks are not joined."""
    return not all(any(_is_part(new, old) for old in before) for new in after)


def _is_part(inner: str, outer: str) -> bool:
    one, other = read_network(inner), read_network(outer)
    if isinstance(one, IPv4Network) and isinstance(other, IPv4Network):
        return one.subnet_of(other)
    if isinstance(one, IPv6Network) and isinstance(other, IPv6Network):
        return one.subnet_of(other)
    return False
