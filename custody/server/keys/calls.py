"""Registering a device's keys, with a proof that the caller holds it, and its signing profile."""

from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.schemas import keys as wire
from custody.schemas.common import Listed
from custody.schemas.keys import (
    KEY_CHALLENGE,
    KEYS,
    REGISTER_KEY,
    SIGNING_PROFILE_ADDRESS,
    ChallengeLine,
    ProfileQuery,
    RevokedReason,
    signed_host,
)
from custody.server.calls import Ctx, serves
from custody.server.errors import (
    Invalid,
    KeyAlreadyActive,
    RateLimited,
    StateConflict,
)
from custody.server.keys import profiles
from custody.server.keys.quorums import due, left_short_by
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import new_id
from custody.server.rules.keys import OfferedKey, check_offer, check_proof
from custody.server.shown import shape_of, shown
from custody.server.store.models import KeyAccountRow, KeyChallengeRow, KeyRow, ProfileRow, VaultSignerRow
from custody.server.vaults.stored import balance_outside_vaults
from custody.server.webhooks.events import tell_revoked
from multisig import RECEIVE

CHALLENGE_LIFETIME = timedelta(minutes=10)
MAX_OPEN_CHALLENGES = 20
SUPERSEDED: RevokedReason = "superseded"
LOST = "This device's key was marked lost, and that is final: register a device with another seed."
REGISTERED = Event(
    "KEY_REGISTERED", "// key {key}, {network}, fingerprint {fingerprint}, {added} accounts", Category.KEYS
)
TOPPED_UP = Event("KEY_ACCOUNTS_ADDED", "// key {key}, {added} accounts", Category.KEYS)
CHECKED = Event("KEY_CHECKED", "showed that the device of a key still signs // key {key}", Category.KEYS)
REPLACED = Event("KEY_REVOKED", "// key {key} superseded", Category.KEYS)


@serves(KEY_CHALLENGE)
def key_challenge(ctx: Ctx, request: wire.KeyChallengeRequest) -> wire.KeyChallenge:
    """Raises Invalid, RateLimited."""
    offered = check_offer(request)
    _check_challenge_budget(ctx)
    host, nonce = signed_host(ctx.tools.public_url), new_id(ctx.tools.random)
    line = str(ChallengeLine(host, offered.network, ctx.caller.user_id, nonce, offered.digest))
    expires_at = ctx.now + CHALLENGE_LIFETIME
    ctx.db.add(
        KeyChallengeRow(
            user_id=ctx.caller.user_id,
            network=offered.network,
            challenge=line,
            offered_digest=offered.digest,
            created_at=ctx.now,
            expires_at=expires_at,
        )
    )
    return wire.KeyChallenge(challenge=line, derivation_path=str(offered.proof_path), expires_at=expires_at)


@serves(REGISTER_KEY)
def register_key(ctx: Ctx, request: wire.RegisterKeyRequest) -> wire.Key:
    """Raises Invalid (offer or proof), KeyAlreadyActive (another device, and not ``replace``), StateConflict
    (the device was marked lost; it or its profile is registered by another user; a vault would lose its named
    approver).
    """
    offered = check_offer(request)
    # After the proof: an xpub alone must not reveal whether it is registered.
    _check_possession(ctx, offered, request.proof)
    same = select(KeyRow.id).where(KeyRow.xpub == str(offered.xpub))
    # One that another person held, whose device it was not, is marked lost so that its owner registers it.
    lost = same.where(KeyRow.revoked_reason == "lost", KeyRow.user_id == ctx.caller.user_id)
    if ctx.db.scalars(lost).first() is not None:
        raise StateConflict(LOST)
    active = active_key(ctx.db, ctx.caller.user_id, offered.network)
    if active is not None and active.xpub == str(offered.xpub):
        return _top_up(ctx, active, offered)
    if active is not None:
        if not request.replace:
            raise KeyAlreadyActive("Another device is registered on this network already.")
        # Where too few signers are left, those with former devices move the coins on.
        former, how = VaultSignerRow.key_id == active.id, "revoke the former key with force, then register"
        left_short_by(ctx.db, ctx.now, active.user_id, former, is_forced=False, counts=False, otherwise=how)
        active.status, active.revoked_reason, active.updated_at = "revoked", SUPERSEDED, ctx.now
        ctx.db.flush()
        tell_revoked(ctx.tools.events, ctx.db, active)
        ctx.event(REPLACED, key=active.id)
    if ctx.db.scalars(same.where(KeyRow.status == "active")).first() is not None:
        raise StateConflict("This device is registered by another account.")
    return _insert(ctx, offered, request)


