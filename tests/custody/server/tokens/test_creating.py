"""Making a token: its bytecode, its deployment's transaction, and the way of that to the chain. Deployments
that others mine do not count, and every version of what was proposed here does.
"""

from sqlalchemy import select

from custody.server.store.models import ContractRow, ProposalRow
from custody.server.tokens.indexer import proposed_deployments
from multisig import FeeRate
from multisig.script import op_return_script
from multisig.tokens import encode_payload, parse_bytecode
from multisig.transaction import OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.regtest import open_address, open_output, open_script
from tests.support.token_desk import TokenDesk


def contract(tokens) -> ContractRow:
    (only,) = tokens.desk.rows(ContractRow)
    return only


def test_the_first_whitelist_is_of_the_address_book_and_sorted(tokens):
    uids = []
    for name, address in (("shop", SHOP), ("cafe", CAFE)):
        uids.append(tokens.desk.enter(name, address)["uid"])
    ok(tokens.create(white_list_ids=[*uids, uids[0]], whitelist_enabled=True))
    known = parse_bytecode(contract(tokens).bytecode)
    assert len(known.whitelist) == 2
    assert list(known.whitelist) == sorted(known.whitelist)


def test_p21_p31_what_no_token_can_be_is_refused_at_its_field(tokens):
    """A supply is in raw units; the largest is named."""
    for changes, pointer in (
        ({"token_name": "a  b"}, "/token_name"),
        ({"ticker": "gold"}, "/ticker"),
        ({"icon": "http://example.com/"}, "/icon"),
        ({"decimals_num": 19}, "/decimals_num"),
        ({"total_supply": "1001"}, "/total_supply"),
        ({"max_supply": "0", "total_supply": "0"}, "/max_supply"),
        ({"total_supply": str(2**63), "max_supply": str(2**64)}, "/total_supply"),
        ({"network": "mainnet"}, "/network"),
        ({"white_list_ids": [77]}, "/white_list_ids/0"),
        *(({"total_supply": text}, "/total_supply") for text in ("10.00", "1e2", "-1", "01", "1,000", "")),
    ):
        problem = refused(tokens.create(**changes), 422, "VALIDATION")
        assert pointer in {fault["pointer"] for fault in problem["errors"]}
    (fault,) = refused(tokens.create(total_supply="10.00"), 422, "VALIDATION")["errors"]
    assert "1000.00 of a token with two decimals is 100000" in fault["detail"]
    problem = refused(tokens.create(max_supply=str(2**63)), 422, "VALIDATION")
    assert "92233720368547758.07" in problem["detail"]


def test_without_a_coin_at_the_address_it_says_how_that_is_mended(desk, tokens_at_none):
    tokens = tokens_at_none
    change = desk.policy.address(1, 0)
    desk.deposit(300_000, to=change)
    problem = refused(tokens.create(), 422, "TOKEN_COIN_MISSING")
    assert desk.vault["address"] in problem["detail"]
    assert [fault["pointer"] for fault in problem["errors"]] == ["/vault_id"]
    assert "Send some bitcoin" in problem["detail"]
    moved = ok(desk.propose(50_000, recipients=[desk.vault["address"]]))["psbt_id"]
    refused(tokens.create(), 422, "TOKEN_COIN_MISSING")
    tokens.finish(moved)
    ok(tokens.create())


def test_the_change_of_a_token_transaction_in_no_block_is_named(tokens):
    declined, desk = ok(tokens.create())["psbt_id"], tokens.desk
    refused(tokens.create(), 409, "LOCKED_FUNDS")
    desk.reject(declined)
    first = ok(tokens.create())["psbt_id"]
    tokens.finish(first, blocks=0)
    tokens.look()
    problem = refused(tokens.create(), 422, "TOKEN_COIN_MISSING")
    assert f"The vault's coin at {tokens.address} comes from proposal {first}" in problem["detail"]
    assert [fault["pointer"] for fault in problem["errors"]] == ["/vault_id"]
    tokens.mine()
    ok(tokens.create())


def test_an_unconfirmed_coin_that_costs_more_than_it_brings_is_not_waited_for(tokens_at_none, monkeypatch):
    tokens = tokens_at_none
    tokens.desk.deposit(600, blocks=0, to=tokens.address)
    detail = refused(tokens.create(), 422, "TOKEN_COIN_MISSING")["detail"]
    assert detail.startswith(f"The vault's coin at {tokens.address} is not confirmed yet.")
    assert "Wait for its confirmation" in detail
    monkeypatch.setattr(tokens.desk.chain, "fee_estimate", lambda _blocks: FeeRate(20_000))
    tokens.desk.watcher.look()
    assert "Send some bitcoin" in refused(tokens.create(), 422, "TOKEN_COIN_MISSING")["detail"]


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
