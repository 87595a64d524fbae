"""Which scripts of members' profiles the chain is watched for: the one address, and where a forward's change comes back.

The change of a fixed amount goes to the first change address, m/84h/…/1/0, always. A Ledger takes an output for change on the
change chain alone, and a Trezor and a Coldcard take it there too: sent back to the profile's address it would stand on a
Ledger's screen as a second payment. One change address is enough where there is one address to receive; both are where every
wallet that restores the account looks first (BIP-84, BIP-44).
"""

from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.store.models import Key, Profile, WatchedScript, Workspace
from multisig import CHANGE, RECEIVE, ExtendedPublicKey, p2wpkh

CHANGE_INDEX = 0
# Deriving takes two multiplications on the curve; a balance asks for them at every look.
CACHED_PROFILES = 4_096


class ProfileScripts(NamedTuple):
    """The scripts of one profile: where it is paid, and where its change comes back."""

    receive: bytes
    change: bytes


@lru_cache(CACHED_PROFILES)
def scripts_of(xpub: str) -> ProfileScripts:
    account = ExtendedPublicKey.parse(xpub)
    return ProfileScripts(
        p2wpkh(account.derive_public_key(RECEIVE, 0)), p2wpkh(account.derive_public_key(CHANGE, CHANGE_INDEX))
    )


def watch_profile(db: Session, network: str, profile: Profile) -> None:
    """From now on, and for ever: money may come to it after its key was revoked. Nothing where it is watched already.

    While no workspace is on the network, the chain behind it is not known; `watch_profiles` makes up for it then.
    """
    chain = db.scalars(select(Workspace.chain).where(Workspace.network == network).limit(1)).first()
    if chain is not None:
        _watch(db, chain, profile)


def watch_profiles(db: Session, network: str, chain: str) -> None:
    """Those that were registered before any workspace was on the network."""
    for profile in db.scalars(
        select(Profile).join(Key, Key.id == Profile.key_id).where(Key.network == network)
    ):
        _watch(db, chain, profile)


def _watch(db: Session, chain: str, profile: Profile) -> None:
    scripts = scripts_of(profile.xpub)
    for branch, index, script in ((RECEIVE, 0, scripts.receive), (CHANGE, CHANGE_INDEX, scripts.change)):
        if db.get(WatchedScript, (chain, script)) is None:
            db.add(
                WatchedScript(
                    chain=chain, script_pubkey=script, vault_id=None, branch=branch, address_index=index
                )
            )
    db.flush()
