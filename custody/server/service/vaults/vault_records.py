"""Stored vaults as the specification's record, for many at once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import vaults as wire
from custody.schemas.common import ApiNetwork, NullString
from custody.server.domain.errors import PolicyUnavailable
from custody.server.service.limits.limits import Limits, VaultFigures
from custody.server.service.stored_vaults import Balance, balances_of, policy_of
from custody.server.store.models import User, Vault, VaultSigner
from multisig import RECEIVE


def vault_records(db: Session, limits: Limits, vaults: Sequence[Vault]) -> list[wire.Vault]:
    """In the order given. Where the policies cannot be read, every record says so in the limits' place."""
    ids = [vault.id for vault in vaults]
    signers, balances = _signers(db, ids), balances_of(db, ids)
    known, trouble = _limits(db, limits, vaults)
    return [
        _record(vault, signers[vault.id], balances.get(vault.id, Balance()), known.get(vault.id), trouble)
        for vault in vaults
    ]


def _limits(
    db: Session, limits: Limits, vaults: Sequence[Vault]
) -> tuple[Mapping[str, VaultFigures], str | None]:
    try:
        return limits.figures_of_vaults(db, vaults), None
    except PolicyUnavailable as error:
        return {}, error.detail


def _signers(db: Session, vault_ids: Iterable[str]) -> dict[str, list[wire.VaultSigner]]:
    query = (
        select(VaultSigner, User.first_name, User.surname)
        .join(User, User.id == VaultSigner.user_id)
        .where(VaultSigner.vault_id.in_(list(vault_ids)))
        .order_by(VaultSigner.key_index)
    )
    found: dict[str, list[wire.VaultSigner]] = defaultdict(list)
    for signer, first_name, surname in db.execute(query):
        found[signer.vault_id].append(_signer(signer, first_name, surname))
    return found


def _signer(signer: VaultSigner, first_name: str | None, surname: str | None) -> wire.VaultSigner:
    return wire.VaultSigner(
        key_index=signer.key_index,
        first_name=NullString.of(first_name),
        surname=NullString.of(surname),
        user_id=str(signer.user_id),
        key_id=signer.key_id,
    )


def _record(
    vault: Vault,
    signers: list[wire.VaultSigner],
    balance: Balance,
    limits: VaultFigures | None,
    limit_error: str | None,
) -> wire.Vault:
    return wire.Vault(
        id=vault.id,
        user_id=str(vault.created_by),
        workspace_id=str(vault.workspace_id),
        name=vault.name,
        network=cast("ApiNetwork", vault.network),
        m=vault.m,
        n=vault.n,
        script_type=vault.script_type,
        witness_script_hex=vault.witness_script_hex,
        address=vault.address,
        created_at=vault.created_at,
        updated_at=vault.updated_at,
        detailed_vault_limits=None if limits is None else limits.main,
        limit_error=limit_error,
        assets=None if limits is None else limits.assets,
        signers=signers,
        descriptor=vault.descriptor,
        chain=vault.chain,
        receive_address=policy_of(vault).address(RECEIVE, vault.next_receive_index),
        confirmed_sats=balance.confirmed,
        unconfirmed_sats=balance.unconfirmed,
        locked_sats=balance.locked,
    )
