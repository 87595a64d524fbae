"""Signing keys, which are the caller's own and in no workspace, and the vaults that are made of them."""

from custody.schemas.keys import (
    Key,
    KeyChallenge,
    KeyChallengeRequest,
    RegisterKeyRequest,
    RevokeKeyRequest,
    SigningProfileAddress,
)
from custody.schemas.queries import ProfileQuery, WorkspaceQuery
from custody.schemas.users import PermissionName
from custody.schemas.vault_exports import VaultExport, VaultExportQuery
from custody.schemas.vaults import CreateWalletRequest, Vault
from custody.server.domain.errors import (
    KeyAccountsExhausted,
    KeyAlreadyActive,
    NotFound,
    PermissionDenied,
    StateConflict,
    VaultsLeftShort,
)
from custody.server.service.stored_vaults import vault_in
from custody.server.service.vaults import exported
from custody.server.web.endpoint import Call, Door, Endpoint, Unit

READERS = frozenset(
    {PermissionName.MANAGE_WORKSPACE, PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES}
)


def key_challenge(call: Call[KeyChallengeRequest]) -> KeyChallenge:
    """A line for the device to sign, bound to the keys that will be offered; good for ten minutes, once."""
    return call.services.keys.challenge(call.db, call.caller, call.body)


def register_key(call: Call[RegisterKeyRequest]) -> Key:
    """Registers the caller's device on a network, or adds accounts to the one that is registered."""
    return call.services.keys.register(call.db, call.caller, call.body)


def keys(call: Call[None]) -> list[Key]:
    """The caller's keys, the oldest first, revoked ones too."""
    return call.services.keys.list_own(call.db, call.caller)


def revoke_key(call: Call[RevokeKeyRequest]) -> Key:
    """Revokes the caller's own key, or marks a member's as lost: with MANAGE_USERS in each of the member's workspaces on
    the key's network. Final. ``superseded`` still approves moves into the workspace's own vaults; ``lost`` approves
    nothing, and what it approved and is pending is asked of the others again. Refused where a vault keeps fewer signers
    than a movement needs, unless ``force`` is set.
    """
    return call.services.revocation.revoke(call.db, call.caller, call.body)


def signing_profile_address(call: Call[ProfileQuery]) -> SigningProfileAddress:
    """The address of the caller's own single-signature account (BIP-84) on a network, and what it holds."""
    return call.services.profiles.address(call.db, call.caller, call.body.network, call.body.key_id)


def create_wallet(call: Call[CreateWalletRequest]) -> Vault:
    """Creates an M-of-N vault. Its signers, threshold, name and network are fixed from then on."""
    return call.services.vaults.create(call.db, call.caller, call.access, call.body)


def list_wallets(call: Call[WorkspaceQuery]) -> list[Vault]:
    """The workspace's vaults, the oldest first."""
    return call.services.vaults.in_workspace(call.db, call.access)


def vault_export(call: Call[VaultExportQuery]) -> VaultExport:
    """The vault as other wallets import it: its descriptor with checksum and key origins, or a record of BIP-129 (BSMS)."""
    return exported(vault_in(call.db, call.access, call.body.vault_id), call.body)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/key-challenge",
        key_challenge,
        KeyChallenge,
        Door.SIGNED_IN,
        Unit.WRITE,
        KeyChallengeRequest,
    ),
    Endpoint(
        "POST",
        "/api/v1/register-key",
        register_key,
        Key,
        Door.SIGNED_IN,
        Unit.WRITE,
        RegisterKeyRequest,
        creates=True,
        refuses=(KeyAlreadyActive, StateConflict),
    ),
    Endpoint(
        "POST",
        "/api/v1/revoke-key",
        revoke_key,
        Key,
        Door.SIGNED_IN,
        Unit.WRITE,
        RevokeKeyRequest,
        refuses=(NotFound, PermissionDenied, StateConflict, VaultsLeftShort),
    ),
    Endpoint("GET", "/api/v1/keys", keys, list[Key], Door.SIGNED_IN, Unit.READ),
    Endpoint(
        "GET",
        "/api/v1/signing-profile-address",
        signing_profile_address,
        SigningProfileAddress,
        Door.SIGNED_IN,
        Unit.READ,
        ProfileQuery,
        refuses=(NotFound,),
    ),
    Endpoint(
        "POST",
        "/api/v1/create_wallet",
        create_wallet,
        Vault,
        frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE,
        CreateWalletRequest,
        creates=True,
        refuses=(KeyAccountsExhausted, StateConflict),
    ),
    Endpoint("GET", "/api/v1/list-wallets", list_wallets, list[Vault], READERS, Unit.READ, WorkspaceQuery),
    Endpoint("GET", "/api/v1/vault-export", vault_export, VaultExport, READERS, Unit.READ, VaultExportQuery),
)
