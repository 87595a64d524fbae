"""Signed advisories about devices, and the vaults that they expose."""

from custody.schemas.advisories import (
    AdvisoryPublisher,
    ExposuresQuery,
    TakeAdvisoriesRequest,
    VaultExposure,
)
from custody.schemas.users import PermissionName
from custody.server.domain.errors import NotFound, StateConflict
from custody.server.service.keys.quorums import VAULT_READERS
from custody.server.web.endpoint import Auth, Call, Endpoint, Unit


def take_advisories(call: Call[TakeAdvisoriesRequest]) -> AdvisoryPublisher:
    """Hands in a publisher's newest list. Its signature alone decides; a list that is held already changes nothing."""  # noqa: E501
    return call.services.advisories.take(call.db, call.caller, call.body.list.encode())


def advisories(call: Call[None]) -> list[AdvisoryPublisher]:
    """The newest list of each publisher that the operator trusts."""
    return call.services.advisories.listed(call.db)


def exposures(call: Call[ExposuresQuery]) -> list[VaultExposure]:
    """The organisation's vaults with exposed keys: first those that the exposed keys alone move, then by amount."""  # noqa: E501
    return call.services.advisories.exposed(call.db, call.caller, call.access, call.body.advisory_id)


ENDPOINTS = (
    Endpoint(
        "POST", "/api/v1/take-advisories", take_advisories, AdvisoryPublisher,
        frozenset({PermissionName.MANAGE_WORKSPACE}), Unit.WRITE, TakeAdvisoriesRequest,
        refuses=(StateConflict,),
    ),
    Endpoint("GET", "/api/v1/advisories", advisories, list[AdvisoryPublisher], Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "GET", "/api/v1/exposures", exposures, list[VaultExposure],
        frozenset(map(PermissionName, VAULT_READERS)), Unit.READ, ExposuresQuery, refuses=(NotFound,),
    ),
)  # fmt: skip
