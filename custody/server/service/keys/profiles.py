"""A member's own profile: the account that came with a key, whose it is, and what it holds."""

from dataclasses import dataclass

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from custody.schemas import keys as wire
from custody.schemas.common import ApiNetwork
from custody.server.domain.caller import Caller
from custody.server.domain.errors import NotFound, StateConflict
from custody.server.domain.keys import may_move_on
from custody.server.service.keys.standing import reason_of
from custody.server.service.network.profile_watching import ProfileScripts, scripts_of
from custody.server.service.people.people import chain_of_network
from custody.server.service.vaults.vault_records import Balance
from custody.server.store.models import ChainCoin, CoinLock, Key, Profile
from multisig import RECEIVE, DerivationPath, ExtendedPublicKey, Fingerprint, KeyOrigin, OriginKey
from multisig import Profile as Policy


@dataclass(frozen=True)
class OwnProfile:
    """A profile with the key that it was registered with."""

    key: Key
    profile: Profile

    @property
    def scripts(self) -> ProfileScripts:
        return scripts_of(self.profile.xpub)

    @property
    def can_forward(self) -> bool:
        """A lost key signs nothing any more; a superseded one still moves its money on."""
        return self.key.status == "active" or may_move_on(reason_of(self.key))

    def policy(self, db: Session) -> Policy:
        """Raises NotFound where no workspace is on the key's network, so that the chain is not known."""
        return profile_policy(db, self.key, self.profile)


class Profiles:
    def address(
        self, db: Session, caller: Caller, network: ApiNetwork, key_id: str | None
    ) -> wire.SigningProfileAddress:
        """Of the caller's active key, or of any key of theirs by its id. Raises NotFound."""
        for own in own_profiles(db, caller.user_id, network):
            if own.key.id == key_id or (key_id is None and own.key.status == "active"):
                return _shape(db, own, network)
        raise no_profile()


def no_profile() -> NotFound:
    return NotFound("No signing profile is registered on this network.")


def own_profiles(db: Session, user_id: int, network: str) -> list[OwnProfile]:
    """All of a member's on a network, revoked keys' too: the active one first, then the newest."""
    query = (
        select(Key, Profile)
        .join(Profile, Profile.key_id == Key.id)
        .where(Key.user_id == user_id, Key.network == network)
        .order_by(case((Key.status == "active", 0), else_=1), Key.created_at.desc(), Key.id)
    )
    return [OwnProfile(key, profile) for key, profile in db.execute(query)]


def require_free_profile(db: Session, key: Key, receive_script: bytes) -> None:
    """A profile is one person's: whoever else could name it would see what it holds, and could hold its coins with forwards.

    The proof of a registration covers the key for vaults, not the profile, so who came first has it. Where that was not its
    owner, the operator marks the other's key lost: a lost key holds no profile. Raises StateConflict.
    """
    query = (
        select(Key)
        .join(Profile, Profile.key_id == Key.id)
        .where(
            Profile.receive_script == receive_script, Key.network == key.network, Key.user_id != key.user_id
        )
    )
    if any(OwnProfile(holder, db.get_one(Profile, holder.id)).can_forward for holder in db.scalars(query)):
        raise StateConflict("The signing profile is registered by another account.")


def profile_policy(db: Session, key: Key, profile: Profile) -> Policy:
    """The profile as a policy on the chain behind the key's network. Raises NotFound where no workspace is on it."""
    origin = KeyOrigin(
        Fingerprint.from_hex(key.master_fingerprint), DerivationPath.parse(profile.derivation_base_path)
    )
    chain = chain_of_network(db, key.network)
    return Policy(chain, OriginKey(origin, ExtendedPublicKey.parse(profile.xpub)))


def balance_of_profile(db: Session, chain: str, scripts: ProfileScripts) -> Balance:
    """What the chain shows at its address and at its change address."""
    lock = and_(
        CoinLock.chain == ChainCoin.chain, CoinLock.txid == ChainCoin.txid, CoinLock.vout == ChainCoin.vout
    )
    confirmed = ChainCoin.height.is_not(None)
    sums = (
        case((which, ChainCoin.amount_sats), else_=0)
        for which in (confirmed, ~confirmed, CoinLock.txid.is_not(None))
    )
    query = (
        select(*(func.coalesce(func.sum(each), 0) for each in sums))
        .select_from(ChainCoin)
        .outerjoin(CoinLock, lock)
        .where(
            ChainCoin.chain == chain,
            ChainCoin.vault_id.is_(None),
            ChainCoin.script_pubkey.in_(scripts),
            ChainCoin.spent_by.is_(None),
        )
    )
    return Balance(*(int(figure) for figure in db.execute(query).one()))


def _shape(db: Session, own: OwnProfile, network: ApiNetwork) -> wire.SigningProfileAddress:
    policy = own.policy(db)
    balance = balance_of_profile(db, policy.network.value, own.scripts)
    return wire.SigningProfileAddress(
        network=network,
        wallet_address=policy.address(RECEIVE, 0),
        derivation_path=str(policy.key.origin.path / RECEIVE / 0),
        key_id=own.key.id,
        confirmed_sats=balance.confirmed,
        unconfirmed_sats=balance.unconfirmed,
        locked_sats=balance.locked,
    )
