"""Registering a device's keys, with a proof that the caller holds it, and its signing profile."""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.schemas import keys as wire
from custody.schemas.common import Listed, NullString
from custody.schemas.keys import ChallengeLine, RevokedReason, signed_host
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, new_id
from custody.server.domain.errors import (
    Invalid,
    KeyAlreadyActive,
    RateLimited,
    StateConflict,
)
from custody.server.domain.keys import OfferedKey, check_offer, check_proof
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.keys.profiles import require_free_profile, scripts_of, watch_profile
from custody.server.service.shown import shown
from custody.server.service.webhook_events import WebhookEvents, tell_revoked
from custody.server.store.models import Key, KeyAccount, KeyChallenge, Profile

CHALLENGE_LIFETIME = timedelta(minutes=10)
MAX_OPEN_CHALLENGES = 20
SUPERSEDED: RevokedReason = "superseded"


class Keys:
    """``public_url``: of this platform, which the challenge names."""

    def __init__(self, clock: Clock, random: RandomBytes, audit: AuditLog, public_url: str | None) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._host = signed_host(public_url)

    def challenge(self, db: Session, caller: Caller, request: wire.KeyChallengeRequest) -> wire.KeyChallenge:
        """A text to sign, bound to this platform, the user, network and offered keys.

        Raises Invalid, RateLimited.
        """
        offered = check_offer(request)
        now = self._clock()
        self._check_challenge_budget(db, caller, now)
        line = ChallengeLine(
            self._host, offered.network, caller.user_id, new_id(self._random), offered.digest
        )
        expires_at = now + CHALLENGE_LIFETIME
        db.add(
            KeyChallenge(
                user_id=caller.user_id,
                network=offered.network,
                challenge=str(line),
                offered_digest=offered.digest,
                created_at=now,
                expires_at=expires_at,
            )
        )
        return wire.KeyChallenge(
            challenge=str(line), derivation_path=str(offered.proof_path), expires_at=expires_at
        )

    def register(self, db: Session, caller: Caller, request: wire.RegisterKeyRequest) -> wire.Key:
        """Registers a device, or adds accounts to the one that is registered.

        Raises Invalid (offer or proof), KeyAlreadyActive (another device, and not ``replace``), StateConflict
        (the device or its profile is registered by another user).
        """
        offered = check_offer(request)
        self._check_possession(db, caller, offered, request.proof)
        active = active_key(db, caller.user_id, offered.network)
        if active is not None and active.xpub == str(offered.xpub):
            return self._top_up(db, caller, active, offered)
        if active is not None:
            if not request.replace:
                raise KeyAlreadyActive("Another device is registered on this network already.")
            self._supersede(db, caller, active)
        self._check_free(db, offered)
        return self._insert(db, caller, offered, request)

    def list_own(self, db: Session, caller: Caller) -> Listed[wire.Key]:
        """The caller's keys, the oldest first, revoked ones too."""
        query = select(Key).where(Key.user_id == caller.user_id).order_by(Key.created_at, Key.id)
        found = db.scalars(query).all()
        return shown(found, lambda some: [key_shape(db, key) for key in some], "ID", lambda key: key.id)

    def _check_challenge_budget(self, db: Session, caller: Caller, now: datetime) -> None:
        mine = KeyChallenge.user_id == caller.user_id
        db.execute(delete(KeyChallenge).where(mine, KeyChallenge.expires_at <= now))
        count = db.scalar(select(func.count()).where(mine, KeyChallenge.used_at.is_(None)))
        if (count or 0) >= MAX_OPEN_CHALLENGES:
            raise RateLimited(
                "Too many challenges are open.", retry_after=int(CHALLENGE_LIFETIME.total_seconds())
            )

    def _check_possession(
        self, db: Session, caller: Caller, offered: OfferedKey, proof: wire.KeyProof | None
    ) -> None:
        if proof is None:
            raise _bad_proof("/proof", "A proof of possession is required: ask for a key-challenge first.")
        row = db.scalars(select(KeyChallenge).where(KeyChallenge.challenge == proof.challenge)).one_or_none()
        now = self._clock()
        if row is None or row.user_id != caller.user_id or row.used_at is not None or row.expires_at <= now:
            raise _bad_proof("/proof/challenge", "The challenge is unknown, was used, or has expired.")
        if row.network != offered.network or row.offered_digest != offered.digest:
            raise _bad_proof(
                "/proof/challenge", "The challenge was made for other keys than the ones offered."
            )
        check_proof(offered, proof.challenge, proof.signature)
        row.used_at = now

    def _check_free(self, db: Session, offered: OfferedKey) -> None:
        """Call it after the proof: an xpub alone must not reveal whether it is registered."""
        taken = select(Key.id).where(Key.xpub == str(offered.xpub), Key.status == "active")
        if db.scalars(taken).first() is not None:
            raise StateConflict("This device is registered by another account.")

    def _supersede(self, db: Session, caller: Caller, key: Key) -> None:
        key.status, key.revoked_reason, key.updated_at = "revoked", SUPERSEDED, self._clock()
        db.flush()
        tell_revoked(WebhookEvents(self._clock, self._random), db, key)
        self._audit.record(db, caller, Category.KEYS, "KEY_REVOKED", f"key {key.id} superseded")

    def _insert(
        self, db: Session, caller: Caller, offered: OfferedKey, request: wire.RegisterKeyRequest
    ) -> wire.Key:
        now, device = self._clock(), request.device
        key = Key(
            id=new_id(self._random),
            user_id=caller.user_id,
            network=offered.network,
            status="active",
            key_type="xpub",
            xpub=str(offered.xpub),
            pub_key_hex=offered.xpub.public_key.hex(),
            master_fingerprint=offered.fingerprint.hex,
            derivation_base_path=str(offered.base_path),
            label=request.label,
            maker=device.maker,
            model=device.model,
            firmware=device.firmware,
            created_at=now,
            updated_at=now,
        )
        db.add(key)
        db.flush()
        added = self._add_accounts(db, key, offered)
        self._audit.record(
            db,
            caller,
            Category.KEYS,
            "KEY_REGISTERED",
            f"key {key.id}, {key.network}, fingerprint {key.master_fingerprint}, {added} accounts",
        )
        return key_shape(db, key)

    def _top_up(self, db: Session, caller: Caller, key: Key, offered: OfferedKey) -> wire.Key:
        if key.master_fingerprint != offered.fingerprint.hex:
            sentence = "The key is registered with another fingerprint."
            raise Invalid.at("/master_fingerprint", sentence)
        added = self._add_accounts(db, key, offered)
        if added:
            key.updated_at = self._clock()
            self._audit.record(
                db, caller, Category.KEYS, "KEY_ACCOUNTS_ADDED", f"key {key.id}, {added} accounts"
            )
        return key_shape(db, key)

    def _add_accounts(self, db: Session, key: Key, offered: OfferedKey) -> int:
        """Adds the accounts that are new, except those a vault took when the device was registered before."""
        _check_accounts_free(db, key, offered)
        query = select(KeyAccount.account, KeyAccount.xpub).where(KeyAccount.key_id == key.id)
        known = {row.account: row.xpub for row in db.execute(query)}
        taken = _taken_xpubs(db, offered)
        fresh = []
        for account in offered.accounts:
            if known.get(account.account, str(account.xpub)) != str(account.xpub):
                sentence = f"Account {account.account} is registered with another xpub."
                raise Invalid.at("/vault_accounts", sentence)
            if account.account not in known and str(account.xpub) not in taken:
                fresh.append(account)
        db.add_all(
            KeyAccount(
                key_id=key.id,
                account=account.account,
                derivation_path=str(account.path),
                xpub=str(account.xpub),
            )
            for account in fresh
        )
        self._add_profile(db, key, offered)
        return len(fresh)

    def _add_profile(self, db: Session, key: Key, offered: OfferedKey) -> None:
        if offered.profile is None:
            return
        path, xpub = offered.profile
        known = db.get(Profile, key.id)
        if known is not None and known.xpub != str(xpub):
            sentence = "The profile of this key is registered with another xpub."
            raise Invalid.at("/profile/xpub", sentence)
        if known is None:
            script = scripts_of(str(xpub)).receive
            require_free_profile(db, key, script)
            profile = Profile(
                key_id=key.id,
                xpub=str(xpub),
                derivation_base_path=str(path),
                receive_script=script,
                created_at=self._clock(),
            )
            db.add(profile)
            db.flush()
            watch_profile(db, key.network, profile)


