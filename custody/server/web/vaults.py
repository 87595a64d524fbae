"""The most that a vault may send, and sweeping a vault that is replaced."""

from contextlib import suppress

from sqlalchemy.orm import Session

from custody.schemas.permissions import VAULT_READERS, PermissionName
from custody.schemas.proposals import CreatePsbtRequest
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
    LockedFunds,
    NotInAddressBook,
    PolicyUnavailable,
    StateConflict,
    TooFewSigners,
    VaultFrozen,
    WrongNetworkAddress,
)
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.requests.changes import MAX_TRIES, Outdated
from custody.server.vault_replacement import sweep_of
from custody.server.web.endpoint import Call, Endpoint, Unit

VAULT_MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
# Proposals of one sweep-vault: a bound on the work of a call.
MAX_SWEEPS = 20


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
