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
from custody.schemas.limits import VaultQuery
from custody.schemas.permissions import VAULT_READERS, VAULT_VIEWERS, Auth, PermissionName
from custody.schemas.proposals import CreatePsbtRequest
from custody.schemas.queries import ProfileQuery
from custody.schemas.vaults import (
    CreateWalletRequest,
    FreezeVaultRequest,
    MaxSend,
    MaxSendQuery,
    ReplacedVault,
    ReplaceVaultRequest,
    SweepVaultRequest,
    SweptVault,
    UnfreezeVaultRequest,
    UpdateVaultControlsRequest,
    Vault,
    VaultControls,
    VaultExport,
    VaultExportQuery,
    VaultName,
    VaultsQuery,
)
from custody.server.domain.errors import (
    ChainUnavailable,
    Dust,
    InsufficientFunds,
    KeyAccountsExhausted,
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
from custody.server.service import vaults
from custody.server.service.proposals.proposals import Prepared
from custody.server.service.requests.changes import MAX_TRIES, Outdated
from custody.server.service.stored_vaults import vault_in
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


def create_wallet(call: Call[CreateWalletRequest]) -> Vault:
    """Creates an M-of-N vault. Its signers, threshold, name and network are fixed from then on."""
    return call.services.vaults.create(call.db, call.caller, call.access, call.body)


def list_wallets(call: Call[VaultsQuery]) -> Listed[Vault]:
    """The workspace's vaults, the oldest first: all, a page of them, one, or those of a name."""
    return call.services.vaults.in_workspace(call.db, call.access, call.body)


def vault_names(call: Call[VaultsQuery]) -> Listed[VaultName]:
    """Their names alone, to choose from: of any number of vaults in one answer."""
    return vaults.vault_names(call.db, call.access, call.body)


def vault_export(call: Call[VaultExportQuery]) -> VaultExport:
    """The vault as other wallets import it: its descriptor with checksum and key origins, or a record of BIP-129 (BSMS)."""  # noqa: E501
    return vaults.exported(vault_in(call.db, call.access, call.body.vault_id), call.body)


def vault_controls(call: Call[VaultQuery]) -> VaultControls:
    """What bounds the vault beside its limits, whether it is frozen, and what a freeze holds up."""
    return call.services.vault_controls.of_vault(call.db, call.access, call.body.vault_id)


def update_vault_controls(call: Call[UpdateVaultControlsRequest]) -> VaultControls:
    """Binds the vault to the address book, and says whether a signer may approve what they proposed. Counts for the next
    proposal, and for the next approval of those that wait.
    """  # noqa: E501
    return call.services.vault_controls.replace(call.db, call.caller, call.access, call.body)


def replace_vault(call: Call[ReplaceVaultRequest]) -> ReplacedVault:
    """Makes a vault in the place of another one, whose coins may then move there alone. No limit counts such a move, and the
    address book does not bind it: a second person always confirms the replacement. Payments without a signature are cancelled.
    """  # noqa: E501
    return call.services.vault_replacement.replace(call.db, call.caller, call.access, call.body)


def freeze_vault(call: Call[FreezeVaultRequest]) -> VaultControls:
    """Freezes the vault at once: nothing is proposed, approved or sent until two members unfreeze it. What met its
    threshold waits as STALLED; what is on the network stays there. Of a frozen vault it takes back the first word for
    unfreezing it.
    """  # noqa: E501
    return call.services.vault_controls.freeze(call.db, call.caller, call.access, call.body)


def unfreeze_vault(call: Call[UnfreezeVaultRequest]) -> VaultControls:
    """The first member asks, and another one within a day unfreezes. Then what waits is sent, and may be approved."""  # noqa: E501
    return call.services.vault_controls.unfreeze(call.db, call.caller, call.access, call.body)


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
    Endpoint(
        "POST", "/api/v1/create_wallet", create_wallet, Vault, frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE, CreateWalletRequest, creates=True, refuses=(KeyAccountsExhausted, StateConflict),
    ),
    Endpoint(
        "GET", "/api/v1/list-wallets", list_wallets, Listed[Vault], VAULT_READERS, Unit.READ, VaultsQuery,
        refuses=(NotFound,),
    ),
    Endpoint(
        "GET", "/api/v1/vault-names", vault_names, Listed[VaultName], VAULT_READERS, Unit.READ, VaultsQuery,
        refuses=(NotFound,),
    ),
    Endpoint(
        "GET", "/api/v1/vault-export", vault_export, VaultExport, VAULT_VIEWERS, Unit.READ, VaultExportQuery,
    ),
    Endpoint(
        "GET", "/api/v1/vault-controls", vault_controls, VaultControls, VAULT_READERS, Unit.READ, VaultQuery,
    ),
    Endpoint(
        "POST", "/api/v1/update-vault-controls", update_vault_controls, VaultControls, VAULT_MANAGERS,
        Unit.WRITE, UpdateVaultControlsRequest,
        needs_second_person=True,
    ),
    Endpoint(
        "POST", "/api/v1/replace-vault", replace_vault, ReplacedVault, VAULT_MANAGERS, Unit.WRITE,
        ReplaceVaultRequest, needs_second_person=True,
        refuses=(KeyAccountsExhausted, PolicyUnavailable, StateConflict, TooFewSigners, VaultFrozen),
    ),
    Endpoint(
        "POST", "/api/v1/freeze-vault", freeze_vault, VaultControls, APPROVERS, Unit.WRITE,
        FreezeVaultRequest,
    ),
    Endpoint(
        "POST", "/api/v1/unfreeze-vault", unfreeze_vault, VaultControls, APPROVERS, Unit.WRITE,
        UnfreezeVaultRequest, refuses=(StateConflict,),
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
    wanted = call.services.vault_replacement.sweep_of(db, access, call.body)
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
