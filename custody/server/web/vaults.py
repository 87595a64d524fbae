"""Signing keys, which belong to their owner and to no workspace; and vaults."""

from contextlib import suppress

from sqlalchemy.orm import Session

from custody.schemas.common import Listed
from custody.schemas.keys import (
    Key,
    KeyChallenge,
    KeyChallengeRequest,
    RegisterKeyRequest,
    RevokeKeyRequest,
    SigningProfileAddress,
)
from custody.schemas.permissions import VAULT_READERS, Auth, PermissionName
from custody.schemas.proposals import CreatePsbtRequest
from custody.schemas.queries import ProfileQuery
from custody.schemas.vaults import (
    MaxSend,
    MaxSendQuery,
    SweepVaultRequest,
    SweptVault,
)
from custody.server.domain.errors import (
    ChainUnavailable,
    Dust,
    InsufficientFunds,
    KeyAlreadyActive,
    LockedFunds,
    NotFound,
    NotInAddressBook,
    PermissionDenied,
    PolicyUnavailable,
    StateConflict,
    TooFewSigners,
    VaultFrozen,
    VaultsLeftShort,
    WrongNetworkAddress,
)
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.requests.changes import MAX_TRIES, Outdated
from custody.server.vault_replacement import sweep_of
from custody.server.web.endpoint import Call, Endpoint, Unit

VAULT_MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
APPROVERS = frozenset({PermissionName.PAYMENT_APPROVE})
# Proposals of one sweep-vault: a bound on the work of a call.
MAX_SWEEPS = 20


def key_challenge(call: Call[KeyChallengeRequest]) -> KeyChallenge:
    """A line for the device to sign, bound to the keys that will be offered; good for ten minutes, once."""
    return call.services.keys.challenge(call.db, call.caller, call.body)


def register_key(call: Call[RegisterKeyRequest]) -> Key:
    """Registers the caller's device on a network, or adds accounts to the one that is registered."""
    return call.services.keys.register(call.db, call.caller, call.body)


def keys(call: Call[None]) -> Listed[Key]:
    """The caller's keys, the oldest first, revoked ones too."""
    return call.services.keys.list_own(call.db, call.caller)


def revoke_key(call: Call[RevokeKeyRequest]) -> Key:
    """Revokes the caller's own key, or marks a member's as lost: with MANAGE_USERS in each of the member's workspaces on
    the key's network. Final. ``superseded`` still approves moves into the workspace's own vaults; ``lost`` approves
    nothing, and what it approved and is pending is asked of the others again. Refused where a vault keeps fewer signers
    than a movement needs, unless ``force`` is set. Where an organisation has the rule of two people, a second person
    confirms that a member's key is lost; one's own needs nobody.
    """  # noqa: E501
    # Only request-change and confirm-change enter a workspace.
    agreed_in = None if call.maybe_access is None else call.maybe_access.organisation_id
    return call.services.revocation.revoke(call.db, call.caller, call.body, agreed_in=agreed_in)


def signing_profile_address(call: Call[ProfileQuery]) -> SigningProfileAddress:
    """The address of the caller's own single-signature account (BIP-84) on a network, and what it holds."""
    return call.services.profiles.address(call.db, call.caller, call.body.network, call.body.key_id)


ENDPOINTS = (
    Endpoint(
        "POST", "/api/v1/key-challenge", key_challenge, KeyChallenge, Auth.SIGNED_IN, Unit.WRITE,
        KeyChallengeRequest,
    ),
    Endpoint(
        "POST", "/api/v1/register-key", register_key, Key, Auth.SIGNED_IN, Unit.WRITE, RegisterKeyRequest,
        creates=True, refuses=(KeyAlreadyActive, StateConflict),
    ),
    Endpoint(
        "POST", "/api/v1/revoke-key", revoke_key, Key, Auth.SIGNED_IN, Unit.WRITE, RevokeKeyRequest,
        needs_second_person=True, refuses=(NotFound, PermissionDenied, StateConflict, VaultsLeftShort),
    ),
    Endpoint("GET", "/api/v1/keys", keys, Listed[Key], Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "GET", "/api/v1/signing-profile-address", signing_profile_address, SigningProfileAddress,
        Auth.SIGNED_IN, Unit.READ, ProfileQuery, refuses=(NotFound,),
    ),
)  # fmt: skip


def max_send(call: Call[MaxSendQuery]) -> MaxSend:
    """The most that the caller can send to the recipients in one payment now, fee beside it, and why it is not more.
    ``create-psbt`` accepts it as long as nothing else happens. It reserves nothing.
    """  # noqa: E501
    return call.services.maximum.find(call.db, call.caller, call.access, call.body)


def sweep_vault(call: Call[SweepVaultRequest]) -> SweptVault:
    """Proposes to move all that is free of a replaced vault into its replacement, in as many proposals as its coins need. Call it
    again for what comes later.
    """  # noqa: E501
    made: list[str] = []
    try:
        while len(made) < MAX_SWEEPS:
            made.append(_sweep_once(call))
    except (Dust, InsufficientFunds, LockedFunds, StateConflict):
        if not made:
            raise
    return SweptVault(psbt_ids=made)


def _sweep_once(call: Call[SweepVaultRequest]) -> str:
    """Drafts outside the write lock; after several outdated tries, inside."""
    store = call.services.store
    for tries in range(MAX_TRIES):
        with store.read() as db:
            drafted = _draft_sweep(call, db, tries)
        with suppress(Outdated), store.write() as db:
            return _store_sweep(call, db, *drafted)
    with store.write() as db:
        return _store_sweep(call, db, *_draft_sweep(call, db, MAX_TRIES))


def _draft_sweep(
    call: Call[SweepVaultRequest], db: Session, tries: int
) -> tuple[CreatePsbtRequest, Prepared]:
    access = call.enter(db, call.body.workspace_id)
    wanted = sweep_of(db, access, call.body)
    return wanted, call.services.proposals.draft(db, call.caller, access, wanted, tries=tries)


def _store_sweep(
    call: Call[SweepVaultRequest], db: Session, wanted: CreatePsbtRequest, prepared: Prepared
) -> str:
    access = call.enter(db, call.body.workspace_id)
    return call.services.proposals.create(db, call.caller, access, wanted, prepared).psbt_id


MAX_SEND = (
    Endpoint(
        "GET", "/api/v1/max-send", max_send, MaxSend, VAULT_READERS, Unit.READ, MaxSendQuery,
        refuses=(
            ChainUnavailable, NotInAddressBook, PolicyUnavailable, StateConflict, TooFewSigners, VaultFrozen,
            WrongNetworkAddress,
        ),
    ),
    Endpoint(
        "POST", "/api/v1/sweep-vault", sweep_vault, SweptVault, VAULT_MANAGERS, Unit.OWN, SweepVaultRequest,
        refuses=(
            ChainUnavailable, Dust, InsufficientFunds, LockedFunds, StateConflict, TooFewSigners, VaultFrozen,
        ),
    ),
)  # fmt: skip