@serves(KEYS)
def keys(ctx: Ctx, _: None) -> Listed[wire.Key]:
    query = select(KeyRow).where(KeyRow.user_id == ctx.caller.user_id).order_by(KeyRow.created_at, KeyRow.id)
    rows = ctx.db.scalars(query).all()
    return shown(rows, lambda some: [key_shape(ctx, key) for key in some], "ID", lambda key: key.id)


@serves(SIGNING_PROFILE_ADDRESS)
def signing_profile_address(ctx: Ctx, query: ProfileQuery) -> wire.SigningProfileAddress:
    """Of the active key, or of the key that is named. Raises NotFound."""
    for own in profiles.own_profiles(ctx.db, ctx.caller.user_id, query.network):
        if own.key.id == query.key_id or (query.key_id is None and own.key.status == "active"):
            policy = own.policy(ctx.db)
            balance = balance_outside_vaults(ctx.db, policy.network.value, own.scripts)
            return wire.SigningProfileAddress(
                network=query.network,
                wallet_address=policy.address(RECEIVE, 0),
                derivation_path=str(policy.key.origin.path / RECEIVE / 0),
                key_id=own.key.id,
                confirmed_sats=balance.confirmed,
                unconfirmed_sats=balance.unconfirmed,
                locked_sats=balance.locked,
            )
    raise profiles.no_profile()


def _check_challenge_budget(ctx: Ctx) -> None:
    mine = KeyChallengeRow.user_id == ctx.caller.user_id
    ctx.db.execute(delete(KeyChallengeRow).where(mine, KeyChallengeRow.expires_at <= ctx.now))
    count = ctx.db.scalar(select(func.count()).where(mine, KeyChallengeRow.used_at.is_(None)))
    if (count or 0) >= MAX_OPEN_CHALLENGES:
        raise RateLimited(
            "Too many challenges are open.", retry_after=int(CHALLENGE_LIFETIME.total_seconds())
        )


def _check_possession(ctx: Ctx, offered: OfferedKey, proof: wire.KeyProof | None) -> None:
    if proof is None:
        raise _bad_proof("/proof", "A proof of possession is required: ask for a key-challenge first.")
    row = ctx.db.scalars(
        select(KeyChallengeRow).where(KeyChallengeRow.challenge == proof.challenge)
    ).one_or_none()
    if (
        row is None
        or row.user_id != ctx.caller.user_id
        or row.used_at is not None
        or row.expires_at <= ctx.now
    ):
        raise _bad_proof("/proof/challenge", "The challenge is unknown, was used, or has expired.")
    if row.network != offered.network or row.offered_digest != offered.digest:
        raise _bad_proof("/proof/challenge", "The challenge was made for other keys than the ones offered.")
    check_proof(offered, proof.challenge, proof.signature)
    row.used_at = ctx.now


def _insert(ctx: Ctx, offered: OfferedKey, request: wire.RegisterKeyRequest) -> wire.Key:
    device = request.device
    key = KeyRow(
        id=new_id(ctx.tools.random),
        user_id=ctx.caller.user_id,
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
        created_at=ctx.now,
        updated_at=ctx.now,
        last_signed_at=ctx.now,
    )
    ctx.add(key)
    added = _add_accounts(ctx, key, offered)
    of = {"key": key.id, "network": key.network, "fingerprint": key.master_fingerprint}
    ctx.event(REGISTERED, **of, added=added)
    return key_shape(ctx, key)


