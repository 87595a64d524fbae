"""Proofs of control: asked for, signed and handed out by the platform; and they move nothing."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from custody.server.chain.backend import BroadcastRefused
from custody.server.cli import app
from custody.server.proposals import proofs
from custody.server.store.models import CoinLockRow, KeyRow, ProposalInputRow, ProposalRow
from multisig import Psbt
from tests.support.custody import SHOP, ok, refused
from tests.support.replacing import cancel

MESSAGE = "Asked for by the auditors"


def make(desk, **changes):
    return desk.tell("create-proof", **{"vault_id": desk.vault["id"], "message": MESSAGE} | changes)


def file_of(desk, psbt_id):
    return desk.admin.get("/api/v1/proof", workspace_id=desk.workspace_id, psbt_id=psbt_id)


def test_p93_a_proof_is_signed_and_anybody_can_check_it(desk, tmp_path):
    desk.deposit(40_000, 70_000)
    made = ok(make(desk, with_coins=True))["psbt_id"]
    waiting = desk.proposal(made)
    assert (waiting["tx_type"], waiting["status"], waiting["fee_sats"]) == ("proof", "PENDING", 0)
    mine = ok(desk.signers["alice"].get("/api/v1/psbt", workspace_id=desk.workspace_id, awaiting="me"))
    assert [one["psbt_id"] for one in mine] == [made]
    refused(file_of(desk, made), 409, "STATE_CONFLICT")
    assert desk.approve("alice", made)["status"] == "PENDING"
    assert desk.approve("bob", made)["status"] == "PROVEN"
    carol = desk.signers["carol"]
    assert ok(carol.get("/api/v1/psbt", workspace_id=desk.workspace_id, awaiting="me")) == []
    proof = ok(file_of(desk, made))
    tip = desk.chain.tip()
    assert (proof["height"], proof["block_hash"]) == (tip.height, tip.hash)
    assert proof["message"] == f"{MESSAGE} (block {tip.height}, {tip.hash})"
    assert sorted(coin["amount_sats"] for coin in proof["coins"]) == [40_000, 70_000]
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(proof))
    said = CliRunner().invoke(app, ["proof", "verify", str(path)])
    assert said.exit_code == 0, said.output
    assert "The proof is valid" in said.output


def test_p93_it_locks_no_coin_and_is_never_sent(desk):
    desk.deposit(100_000)
    made = ok(make(desk, with_coins=True))["psbt_id"]
    assert [row.amount_sats for row in desk.rows(ProposalInputRow)] == [0]
    assert desk.rows(CoinLockRow) == []
    payment = ok(desk.propose(20_000))["psbt_id"]
    desk.sign_off(made)
    desk.settle()
    assert {row.family_id for row in desk.rows(CoinLockRow)} == {payment}
    desk.sign_off(payment)
    desk.settle()
    desk.mine()
    assert desk.proposal(payment)["status"] == "CONFIRMED"
    # Its coin is spent by now: what was proven at that block stays so.
    assert desk.proposal(made)["status"] == "PROVEN"
    final = ok(file_of(desk, made))
    whole = Psbt.parse(final["signatures"][0]["signature"][3:])
    tx = replace(
        whole.tx,
        inputs=tuple(
            replace(txin, witness=item.final_script_witness)
            for txin, item in zip(whole.tx.inputs, whole.inputs, strict=True)
        ),
    )
    assert isinstance(desk.chain.broadcast(tx), BroadcastRefused), "no node takes it"


def test_p93_of_too_many_coins_the_largest_are_named(desk, monkeypatch):
    """Dust from strangers makes no proof impossible."""
    monkeypatch.setattr(proofs, "MAX_COINS", 2)
    desk.deposit(40_000, 900, 70_000)
    psbt = Psbt.parse(ok(make(desk, with_coins=True))["psbt_base64"])
    assert [item.witness_utxo.amount for item in psbt.inputs] == [0, 70_000, 40_000]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"message": "two\nlines"}, "/message"),
        ({"message": "\u202egnp.exe"}, "/message"),
        ({"message": "x" * 231}, "/message"),
        ({"address": SHOP}, "/address"),
        ({"with_coins": True}, "/with_coins"),
    ],
)
def test_p94_what_no_device_can_show_or_the_vault_does_not_hold_is_refused(desk, changes, pointer):
    answer = refused(make(desk, **changes), 422, "VALIDATION")
    assert pointer in json.dumps(answer)


@pytest.mark.parametrize(
    ("makes", "address", "coins"),
    [
        ((("coldcard", "5.6.1"), ("ledger", "2.4.6"), ("trezor", "1.14.1")), True, False),
        ((("coldcard", "5.6.1"), ("coldcard", "5.4.5"), ("trezor", "1.14.1")), True, True),
        ((("coldcard", "5.6.1"), ("jade", "1.0.31"), ("trezor", "1.14.1")), False, False),
        ((("coldcard", "5.6.1"), (None, None), ("trezor", "1.14.1")), True, True),
    ],
)
def test_p95_where_no_quorum_can_sign_no_signer_is_asked(desk, makes, address, coins):
    names = {
        "coldcard": "Coldcard Mk4",
        "ledger": "Ledger Nano S Plus",
        "trezor": "Trezor One",
        "jade": "Jade",
    }
    desk.deposit(40_000)
    with desk.store.write() as db:
        for key, (maker, firmware) in zip(db.scalars(select(KeyRow)), makes, strict=True):
            key.maker, key.model, key.firmware = maker, names.get(maker), firmware
    for with_coins, can in ((False, address), (True, coins)):
        if can:
            ok(make(desk, with_coins=with_coins))
        else:
            said = refused(make(desk, with_coins=with_coins), 422, "VALIDATION")
            assert "Trezor One" in json.dumps(said)


def test_p96_a_lost_key_takes_a_proofs_other_signatures_with_it(desk):
    desk.vault = ok(desk.create_vault("Reserve", m=3))
    desk.deposit(40_000, to=desk.vault["receive_address"])
    made = ok(make(desk, with_coins=True))["psbt_id"]
    for name in ("alice", "bob"):
        desk.approve(name, made)
    (key,) = ok(desk.signers["bob"].get("/api/v1/keys"))
    ok(desk.signers["bob"].post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost", "force": True}))
    assert desk.proposal(made)["collected_signatures"] == 0
    # Who signed before counts again, with a signature of every coin.
    assert desk.approve("alice", made)["collected_signatures"] == 1
    (row,) = desk.rows(ProposalRow)
    assert [len(item.partial_signatures) for item in Psbt.parse(row.psbt).inputs] == [1, 1]


def test_p96_a_proof_is_signed_whole_by_its_own_signers(desk):
    desk.deposit(40_000)
    made = ok(make(desk, with_coins=True))["psbt_id"]
    refused(desk.submit("alice", made, desk.signed("alice", made, inputs=[0])), 422, "BAD_SIGNATURE")
    refused(desk.submit("alice", made, desk.signed("alice", made, sighash=0x81)), 422, "BAD_SIGNATURE")
    other = ok(make(desk))["psbt_id"]
    refused(desk.submit("alice", made, desk.signed("alice", other)), 422, "PSBT_MISMATCH")
    desk.reject(made)
    assert desk.proposal(made)["status"] == "REJECTED"
    again = ok(make(desk, message="Once more"))["psbt_id"]
    assert ok(cancel(desk, again))["self_spend_offered"] is False
