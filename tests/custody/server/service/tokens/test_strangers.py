"""Deployments that others mine: none of them counts, whatever is made here before or afterwards."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from custody.schemas.proposals import TxType
from custody.server.service.tokens.blocks import proposed_deployments
from custody.server.store.models import ContractRow, ProposalRow
from multisig.script import op_return_script, p2wsh
from multisig.tokens import Bytecode, encode_payload, parse_bytecode
from multisig.tokens.machine import Cell
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.custody import ok
from tests.support.regtest import open_address, open_script
from tests.support.token_desk import TokenDesk

STRANGER, AMOUNT = 7, 50_000


def mined_by_a_stranger(tokens: TokenDesk, bytecode: Bytecode) -> str:
    """A deployment of that bytecode from a coin that any key may spend."""
    chain, script = tokens.desk.chain, p2wsh(open_script(STRANGER))
    paid = chain.transaction(chain.fund(open_address(STRANGER), Sats(AMOUNT))).transaction
    vout = next(place for place, output in enumerate(paid.outputs) if output.script_pubkey == script)
    chain.mine(1)
    data = op_return_script(encode_payload(bytecode.deployment))
    txin = TxIn(OutPoint(paid.txid, vout), 0xFFFFFFFD, b"", (open_script(STRANGER),))
    outputs = (TxOut(Sats(AMOUNT - 1_000), script), TxOut(Sats(0), data))
    transaction = Transaction(version=2, inputs=(txin,), outputs=outputs, locktime=0)
    chain.broadcast(transaction)
    tokens.mine()
    assert chain.transaction(transaction.txid).height is not None
    return transaction.txid


def bytecode_of(tokens: TokenDesk, contract_uid: int) -> Bytecode:
    with tokens.desk.world.platform.services.store.read() as db:
        return parse_bytecode(db.get_one(ContractRow, contract_uid).bytecode)


def unpublished(tokens: TokenDesk) -> Bytecode:
    """What `create` would make, before any workspace asks for it."""
    made = ok(tokens.create())
    return replace(bytecode_of(tokens, made["contract_uid"]), name="Silver of the House")


@pytest.fixture
def asked(tokens: TokenDesk, monkeypatch) -> list[int]:
    """The heights for which the index asks the chain."""
    found: list[int] = []
    data_at = tokens.desk.chain.data_at

    def noted(height: int, prefix: bytes):
        found.append(height)
        return data_at(height, prefix)

    monkeypatch.setattr(tokens.desk.chain, "data_at", noted)
    return found


def test_bytecode_that_is_published_later_has_nothing_read_again(tokens, uid, asked):
    """Otherwise an attacker who tricks one member could make the server discard the state of all tokens."""
    tokens.fund(*[50_000] * 3)
    bait = unpublished(tokens)
    theirs = mined_by_a_stranger(tokens, bait)
    tokens.mine(3)
    asked.clear()
    made = ok(tokens.create(token_name="Silver of the House"))
    assert bytecode_of(tokens, made["contract_uid"]) == bait
    tokens.look()
    assert asked == []
    ok(tokens.call(uid, "pause"))
    assert tokens.finish(made["psbt_id"])["status"] == "CONFIRMED"
    assert min(asked) > tokens.desk.chain.transaction(theirs).height
    tokens.check()
    own = tokens.desk.proposal(made["psbt_id"])["txid"]
    assert {contract_id for contract_id, _, _ in tokens.cells()} >= {own}
    assert theirs not in {contract_id for contract_id, _, _ in tokens.cells()}
    tokens.done(made["contract_uid"], "init")


def test_every_version_of_a_deployment_that_was_proposed_here_counts_and_nothing_else(tokens):
    """Also of one that was given up: what was signed may be mined."""
    tokens.fund(*[50_000] * 2)
    given_up, deployed = ok(tokens.create()), ok(tokens.create(ticker="SILVER"))
    tokens.desk.reject(given_up["psbt_id"])
    tokens.finish(deployed["psbt_id"])
    call = ok(tokens.call(deployed["contract_uid"], "init"))
    records = {
        name: tokens.desk.proposal(made["psbt_id"])
        for name, made in (("given up", given_up), ("deployed", deployed), ("call", call))
    }
    assert records["given up"]["status"] == "REJECTED"
    with tokens.desk.world.platform.services.store.read() as db:
        expected = dict(db.execute(select(ProposalRow.id, ProposalRow.txid_expected)).all())
        asked = [*expected.values(), "11" * 32]
        found = proposed_deployments(db, "regtest", asked)
        assert found == {expected[records[name]["psbt_id"]] for name in ("given up", "deployed")}
        kinds = select(ProposalRow.txid_expected).where(ProposalRow.tx_type == TxType.DEPLOY.value)
        assert found == set(db.scalars(kinds))
        assert proposed_deployments(db, "signet", asked) == frozenset()
        assert proposed_deployments(db, "regtest", []) == frozenset()
    assert tokens.cells()[expected[records["deployed"]["psbt_id"]], Cell.OWNER, b""]
