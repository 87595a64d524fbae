"""Signed advisories about devices, and the vaults that they expose. Evacuations: the plan, its start by two
people, how far it is, and another sweep of what came later.
"""

from custody.schemas.advisories import AdvisoryPublisher, ExposuresQuery, TakeAdvisoriesRequest, VaultExposure
from custody.schemas.evacuations import (
    Evacuation,
    EvacuationPlan,
    EvacuationsQuery,
    PreviewEvacuationRequest,
    StartEvacuationRequest,
    SweepAgainRequest,
    VaultKey,
)
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import ChainUnavailable, NotFound, StateConflict
from custody.server.domain.roles import VAULT_VIEWERS
from custody.server.service.incidents.evacuation_preview import PlanPage, keys_of_vaults
from custody.server.service.people.second_person import START_EVACUATION
from custody.server.web.endpoint import Auth, Call, Endpoint, Unit
from custody.server.web.vaults import VAULT_MANAGERS


def take_advisories(call: Call[TakeAdvisoriesRequest]) -> AdvisoryPublisher:
    """Hands in a publisher's newest list. Its signature alone decides; a list that is held already changes nothing."""  # noqa: E501
    return call.services.advisories.take(call.db, call.caller, call.body.list.encode())


def advisories(call: Call[None]) -> list[AdvisoryPublisher]:
    """The newest list of each publisher that the operator trusts."""
    return call.services.advisories.listed(call.db)


def exposures(call: Call[ExposuresQuery]) -> list[VaultExposure]:
    """The organisation's vaults with exposed keys: first those that the exposed keys alone move, then by amount."""  # noqa: E501
    return call.services.advisories.exposed(call.db, call.caller, call.access, call.body.advisory_id)


ADVISORIES = (
    Endpoint(
        "POST", "/api/v1/take-advisories", take_advisories, AdvisoryPublisher,
        frozenset({PermissionName.MANAGE_WORKSPACE}), Unit.WRITE, TakeAdvisoriesRequest,
        refuses=(StateConflict,),
    ),
    Endpoint("GET", "/api/v1/advisories", advisories, list[AdvisoryPublisher], Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "GET", "/api/v1/exposures", exposures, list[VaultExposure],
        VAULT_VIEWERS, Unit.READ, ExposuresQuery, refuses=(NotFound,),
    ),
)  # fmt: skip


def vault_keys(call: Call[WorkspaceQuery]) -> list[VaultKey]:
    """The keys that stand in the workspace's vaults, to choose the exposed ones from."""
    return keys_of_vaults(call.db, call.access)


def preview_evacuation(call: Call[PreviewEvacuationRequest]) -> EvacuationPlan:
    """What an evacuation of every vault with one of these keys would do: the replacements, what is swept, and what cannot
    be. It stores nothing.
    """  # noqa: E501
    part = PlanPage(call.body.first, call.body.count)
    return call.services.evacuations.plan(call.db, call.caller.user_id, call.access, call.body, part)


def start_evacuation(call: Call[StartEvacuationRequest]) -> Evacuation:
    """Makes the replacements and proposes the sweeps of the plan that has this hash. A second person always confirms it:
    by the organisation's rule, or where it has none another member with MANAGE_WORKSPACE. No limit and no address book
    stops these sweeps; a freeze does. Signers approve each on their devices.
    """  # noqa: E501
    return call.services.evacuations.start(call.db, call.caller, call.access, call.body)


def evacuations(call: Call[EvacuationsQuery]) -> list[Evacuation]:
    """The workspace's evacuations, the newest first, with how far each vault is and when it got there."""
    return call.services.evacuations.listed(call.db, call.access, call.body.evacuation_id)


def sweep_again(call: Call[SweepAgainRequest]) -> Evacuation:
    """Proposes what is at an evacuated vault and in no proposal, to its replacement: coins that came later, or what could
    not be swept before.
    """  # noqa: E501
    return call.services.evacuations.sweep_again(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "POST", "/api/v1/preview-evacuation", preview_evacuation, EvacuationPlan, VAULT_VIEWERS, Unit.READ,
        PreviewEvacuationRequest, refuses=(ChainUnavailable,),
    ),
    Endpoint(
        "GET", "/api/v1/vault-keys", vault_keys, list[VaultKey], VAULT_VIEWERS, Unit.READ, WorkspaceQuery,
    ),
    Endpoint(
        "POST", START_EVACUATION, start_evacuation, Evacuation, VAULT_MANAGERS, Unit.WRITE,
        StartEvacuationRequest, needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "GET", "/api/v1/evacuations", evacuations, list[Evacuation], VAULT_VIEWERS, Unit.READ,
        EvacuationsQuery, refuses=(NotFound,),
    ),
    Endpoint(
        "POST", "/api/v1/sweep-again", sweep_again, Evacuation, VAULT_MANAGERS, Unit.WRITE, SweepAgainRequest,
        refuses=(NotFound, StateConflict),
    ),
)  # fmt: skip
