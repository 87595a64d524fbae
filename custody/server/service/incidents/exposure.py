"""Which vaults an advisory exposes: how many keys of each quorum, and the balance."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import select
from sqlalchemy.orm import Session, load_only

from custody.advisories import Advisory, Concern
from custody.server.domain.errors import NotFound
from custody.server.service.keys.concerned import concern_of
from custody.server.service.stored_vaults import Balance, balances_of
from custody.server.store.models import EvacuatedVault, Key, StoredAdvisory, Vault, VaultSigner, Workspace
from custody.server.store.store import chunks


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
        _exposure(vault, keys, balances.get(vault.id, Balance()), moved.get(vault.id))
        for vault, keys in exposed.items()
    ]
    return sorted(found, key=lambda each: each.urgency)


def _moved(db: Session, vault_ids: Collection[str]) -> Mapping[str, EvacuatedVault]:
    moved = select(EvacuatedVault).where(EvacuatedVault.replacement_id.is_not(None))
    query = moved.order_by(EvacuatedVault.replaced_at)
    found = (db.scalars(query.where(EvacuatedVault.vault_id.in_(some))) for some in chunks(vault_ids))
    return {row.vault_id: row for part in found for row in part}


def _exposure(
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
