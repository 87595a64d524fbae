"""A member's own profile: the account of a key, its watched scripts and its balance."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import case, select
from sqlalchemy.orm import Session

from custody.server.errors import NotFound, StateConflict
from custody.server.rules.keys import may_move_on
from custody.server.store.models import KeyRow, ProfileRow, WatchedScriptRow, WorkspaceRow
from multisig import (
    CHANGE,
    RECEIVE,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    KeyOrigin,
    Network,
    OriginKey,
    p2wpkh,
)
from multisig import Profile as Policy

# The change of a forward always goes to the first change address, m/84h/…/1/0. A Ledger recognises change
# only on the change branch (Trezor and Coldcard do there too): change to the profile's receive address
# would be shown as a second payment. Every wallet that restores the account scans both addresses (BIP-84,
# BIP-44).
CHANGE_INDEX = 0
# Deriving takes two multiplications on the curve, and every balance needs the scripts.
CACHED_PROFILES = 4_096


class ProfileScripts(NamedTuple):
    receive: bytes
    change: bytes


@lru_cache(CACHED_PROFILES)
def scripts_of(xpub: str) -> ProfileScripts:
    account = ExtendedPublicKey.parse(xpub)
    return ProfileScripts(
        p2wpkh(account.derive_public_key(RECEIVE, 0)), p2wpkh(account.derive_public_key(CHANGE, CHANGE_INDEX))
    )


def watch_profile(db: Session, network: str, profile: ProfileRow) -> None:
    """Watches the profile's scripts for good: it may receive money after its key was revoked.

    While no workspace is on the network, its chain is unknown; `watch_profiles` catches up then.
    """
    chain = chain_on(db, network)
    if chain is not None:
        _watch(db, chain.value, profile)


def watch_profiles(db: Session, network: str, chain: str) -> None:
    """Watches the profiles that were registered before the network had a workspace."""
    for profile in db.scalars(
        select(ProfileRow).join(KeyRow, KeyRow.id == ProfileRow.key_id).where(KeyRow.network == network)
    ):
        _watch(db, chain, profile)


def _watch(db: Session, chain: str, profile: ProfileRow) -> None:
    scripts = scripts_of(profile.xpub)
    for branch, index, script in ((RECEIVE, 0, scripts.receive), (CHANGE, CHANGE_INDEX, scripts.change)):
        if db.get(WatchedScriptRow, (chain, script)) is None:
            db.add(
                WatchedScriptRow(
                    chain=chain, script_pubkey=script, vault_id=None, branch=branch, address_index=index
                )
            )
    db.flush()


@dataclass(frozen=True)
class OwnProfile:
    """A profile with the key that it was registered with."""

    key: KeyRow
    profile: ProfileRow

    @property
    def scripts(self) -> ProfileScripts:
        return scripts_of(self.profile.xpub)

    @property
    def can_forward(self) -> bool:
        """A lost key can no longer sign; a superseded one can still move its money."""
        return self.key.status == "active" or may_move_on(self.key.revoked_reason)

    def policy(self, db: Session) -> Policy:
        """On the chain of the key's network. Raises NotFound where no workspace is there."""
        chain = chain_on(db, self.key.network)
        if chain is None:
            raise NotFound(f"No workspace of this platform is on {self.key.network}.")
        return Policy(chain, origin_key(self.key, self.profile.derivation_base_path, self.profile.xpub))


def origin_key(key: KeyRow, path: str, xpub: str) -> OriginKey:
    """Of an account of the key's device."""
    origin = KeyOrigin(Fingerprint.from_hex(key.master_fingerprint), DerivationPath.parse(path))
    return OriginKey(origin, ExtendedPublicKey.parse(xpub))


def no_profile() -> NotFound:
    return NotFound("No signing profile is registered on this network.")


def own_profiles(db: Session, user_id: int, network: str) -> list[OwnProfile]:
    """All profiles of a member on a network, also of revoked keys: the active one first, then the newest."""
    query = (
        select(KeyRow, ProfileRow)
        .join(ProfileRow, ProfileRow.key_id == KeyRow.id)
        .where(KeyRow.user_id == user_id, KeyRow.network == network)
        .order_by(case((KeyRow.status == "active", 0), else_=1), KeyRow.created_at.desc(), KeyRow.id)
    )
    return [OwnProfile(key, profile) for key, profile in db.execute(query)]


def require_free_profile(db: Session, key: KeyRow, receive_script: bytes) -> None:
    """A profile belongs to one member: a second one could see its balance, and lock its coins with forwards.

    The proof of a registration covers the key for vaults, not the profile, so the first to register a profile
    keeps it. Where that is not its owner, the operator marks that member's key lost: a lost key has no
    profile. Raises StateConflict.
    """
    query = (
        select(KeyRow, ProfileRow)
        .join(ProfileRow, ProfileRow.key_id == KeyRow.id)
        .where(
            ProfileRow.receive_script == receive_script,
            KeyRow.network == key.network,
            KeyRow.user_id != key.user_id,
        )
    )
    if any(OwnProfile(holder, profile).can_forward for holder, profile in db.execute(query)):
        raise StateConflict("The signing profile is registered by another account.")


def chain_on(db: Session, network: str) -> Network | None:
    """The chain of an API network, the same for the whole platform. None without a workspace there."""
    chain = db.scalar(select(WorkspaceRow.chain).where(WorkspaceRow.network == network).limit(1))
    return None if chain is None else Network(chain)
