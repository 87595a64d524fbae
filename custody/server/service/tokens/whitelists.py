"""Who may receive a workspace's tokens, by the index: the lists on chain, with the address book's names."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.schemas.asset_tokens import CallStatus
from custody.server.domain.caller import WorkspaceAccess
from custody.server.service.token_status import Standing, standings
from custody.server.service.tokens.index_reading import listed_by, owners_of, why_behind
from custody.server.store.models import AddressBookEntry, Contract, Vault
from multisig import Network, encode_address

NOT_DEPLOYED = "The token's deployment is not confirmed: it has no list yet."
NOT_KNOWN = "The index of tokens does not know the token's state."


@dataclass(frozen=True)
class _Lists:
    """What one answer is made of. ``trouble``: why nothing of the index can be told."""

    names: Mapping[str, str]
    owners: Mapping[str, bytes]
    listed: Mapping[str, Sequence[bytes]]
    network: Network
    trouble: str | None

    def entries(self, contract_id: str) -> list[wire.ListedAddress]:
        """The owner first, who may always receive; a list may name the owner, too, who is told once."""
        owner = self.owners[contract_id]
        listed = [script for script in self.listed.get(contract_id, ()) if script != owner]
        addresses = [encode_address(script, self.network) or "" for script in (owner, *listed)]
        return [wire.ListedAddress(address=each, name=self.names.get(each, "")) for each in addresses]

    def error_of(self, standing: Standing) -> str | None:
        if self.trouble is not None:
            return self.trouble
        if standing.status is not CallStatus.CONFIRMED:
            return NOT_DEPLOYED
        return None if standing.best.txid in self.owners else NOT_KNOWN


def workspace_whitelist(db: Session, access: WorkspaceAccess) -> wire.WorkspaceWhitelist:
    """Of every token of the workspace but those whose deployment failed, which never came to be."""
    rows = db.execute(
        select(Contract, Vault.name)
        .join(Vault, Vault.id == Contract.vault_id)
        .where(Contract.workspace_id == access.workspace_id)
        .order_by(Contract.uid)
    ).all()
    stands = standings(db, access.chain, [contract.deploy_family_id for contract, _ in rows])
    lists = _read(db, access, stands.values())
    contracts = [
        _record(contract, vault_name, stands[contract.deploy_family_id], lists)
        for contract, vault_name in rows
        if stands[contract.deploy_family_id].status is not CallStatus.FAILED
    ]
    return wire.WorkspaceWhitelist(
        contracts=contracts,
        aggregate=_aggregate(contracts),
        vault_errors=_vault_errors(contracts, lists.trouble),
    )


def _read(db: Session, access: WorkspaceAccess, stands: Collection[Standing]) -> _Lists:
    ids = [each.best.txid for each in stands if each.best.txid is not None]
    book = select(AddressBookEntry.address, AddressBookEntry.name).where(
        AddressBookEntry.workspace_id == access.workspace_id
    )
    return _Lists(
        dict(db.execute(book).all()),
        owners_of(db, access.chain, ids),
        listed_by(db, access.chain, ids),
        Network(access.chain),
        why_behind(db, access.chain),
    )


def _record(contract: Contract, vault_name: str, standing: Standing, lists: _Lists) -> wire.ContractWhitelist:
    error, contract_id = lists.error_of(standing), standing.best.txid
    return wire.ContractWhitelist(
        contract_uid=contract.uid,
        symbol=contract.ticker,
        name=contract.name,
        vault_id=contract.vault_id,
        vault_name=vault_name,
        addresses=lists.entries(contract_id) if error is None and contract_id is not None else [],
        error=error,
    )


def _aggregate(contracts: Sequence[wire.ContractWhitelist]) -> list[wire.WhitelistedAddress]:
    """Each address once, in the order of the addresses."""
    found: dict[str, wire.WhitelistedAddress] = {}
    for contract in contracts:
        for entry in contract.addresses:
            known = found.setdefault(
                entry.address,
                wire.WhitelistedAddress(address=entry.address, name=entry.name, contract_uids=[]),
            )
            known.contract_uids.append(contract.contract_uid)
    return [found[address] for address in sorted(found)]


def _vault_errors(contracts: Sequence[wire.ContractWhitelist], trouble: str | None) -> list[wire.VaultError]:
    """Where the index is behind, nothing can be told of any vault that has tokens."""
    if trouble is None:
        return []
    vaults = dict.fromkeys(contract.vault_id for contract in contracts)
    return [wire.VaultError(vault_id=vault_id, error=trouble) for vault_id in vaults]