def active_key(db: Session, user_id: int, network: str) -> Key | None:
    """A member's one active key on a network."""
    return db.scalars(
        select(Key).where(Key.user_id == user_id, Key.network == network, Key.status == "active")
    ).one_or_none()


def _taken_xpubs(db: Session, offered: OfferedKey) -> set[str]:
    xpubs = [str(account.xpub) for account in offered.accounts]
    query = select(KeyAccount.xpub).where(KeyAccount.xpub.in_(xpubs), KeyAccount.vault_id.is_not(None))
    return set(db.scalars(query))


def _check_accounts_free(db: Session, key: Key, offered: OfferedKey) -> None:
    """The proof covers account 0 alone. The others must not belong to another member: one person would
    then be two signers of a vault.
    """
    query = (
        select(KeyAccount.account)
        .join(Key, Key.id == KeyAccount.key_id)
        .where(
            KeyAccount.xpub.in_([str(account.xpub) for account in offered.accounts]),
            Key.user_id != key.user_id,
            Key.status == "active",
        )
    )
    if db.scalars(query).first() is not None:
        raise StateConflict("One of the accounts is registered by another account holder.")


def key_shape(db: Session, key: Key) -> wire.Key:
    counted = select(
        func.count() - func.count(KeyAccount.vault_id), func.coalesce(func.max(KeyAccount.account) + 1, 0)
    ).where(KeyAccount.key_id == key.id)
    free, following = db.execute(counted).one()
    return wire.Key.model_validate(
        {
            "id": key.id,
            "user_id": str(key.user_id),
            "key_type": key.key_type,
            "status": key.status,
            "pub_key_hex": NullString.of(key.pub_key_hex),
            "xpub": NullString.of(key.xpub),
            "master_fingerprint": NullString.of(key.master_fingerprint),
            "derivation_base_path": NullString.of(key.derivation_base_path),
            "label": NullString.of(key.label),
            "net": key.network,
            "revoked_reason": NullString.of(key.revoked_reason),
            "free_accounts": free,
            "next_account": following,
            "device": wire.RegisteredDevice(maker=key.maker, model=key.model, firmware=key.firmware),
            "created_at": key.created_at,
            "updated_at": key.updated_at,
        }
    )


def _bad_proof(pointer: str, sentence: str) -> Invalid:
    return Invalid.at(pointer, sentence, "bad-proof")
