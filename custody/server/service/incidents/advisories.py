"""Which vaults an advisory exposes: how many keys of each quorum, and the balance. Takes a publisher's signed
list from any caller, and notifies the holders of keys that it concerns.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import bindparam, or_, select
from sqlalchemy.orm import Session, load_only

from custody.advisories import (
    AdvisoriesRefused,
    Advisory,
    AdvisoryList,
    Concern,
    Held,
    OlderAdvisories,
    believe,
    moment_of,
    read_list,
)
from custody.schemas import advisories as wire
from custody.server.domain.audit import Category
from custody.server.domain.credentials import OPERATOR, PLATFORM, Caller, WorkspaceAccess
from custody.server.domain.errors import Invalid, NotFound, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.keys.quorums import AdvisoriesInForce, concern_of, workspaces_seen_by
from custody.server.service.mail.jobs import Template, queue_mails
from custody.server.service.stored_vaults import Balance, balances_of, place_of
from custody.server.store.models import (
    AdvisoryPublisher,
    EvacuatedVault,
    Key,
    StoredAdvisory,
    User,
    Vault,
    VaultSigner,
    Workspace,
)
from custody.server.store.store import chunks
from custody.text import network_words
from multisig import Network


@dataclass(frozen=True)
class ExposedKey:
    """An exposed key of a vault. UNKNOWN counts as exposed."""

    key_id: str
    user_id: int
    concern: Concern


@dataclass(frozen=True)
class Exposure:
    """``required`` of ``total`` keys can spend the vault's ``amount_sats``, which includes unconfirmed coins.
    ``moved``: the newest evacuation that created a replacement for it.
    """

    vault_id: str
    workspace_id: int
    name: str
    chain: str
    required: int
    total: int
    keys: tuple[ExposedKey, ...]
    amount_sats: int
    moved: EvacuatedVault | None

    @property
    def exposed_keys(self) -> int:
        return len(self.keys)

    @property
    def keys_to_spare(self) -> int:
        """How many more keys a thief needs: 0 where the exposed ones suffice."""
        return max(self.required - self.exposed_keys, 0)

    @property
    def urgency(self) -> tuple[bool, int, int, str]:
        is_empty = self.moved is not None and not self.amount_sats
        return is_empty, self.keys_to_spare, -self.amount_sats, self.vault_id


# Only these columns of thousands of vaults and keys; reading any other raises.
_READ = (
    load_only(Vault.workspace_id, Vault.name, Vault.chain, Vault.m, Vault.n, raiseload=True),
    load_only(
        Key.user_id,
        Key.network,
        Key.created_at,
        Key.maker,
        Key.model,
        Key.firmware,
        Key.made_on,
        raiseload=True,
    ),
)


def exposures(db: Session, organisation_id: int, advisory: Advisory) -> list[Exposure]:
    """The organisation's vaults with at least one exposed key, fewest keys to spare first, then the largest
    amount; evacuated vaults without coins last. A drill concerns only vaults of test networks.
    """
    places = (
        select(Vault, Key)
        .join(Workspace, Workspace.id == Vault.workspace_id)
        .join(VaultSigner, VaultSigner.vault_id == Vault.id)
        .join(Key, Key.id == VaultSigner.key_id)
        .where(Workspace.organisation_id == organisation_id)
        .order_by(Vault.id, VaultSigner.key_index)
        .options(*_READ)
    )
    exposed: dict[Vault, tuple[ExposedKey, ...]] = {}
    for vault, signers in groupby(db.execute(places), key=lambda row: row[0]):
        keys = tuple(
            ExposedKey(key.id, key.user_id, concern)
            for _, key in signers
            if (concern := concern_of(advisory, key)) is not Concern.NOT
        )
        if keys:
            exposed[vault] = keys
    balances = balances_of(db, [vault.id for vault in exposed])
    moved = _moved(db, [vault.id for vault in exposed])
    found = [
        _exposure_of(vault, keys, balances.get(vault.id, Balance()), moved.get(vault.id))
        for vault, keys in exposed.items()
    ]
    return sorted(found, key=lambda each: each.urgency)


def _moved(db: Session, vault_ids: Collection[str]) -> Mapping[str, EvacuatedVault]:
    moved = select(EvacuatedVault).where(EvacuatedVault.replacement_id.is_not(None))
    query = moved.order_by(EvacuatedVault.replaced_at)
    found = (db.scalars(query.where(EvacuatedVault.vault_id.in_(some))) for some in chunks(vault_ids))
    return {row.vault_id: row for part in found for row in part}


def _exposure_of(
    vault: Vault, keys: tuple[ExposedKey, ...], balance: Balance, moved: EvacuatedVault | None
) -> Exposure:
    return Exposure(
        vault_id=vault.id,
        workspace_id=vault.workspace_id,
        name=vault.name,
        chain=vault.chain,
        required=vault.m,
        total=vault.n,
        keys=keys,
        amount_sats=balance.confirmed + balance.unconfirmed,
        moved=moved,
    )


def advisory_of(db: Session, advisory_id: int) -> Advisory:
    """An advisory by its id, also a withdrawn one. Raises NotFound."""
    row = db.get(StoredAdvisory, advisory_id)
    if row is None:
        raise NotFound("There is no such advisory.")
    return Advisory.model_validate(row.body)


class Advisories:
    def __init__(self, clock: Clock, audit: AuditLog, in_force: AdvisoriesInForce) -> None:
        self._clock = clock
        self._audit = audit
        self._in_force = in_force

    def take(self, db: Session, caller: Caller, data: bytes) -> wire.AdvisoryPublisher:
        """Stores the newest list of its publisher. A list that is stored already changes nothing.

        Raises Invalid (malformed, or not signed by a trusted key), StateConflict (older than the stored one,
        or expired).
        """
        before = {row.root: row for row in db.scalars(select(AdvisoryPublisher))}
        try:
            told, held = believe(data, self._in_force.trusted, map(_held, before.values()), self._clock())
        except OlderAdvisories as error:
            raise StateConflict(str(error)) from None
        except AdvisoriesRefused as error:
            raise Invalid.at("/list", str(error), "bad-advisories") from None
        known = before.get(held.root)
        if known is not None and known.digest == held.digest:
            return _shape(db, known, self._clock())
        row = db.merge(
            AdvisoryPublisher(
                **vars(held),
                taken_at=self._clock(),
                taken_by=None if caller is OPERATOR else caller.user_id,
            )
        )
        db.flush()
        news = self._store(db, held.root, told)
        names = ", ".join(entry.id for entry in news) or "nothing new"
        what = f"publisher {held.root}, serial {told.serial}, epoch {held.epoch}: {names}"
        self._audit.record(db, caller, Category.ADVISORIES, "ADVISORIES_TAKEN", what)
        self._tell(db, news, held.root)
        return _shape(db, row, self._clock())

    def listed(self, db: Session) -> list[wire.AdvisoryPublisher]:
        """The newest list of each publisher that is trusted now."""
        query = select(AdvisoryPublisher).order_by(AdvisoryPublisher.taken_at, AdvisoryPublisher.root)
        return [
            _shape(db, row, self._clock()) for row in db.scalars(query) if row.root in self._in_force.trusted
        ]

    def exposed(
        self, db: Session, caller: Caller, access: WorkspaceAccess, advisory_id: int
    ) -> list[wire.VaultExposure]:
        """The organisation's exposed vaults in workspaces where the caller may see vaults. Raises
        NotFound.
        """
        seen = workspaces_seen_by(db, caller.user_id)
        found = exposures(db, access.organisation_id, advisory_of(db, advisory_id))
        return [_exposure(each) for each in found if each.workspace_id in seen]

    def _store(self, db: Session, root: str, told: AdvisoryList) -> list[Advisory]:
        """Returns the advisories that are new or changed."""
        rows = {row.name: row for row in db.scalars(_OF_PUBLISHER, {"root": root})}
        now, news = self._clock(), []
        for entry in told.advisories:
            body = entry.model_dump(by_alias=True)
            row = rows.pop(entry.id, None)
            if row is not None and row.body == body and row.withdrawn_at is None:
                continue
            news.append(entry)
            if row is None:
                row = StoredAdvisory(root=root, name=entry.id)
                db.add(row)
            row.serial, row.body, row.taken_at, row.withdrawn_at = told.serial, body, now, None
        for row in rows.values():
            row.withdrawn_at = row.withdrawn_at or now
        db.flush()
        return news

    def _tell(self, db: Session, news: Sequence[Advisory], publisher: str) -> None:
        """Notifies each workspace with an exposed vault in its log and by its webhooks, and each holder of an
        exposed key by mail.
        """
        places = [*db.execute(_PLACES)] if news else []
        for advisory in news:
            vaults: dict[int, set[str]] = {}
            keys: dict[str, tuple[Key, str, Concern]] = {}
            for key, email, vault_id, workspace_id in places:
                concern = concern_of(advisory, key)
                if concern is Concern.NOT:
                    continue
                keys[key.id] = key, email, concern
                if vault_id is not None:
                    vaults.setdefault(workspace_id, set()).add(vault_id)
            for workspace_id, ids in vaults.items():
                told = {
                    "advisory": advisory.id,
                    "severity": advisory.severity,
                    "is_drill": advisory.drill,
                    "vault_ids": sorted(ids),
                }
                what = f"advisory {advisory.id} of publisher {publisher}: vault {', '.join(sorted(ids))}"
                place = place_of(db, workspace_id)
                self._audit.record(
                    db, PLATFORM, Category.ADVISORIES, "VAULTS_EXPOSED", what, access=place, told=told
                )
            mails = [
                (email, _mailed(advisory, key, concern, publisher)) for key, email, concern in keys.values()
            ]
            queue_mails(db, Template.ADVISORY, mails, now=self._clock())


# Keys that may still sign: active ones, and vault signers' keys, which never change.
_PLACES = (
    select(Key, User.email, VaultSigner.vault_id, Vault.workspace_id)
    .join(User, User.id == Key.user_id)
    .outerjoin(VaultSigner, VaultSigner.key_id == Key.id)
    .outerjoin(Vault, Vault.id == VaultSigner.vault_id)
    .where(or_(Key.status == "active", VaultSigner.vault_id.is_not(None)))
    .order_by(Vault.workspace_id, Key.id)
)
_OF_PUBLISHER = select(StoredAdvisory).where(StoredAdvisory.root == bindparam("root"))
_IN_FORCE = _OF_PUBLISHER.where(StoredAdvisory.withdrawn_at.is_(None)).order_by(StoredAdvisory.id)


def _held(row: AdvisoryPublisher) -> Held:
    return Held(row.root, row.key, row.epoch, row.serial, row.digest, row.line)


def _mailed(advisory: Advisory, key: Key, concern: Concern, publisher: str) -> dict[str, str]:
    device = (
        " ".join(filter(None, (key.maker, key.model, key.firmware))) or "a device of which nothing is known"
    )
    certainty = "It is exposed." if concern is Concern.EXPOSED else "Too little is known to call it safe."
    return {
        "kind": "This is a drill" if advisory.drill else "Advisory",
        "name": advisory.id,
        "text": advisory.text,
        "advice": advisory.advice,
        "network": network_words(key.network),
        "device": device,
        "certainty": certainty,
        "publisher": publisher,
    }


def _shape(db: Session, row: AdvisoryPublisher, now: datetime) -> wire.AdvisoryPublisher:
    told = read_list(row.line)
    return wire.AdvisoryPublisher(
        publisher=row.root,
        epoch=row.epoch,
        serial=row.serial,
        issued=told.issued,
        expires=told.expires,
        is_over=moment_of(told.expires) <= now,
        taken_at=row.taken_at,
        advisories=[_shown(each) for each in db.scalars(_IN_FORCE, {"root": row.root})],
        list=row.line.decode(),
    )


def _shown(row: StoredAdvisory) -> wire.ShownAdvisory:
    body = Advisory.model_validate(row.body)
    return wire.ShownAdvisory(
        advisory_id=row.id,
        name=body.id,
        severity=body.severity,
        text=body.text,
        advice=body.advice,
        sources=body.sources,
        is_drill=body.drill,
        taken_at=row.taken_at,
    )


def _exposure(found: Exposure) -> wire.VaultExposure:
    return wire.VaultExposure(
        vault_id=found.vault_id,
        workspace_id=found.workspace_id,
        name=found.name,
        network="mainnet" if found.chain == Network.MAINNET else "testnet",
        m=found.required,
        n=found.total,
        exposed_keys=found.exposed_keys,
        keys_to_spare=found.keys_to_spare,
        balance_sats=found.amount_sats,
        replaced_at=found.moved and found.moved.replaced_at,
        replacement_name=found.moved and found.moved.name,
        keys=[
            wire.ExposedKey(
                key_id=key.key_id,
                user_id=str(key.user_id),
                concern="exposed" if key.concern is Concern.EXPOSED else "unknown",
            )
            for key in found.keys
        ],
    )
