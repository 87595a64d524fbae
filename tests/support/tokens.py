"""A token of the desk's vault: its bytecode, its deployment, and calls as the platform builds them."""

from dataclasses import replace
from typing import Any

from custody.schemas.asset_tokens import ContractCall, TokenBalance
from custody.schemas.proposals import TxType
from multisig import RECEIVE, ChangeTo, Psbt, Transaction, TxIn, TxOut, Vault, build_psbt, sats
from multisig.tokens import Bytecode, Deploy, Function, Payload, TokenCall, token_amount, token_script
from signerd.core.tokens import PublishedToken, TokenClaim, facts_of
from signerd.core.values import Snapshot
from tests.multisig.tokens.samples import bytecode
from tests.support.desk import NETWORK, VAULT, VAULT_ID, snapshot_of
from tests.support.fake_platform import answer_of
from tests.support.wallets import foreign_script, fund

HOLDER = foreign_script("a holder")


def gold(vault: Vault = VAULT, **changes: Any) -> Bytecode:
    return bytecode(**{"icon": "", "owner_script": vault.script_pubkey(RECEIVE, 0), **changes})


def token_psbt(payload: Payload, vault: Vault = VAULT, *, salt: int = 0, fee: int = 1_000) -> Psbt:
    """Its first coin is at the vault's address, which also receives the change."""
    coin = fund(vault, 100_000, salt=salt)
    outputs = [TxOut(sats(0), token_script(payload)), ChangeTo(sats(100_000 - fee), RECEIVE, 0)]
    return build_psbt(vault, [coin], outputs, 0)


def deployment_of(bytecode: Bytecode, vault: Vault = VAULT) -> Transaction:
    """As mined: with a witness, which does not change the txid."""
    tx = token_psbt(bytecode.deployment, vault, salt=99).tx
    return replace(tx, inputs=tuple(TxIn(i.outpoint, i.sequence, b"", (b"\x30" * 71,)) for i in tx.inputs))


def published(bytecode: Bytecode, vault: Vault = VAULT) -> PublishedToken:
    return PublishedToken(bytecode.blob, deployment_of(bytecode, vault).serialize())


GOLD = gold()
CONTRACT = deployment_of(GOLD).txid


def call(function: Function = Function.TRANSFER, amount: int = 1_250, to: bytes = HOLDER) -> TokenCall:
    return TokenCall(
        contract_id=CONTRACT,
        function=function,
        amount=token_amount(amount) if function.takes_amount else None,
        address=to if function.takes_address else None,
    )


def claim_of(payload: Payload, contract_id: str = CONTRACT, **lies: str | None) -> TokenClaim:
    """An honest platform's claim about it, with ``lies``; a lie of None removes the field."""
    # For another token's deployment the claim has the payload's own contract id.
    token = GOLD if isinstance(payload, TokenCall) or payload == GOLD.deployment else None
    facts = {**facts_of(payload, NETWORK, token), "contract_id": contract_id, **lies}
    return TokenClaim(tuple(sorted((name, value) for name, value in facts.items() if value is not None)))


# A platform's list of the vault's tokens, with a false name and decimals.
HELD = answer_of(
    TokenBalance,
    contract_uid=1,
    contract_address=CONTRACT,
    name="Bitcoin <b>",
    balance="98750",
    total_supply="100000",
    max_supply="500000",
)


def told_call(uid: int) -> dict[str, object]:
    what = {"WalletID": VAULT_ID, "FunctionName": "transfer", "Status": "CONFIRMED", "PsbtID": f"t-{uid}"}
    args = [{"type": "str", "value": "bcrt1q"}, {"type": "int", "value": 1250}]
    return answer_of(ContractCall, UID=uid, ContractUID=1, CreatedBy="2", Args=args, **what)


def token_snapshot(
    payload: Payload, psbt: Psbt | None = None, psbt_id: str = "t-1", **changes: Any
) -> Snapshot:
    """An honest proposal of it."""
    made = token_psbt(payload) if psbt is None else psbt
    kind = TxType.DEPLOY if isinstance(payload, Deploy) else TxType.CALL
    usual: dict[str, Any] = {
        "kind": kind,
        "contract_uid": 1,
        "call": claim_of(payload, payload.contract_id if isinstance(payload, TokenCall) else made.tx.txid),
    }
    return snapshot_of(made, psbt_id, **{**usual, **changes})