def _top_up(ctx: Ctx, key: KeyRow, offered: OfferedKey) -> wire.Key:
    if key.master_fingerprint != offered.fingerprint.hex:
        sentence = "The key is registered with another fingerprint."
        raise Invalid.at("/master_fingerprint", sentence)
    key.last_signed_at = ctx.now
    added = _add_accounts(ctx, key, offered)
    if added:
        key.updated_at = ctx.now
        ctx.event(TOPPED_UP, key=key.id, added=added)
    else:
        ctx.event(CHECKED, key=key.id)
    return key_shape(ctx, key)


def _add_accounts(ctx: Ctx, key: KeyRow, offered: OfferedKey) -> int:
    """Adds the accounts that are new, except those a vault took when the device was registered before."""
    _check_accounts_free(ctx.db, key, offered)
    query = select(KeyAccountRow.account, KeyAccountRow.xpub).where(KeyAccountRow.key_id == key.id)
    known = {row.account: row.xpub for row in ctx.db.execute(query)}
    offers = [str(account.xpub) for account in offered.accounts]
    in_vaults = KeyAccountRow.xpub.in_(offers), KeyAccountRow.vault_id.is_not(None)
    taken = set(ctx.db.scalars(select(KeyAccountRow.xpub).where(*in_vaults)))
    fresh = []
    for account in offered.accounts:
        if known.get(account.account, str(account.xpub)) != str(account.xpub):
            sentence = f"Account {account.account} is registered with another xpub."
            raise Invalid.at("/vault_accounts", sentence)
        if account.account not in known and str(account.xpub) not in taken:
            fresh.append(account)
    ctx.db.add_all(
        KeyAccountRow(
            key_id=key.id,
            account=account.account,
            derivation_path=str(account.path),
            xpub=str(account.xpub),
        )
        for account in fresh
    )
    _add_profile(ctx, key, offered)
    return len(fresh)


def _add_profile(ctx: Ctx, key: KeyRow, offered: OfferedKey) -> None:
    if offered.profile is None:
        return
    path, xpub = offered.profile
    known = ctx.db.get(ProfileRow, key.id)
    if known is not None and known.xpub != str(xpub):
        sentence = "The profile of this key is registered with another xpub."
        raise Invalid.at("/profile/xpub", sentence)
    if known is None:
        script = profiles.scripts_of(str(xpub)).receive
        profiles.require_free_profile(ctx.db, key, script)
        profile = ProfileRow(
            key_id=key.id,
            xpub=str(xpub),
            derivation_base_path=str(path),
            receive_script=script,
            created_at=ctx.now,
        )
        ctx.add(profile)
        profiles.watch_profile(ctx.db, key.network, profile)


def active_key(db: Session, user_id: int, network: str) -> KeyRow | None:
    """A member's one active key on a network."""
    return db.scalars(
        select(KeyRow).where(KeyRow.user_id == user_id, KeyRow.network == network, KeyRow.status == "active")
    ).one_or_none()


def _check_accounts_free(db: Session, key: KeyRow, offered: OfferedKey) -> None:
    """The proof covers account 0 alone. The others must not belong to another member: one person would
    then be two signers of a vault.
    """
    query = (
        select(KeyAccountRow.account)
        .join(KeyRow, KeyRow.id == KeyAccountRow.key_id)
        .where(
            KeyAccountRow.xpub.in_([str(account.xpub) for account in offered.accounts]),
            KeyRow.user_id != key.user_id,
            KeyRow.status == "active",
        )
    )
    if db.scalars(query).first() is not None:
        raise StateConflict("One of the accounts is registered by another account holder.")


def key_shape(ctx: Ctx, key: KeyRow) -> wire.Key:
    counted = (
        select(
            func.count() - func.count(KeyAccountRow.vault_id),
            func.coalesce(func.max(KeyAccountRow.account) + 1, 0),
            select(KeyRow.id).where(KeyRow.id == key.id, due(ctx.now)).exists(),
        )
    ).where(KeyAccountRow.key_id == key.id)
    free, following, check_due = ctx.db.execute(counted).one()
    return shape_of(
        wire.Key,
        key,
        net=key.network,
        free_accounts=free,
        next_account=following,
        check_due=check_due,
        device=shape_of(wire.RegisteredDevice, key),
    )


def _bad_proof(pointer: str, sentence: str) -> Invalid:
    return Invalid.at(pointer, sentence, "bad-proof")
