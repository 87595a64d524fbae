"""Deployments that others mine do not count, and every version of what was proposed here does."""

from sqlalchemy import select

from custody.server.store.models import ContractRow, ProposalRow
from custody.server.tokens.indexer import proposed_deployments
from multisig.script import op_return_script
from multisig.tokens import encode_payload, parse_bytecode
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.custody import ok
from tests.support.regtest import open_address, open_output, open_script
from tests.support.token_desk import TokenDesk

STRANGER, AMOUNT = 7, 50_000


def mined_by_a_stranger(tokens: TokenDesk, contract_uid: int) -> str:
    """The deployment of that token from a coin that any key may spend."""
    chain, script = tokens.desk.chain, open_output(STRANGER)
    with tokens.desk.store.read() as db:
        bytecode = parse_bytecode(db.get_one(ContractRow, contract_uid).bytecode)
    paid = chain.transaction(chain.fund(open_address(STRANGER), Sats(AMOUNT))).transaction
    vout = next(place for place, output in enumerate(paid.outputs) if output.script_pubkey == script)
    chain.mine(1)
    data = op_return_script(encode_payload(bytecode.deployment))
    txin = TxIn(OutPoint(paid.txid, vout), 0xFFFFFFFD, b"", (open_script(STRANGER),))
    outputs = (TxOut(Sats(AMOUNT - 1_000), script), TxOut(Sats(0), data))
    transaction = Transaction(version=2, inputs=(txin,), outputs=outputs, locktime=0)
    chain.broadcast(transaction)
    tokens.mine()
    assert chain.transaction(transaction.txid).block is not None
    return transaction.txid


def test_every_version_of_a_deployment_that_was_proposed_here_counts_and_nothing_else(tokens):
    """Also of one that was given up: what was signed may be mined."""
    tokens.fund(*[50_000] * 2)
    given_up, deployed = ok(tokens.create()), ok(tokens.create(ticker="SILVER"))
    theirs = mined_by_a_stranger(tokens, deployed["contract_uid"])
    assert tokens.cells() == {}
    tokens.desk.reject(given_up["psbt_id"])
    tokens.finish(deployed["psbt_id"])
    ok(tokens.call(deployed["contract_uid"], "init"))
    with tokens.desk.store.read() as db:
        expected = dict(map(tuple, db.execute(select(ProposalRow.id, ProposalRow.txid_expected))))
        found = proposed_deployments(db, "regtest", [*expected.values(), theirs, "11" * 32])
        assert found == {expected[each["psbt_id"]] for each in (given_up, deployed)}
        assert proposed_deployments(db, "signet", expected.values()) == frozenset()
        assert proposed_deployments(db, "regtest", []) == frozenset()
    assert {contract_id for contract_id, _, _ in tokens.cells()} == {expected[deployed["psbt_id"]]}
    tokens.check()
