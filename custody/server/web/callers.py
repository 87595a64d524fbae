"""Callers other than a person who signed in with a password: programs, by their secret, and sessions of an
organisation's identity provider. Which calls each may make.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from custody.schemas.call import Way
from custody.schemas.calls import CALLS
from custody.schemas.permissions import Auth
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import PermissionDenied
from custody.server.web.endpoint import Call, Endpoint


def _declared(way: Way) -> frozenset[str]:
    """What the declared calls say of themselves."""
    return frozenset(call.path for call in CALLS if way in call.open_to)


# The calls that a program may make, if its rights allow. All others are for people: signing, people, roles,
# policy, whatever can need a second person, one's own account and devices. A new endpoint is closed to
# programs until it is listed here.
FOR_PROGRAMS: Final = frozenset(
    f"/api/v1/{name}"
    for name in (
        "max-send", "psbt",
    )
) | _declared(Way.PROGRAM)  # fmt: skip


def documented(row: Endpoint) -> Mapping[str, bool]:
    """For the OpenAPI document."""
    return {"x-service-accounts": True} if row.path in FOR_PROGRAMS else {}


def require_for_programs(call: Call[None]) -> None:
    """Raises PermissionDenied where a program makes a call that is a person's."""
    is_program = call.maybe_caller is not None and call.maybe_caller.service is not None
    if is_program and call.endpoint.path not in FOR_PROGRAMS:
        raise PermissionDenied("A service account may not call this: it needs a person who is signed in.")


# A provider's session is for the console only (`routes`). Calls about a person and no workspace concern the
# account itself or other organisations, except these.
FOR_BOUND: Final = _declared(Way.BOUND)
# What password sessions may still call where members have to use the provider: linking and leaving.
FOR_UNLINKED: Final = _declared(Way.UNLINKED)
# Also for members who confirm an owner's changes, so that two can always remove a failing provider: the calls
# of the console's page of changes.
FOR_SECOND_PERSON: Final = _declared(Way.DECIDER)
# Also, in the API, the calls of a signer's own program, which cannot show a provider's page; and freezing.
FOR_SIGNERS: Final = FOR_UNLINKED | frozenset(
    f"/api/v1/{name}"
    for name in (
        "psbt",
    )
) | _declared(Way.SIGNER)  # fmt: skip


def require_for_bound(call: Call[None]) -> None:
    """Raises PermissionDenied where an identity provider's session calls what is the person's own."""
    is_bound = call.maybe_caller is not None and call.maybe_caller.bound_to is not None
    if is_bound and call.endpoint.needs is Auth.SIGNED_IN and call.endpoint.path not in FOR_BOUND:
        raise PermissionDenied("Sign in with your own password for this, not through the identity provider.")


def let_in(caller: Caller | None, path: str, without_provider: frozenset[str]) -> Caller | None:
    """``without_provider``: the calls that password sessions may make."""
    if caller is None:
        return None
    needs_none, decides = path in without_provider, path in FOR_SECOND_PERSON
    return replace(caller, needs_no_provider=needs_none, decides=decides)
