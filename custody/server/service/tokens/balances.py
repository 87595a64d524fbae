"""What a vault holds of tokens, by the index."""

from sqlalchemy.orm import Session

from custody.schemas import asset_tokens as wire
from custody.server.domain.caller import WorkspaceAccess
from custody.server.service.stored_vaults import vault_in
from custody.server.service.tokens.index_reading import (
    contracts_by_id,
    holdings_of,
    numbers_of,
    owned_by,
    require_current,
)
from custody.server.store.models import Contract
from multisig import Network, decode_address
from multisig.tokens.machine import Cell


def balances_in(db: Session, access: WorkspaceAccess, vault_id: str) -> list[wire.TokenBalance]:
    """Of every token that the vault's address holds or owns, the oldest contract first.

    Of what others hold of a token here, nothing is said but how much there is. A token whose bytecode is not known has no
    balance that anybody could tell, and is left out. Raises NotFound (vault), ChainUnavailable (the index is behind).
    """
    vault = vault_in(db, access, vault_id)
    require_current(db, vault.chain)
    script = decode_address(vault.address, Network(vault.chain))
    held, owned = holdings_of(db, vault.chain, script), owned_by(db, vault.chain, script)
    contracts = contracts_by_id(db, vault.chain, held.keys() | owned)
    supplies = numbers_of(db, vault.chain, contracts.keys(), Cell.SUPPLY)
    return [
        _record(
            contract_id,
            contract,
            held.get(contract_id, 0),
            contract_id in owned,
            supplies.get(contract_id, 0),
        )
        for contract_id, contract in sorted(contracts.items(), key=lambda item: item[1].uid)
    ]


def _record(
    contract_id: str, contract: Contract, balance: int, owned: bool, supply: int
) -> wire.TokenBalance:
    return wire.TokenBalance(
        contract_uid=contract.uid,
        contract_address=contract_id,
        name=contract.name,
        balance=str(balance),
        decimals=contract.decimals,
        icon=contract.icon,
        owned=owned,
        total_supply=str(supply),
        max_supply=str(contract.max_supply),
    )
