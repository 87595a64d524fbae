"""Forwards: a member's own money into a vault, by the owner's signature alone, and everything that the chain
does to it.
"""

import bdkpython
import pytest

from custody.server.keys.profiles import CHANGE_INDEX
from multisig import CHANGE, RECEIVE, Psbt
from tests.support.custody import Desk, ok, refused, sign
from tests.support.platform import As, register_key, seed
from tests.support.prepared import Story
from tests.support.profiles import (
    figures,
    forward,
    grant,
    pay_profile,
    policy_of,
    profile_of,
    take_away,
)
from tests.support.replacing import bump, cancel, forget_mempool, meanwhile


@pytest.fixture
def beginning() -> Story:
    return alice_has_bought


def alice_has_bought(desk: Desk) -> None:
    """Signers may propose payments, too."""
    grant(desk, "Signer", "PAYMENT_INIT")
    pay_profile(desk, "alice", 100_000, 60_000)


@pytest.fixture
def psbt_id(desk: Desk) -> str:
    return ok(forward(desk, "alice", 120_000))["psbt_id"]


def awaiting(desk: Desk, user: As) -> list[str]:
    found = ok(user.get("/api/v1/psbt", workspace_id=desk.workspace_id, awaiting="me"))
    return [proposal["psbt_id"] for proposal in found]


def lose_key(desk: Desk, name: str) -> dict:
    """The profile that the key had."""
    old = profile_of(desk.signers[name])
    lost = {"key_id": old["key_id"], "reason": "lost", "force": True}
    ok(desk.signers[name].post("/api/v1/revoke-key", lost))
    return old


def test_a_forward_has_one_signer_and_carries_what_every_device_needs(desk: Desk) -> None:
    """P16."""
    psbt_id = ok(forward(desk, "alice", 120_000))["psbt_id"]
    shown = desk.proposal(psbt_id)
    assert (shown["tx_type"], shown["status"], shown["m"], shown["n"]) == ("forward", "PENDING", 1, 1)
    assert (shown["required_signatures"], shown["collected_signatures"]) == (1, 0)
    assert (shown["recipients"], shown["amounts_sats"]) == ([desk.vault["receive_address"]], [120_000])
    assert (shown["fee_sats"], shown["vault_id"]) == (1_000, desk.vault["id"])
    (signer,) = shown["signers"]
    assert signer["user_id"] == shown["created_by"] == str(desk.user_ids["alice"])
    assert signer["key_id"] == profile_of(desk.signers["alice"])["key_id"]

    psbt, policy = desk.psbt(psbt_id), policy_of(desk.devices["alice"])
    for item in psbt.inputs:
        assert item.witness_utxo == item.non_witness_utxo.outputs[item.outpoint.vout]
        ((key, origin),) = item.derivations.items()
        assert desk.devices["alice"].public_key(origin.path) == key
    by_script = {output.script_pubkey: output for output in psbt.outputs}
    assert by_script.pop(policy.script_pubkey(CHANGE, CHANGE_INDEX)).amount == 160_000 - 121_000
    ((into, output),) = by_script.items()
    assert (into, output.amount) == (desk.policy.script_pubkey(RECEIVE, 0), 120_000)
    # A device would take what names its own keys for money that comes back.
    assert not output.derivations

    ok(desk.decline("alice", psbt_id))
    ok(forward(desk, "alice", 50_000))
    assert figures(desk.signers["alice"]) == (160_000, 0, 100_000), "what it does not need it leaves"


def test_p48_fees_are_paid_to_the_satoshi_and_absurd_ones_refused(desk: Desk) -> None:
    """And requests that make no sense. Each bound: `test_forwarding_coins.py`."""
    for changes in (
        {"amount_sats": 1_000, "sweep": True},
        {"amount_sats": None},
        {"fee_sats": 0},
        {"fee_sats": 10},
        {"network": "mainnet"},
    ):
        refused(forward(desk, "alice", 50_000, **changes), 422, "VALIDATION")
    told = refused(forward(desk, "alice", 158_900), 422, "DUST")["detail"]
    assert "forward 159,000 sats, or 194 sats less" in told
    refused(forward(desk, "alice", 1_000_000), 422, "INSUFFICIENT_FUNDS")
    psbt_id = ok(forward(desk, "alice", 50_000, 4_321))["psbt_id"]
    psbt = desk.psbt(psbt_id)
    spent = sum(item.witness_utxo.amount for item in psbt.inputs)
    assert spent - sum(output.amount for output in psbt.outputs) == 4_321
    ok(desk.decline("alice", psbt_id))
    psbt = Psbt.parse(ok(forward(desk, "alice", fee=700))["psbt_base64"])
    assert ([output.amount for output in psbt.outputs], len(psbt.inputs)) == ([159_300], 2)


def test_the_owners_signature_finalises_broadcasts_and_confirms_it_and_no_limit_counts_it(
    desk: Desk, psbt_id: str
) -> None:
    """What a vault's and a role's limit measure is what leaves a vault (docs/operate/limits.md)."""
    desk.limit("0")
    psbt = desk.signed("alice", psbt_id)
    bdks = bdkpython.Psbt(psbt.to_base64()).finalize()
    assert bdks.could_finalize, bdks.errors
    answer = ok(desk.submit("alice", psbt_id, psbt))
    assert (answer["status"], answer["collected_signatures"]) == ("SIGNED", 1)
    desk.settle()
    shown = desk.proposal(psbt_id)
    assert (shown["status"], shown["txid"]) == ("BROADCASTING", shown["txid_expected"])
    assert shown["signers"][0]["is_signed"] is True
    found = desk.chain.transaction(shown["txid"])
    assert found.transaction.serialize() == bytes(bdks.psbt.extract_tx().serialize())

    # The change of a forward of confirmed coins is one's own.
    assert figures(desk.signers["alice"]) == (0, 39_000, 0)
    ok(desk.decline("alice", ok(forward(desk, "alice", 20_000))["psbt_id"]))
    mine = ok(desk.signers["alice"].get("/api/v1/get-my-limits", workspace_id=1))
    assert (mine["Used"], desk.used()) == ("0.00000000",) * 2
    # To the vault it is a stranger's deposit until it confirms: its maker could replace it.
    desk.limit("10")
    assert desk.wallets()[0]["unconfirmed_sats"] == 120_000
    refused(desk.propose(50_000), 422, "INSUFFICIENT_FUNDS")
    desk.mine()
    ok(desk.propose(50_000))
    desk.mine()
    vault = desk.wallets()[0]
    assert (vault["confirmed_sats"], vault["receive_address"]) == (120_000, desk.policy.address(0, 1))
    assert figures(desk.signers["alice"]) == (39_000, 0, 0)


def test_an_unconfirmed_deposit_and_its_change_are_spent_only_where_it_is_allowed(desk: Desk) -> None:
    pay_profile(desk, "bob", 90_000, blocks=0)
    refused(forward(desk, "bob"), 422, "INSUFFICIENT_FUNDS")
    desk.approve("bob", ok(forward(desk, "bob", 50_000, allow_unconfirmed=True))["psbt_id"])
    desk.settle()
    assert figures(desk.signers["bob"]) == (0, 39_000, 0)
    refused(forward(desk, "bob", 20_000), 422, "INSUFFICIENT_FUNDS")
    ok(forward(desk, "bob", 20_000, allow_unconfirmed=True))


def test_only_its_owner_signs_declines_and_cancels_it(desk: Desk, psbt_id: str) -> None:
    """Readers see it; a vault does not replace it."""
    desk.deposit(100_000)
    alice, bob = desk.signers["alice"], desk.signers["bob"]
    assert [awaiting(desk, user) for user in (alice, bob, desk.admin)] == [[psbt_id], [], []]
    assert ok(bob.get("/api/v1/psbt", psbt_id=psbt_id))["psbt_id"] == psbt_id
    said = refused(forward(desk, "alice", 50_000), 409, "LOCKED_FUNDS")["detail"]
    assert said.startswith(f"The coins of this profile are locked by proposal {psbt_id}. ")
    psbt = desk.signed("alice", psbt_id)
    refused(desk.submit("bob", psbt_id, psbt), 403, "NOT_A_SIGNER")
    refused(desk.decline("bob", psbt_id), 403, "NOT_A_SIGNER")
    body = {"psbt_id": psbt_id, "workspace_id": desk.workspace_id}
    signed = body | {"psbt_base64": psbt.to_base64()}
    refused(desk.admin.post("/api/v1/sign-psbt", signed), 403, "NOT_A_SIGNER")
    for user in (desk.admin, bob):
        refused(user.post("/api/v1/cancel-psbt", body), 403, "PERMISSION_DENIED")
    assert desk.proposal(psbt_id)["may_be_replaced"] is False
    refused(bump(desk, psbt_id), 409, "STATE_CONFLICT")
    assert desk.proposal(psbt_id)["status"] == "PENDING"

    answer = ok(alice.post("/api/v1/cancel-psbt", body))
    assert (answer["status"], answer["coins_kept"]) == ("CANCELLED", False)
    assert figures(alice) == (160_000, 0, 0)


def test_p24_only_from_ones_own_profile(desk: Desk) -> None:
    refused(forward(desk, "admin", user=desk.admin), 404, "NOT_FOUND")
    mine, bobs = (profile_of(desk.signers[name])["wallet_address"] for name in ("alice", "bob"))
    change = policy_of(desk.devices["alice"]).address(CHANGE, 0)
    mainnet = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    for address in (bobs, change, desk.vault["address"], mainnet, "x"):
        answer = forward(desk, "alice", 50_000, wallet_address=address)
        problem = refused(answer, 422, "WALLET_ADDRESS_MISMATCH")
        assert problem["errors"][0]["pointer"] == "/wallet_address"
    ok(forward(desk, "alice", 50_000, wallet_address=mine))
    ok(forward(desk, "alice", 50_000, wallet_address=mine.upper()))


def test_who_may_only_propose_signs_their_own_and_nothing_of_a_vault(desk: Desk) -> None:
    """PAYMENT_INIT is what the forward asks for; PAYMENT_APPROVE is for the vaults'."""
    desk.deposit(100_000)
    sent = ok(desk.propose(20_000))["psbt_id"]
    signed = desk.signed("alice", sent)
    forwarded = ok(forward(desk, "alice", 50_000))["psbt_id"]
    take_away(desk, "Signer", "PAYMENT_APPROVE")
    refused(desk.submit("alice", sent, signed), 403, "PERMISSION_DENIED")
    refused(desk.decline("alice", sent), 403, "PERMISSION_DENIED")
    assert desk.approve("alice", forwarded)["status"] == "SIGNED"


class TestWhichKey:
    def test_a_superseded_keys_money_is_forwarded_by_its_address(self, desk: Desk) -> None:
        alice = desk.signers["alice"]
        old = profile_of(alice)
        ok(register_key(alice, seed(7), replace=True))
        refused(forward(desk, "alice", 50_000), 422, "INSUFFICIENT_FUNDS")
        psbt_id = ok(forward(desk, "alice", wallet_address=old["wallet_address"]))["psbt_id"]
        assert desk.proposal(psbt_id)["signers"][0]["key_id"] == old["key_id"]
        assert desk.approve("alice", psbt_id)["status"] == "SIGNED"

    def test_a_lost_keys_is_not(self, desk: Desk, psbt_id: str) -> None:
        """Nor is what it signed taken, nor the key registered again: a thief may have it."""
        old = lose_key(desk, "alice")
        refused(forward(desk, "alice", 20_000), 404, "NOT_FOUND")
        refused(forward(desk, "alice", 20_000, wallet_address=old["wallet_address"]), 403, "KEY_REVOKED")
        refused(desk.submit("alice", psbt_id, desk.signed("alice", psbt_id)), 403, "KEY_REVOKED")
        assert ok(desk.decline("alice", psbt_id))["status"] == "REJECTED"
        again = register_key(desk.signers["alice"], desk.devices["alice"], replace=True)
        assert "marked lost" in refused(again, 409, "STATE_CONFLICT")["detail"]


def test_an_address_is_used_up_by_the_payment_and_not_by_the_proposal(desk: Desk) -> None:
    """Forwards that no member signs must not open a gap beyond which the vault is not restored."""
    psbt_id = ok(forward(desk, "alice", 50_000))["psbt_id"]
    assert ok(desk.decline("alice", psbt_id))["status"] == "REJECTED"
    assert desk.wallets()[0]["receive_address"] == desk.policy.address(0, 0)
    signed = desk.signed("alice", psbt_id)
    refused(desk.submit("alice", psbt_id, signed), 409, "STATE_CONFLICT")
    desk.deposit(10_000)
    paid = ok(forward(desk, "alice", 50_000))["psbt_id"]
    assert desk.proposal(paid)["recipients"] == [desk.policy.address(0, 1)]


def test_p16_a_draft_over_what_has_changed_meanwhile_is_made_anew_or_refused(desk: Desk) -> None:
    with meanwhile(lambda: desk.deposit(10_000)) as drafted:
        paid = ok(forward(desk, "alice", 50_000))["psbt_id"]
    assert len(drafted) == 2
    assert desk.proposal(paid)["recipients"] == [desk.policy.address(0, 1)], "the first was paid"
    ok(desk.decline("alice", paid))
    with meanwhile(lambda: lose_key(desk, "alice")):
        refused(forward(desk, "alice", 50_000), 404, "NOT_FOUND")


def test_a_deposit_that_its_sender_takes_back_holds_no_other_coin(desk: Desk) -> None:
    """While the change of one's own forward is not given up: both are offered again, and mined."""
    pay_profile(desk, "bob", 50_000)
    pay_profile(desk, "bob", 90_000, blocks=0)
    psbt_ids = []
    for name, amount in (("bob", None), ("alice", 120_000), ("alice", 20_000)):
        psbt_ids.append(ok(forward(desk, name, amount, allow_unconfirmed=name == "bob"))["psbt_id"])
        desk.approve(name, psbt_ids[-1])
        desk.settle()
    forget_mempool(desk)
    desk.watcher.look()
    shown = desk.proposal(psbt_ids[0])
    assert (shown["status"], shown["failure_code"]) == ("INVALIDATED", "input-gone")
    assert figures(desk.signers["bob"]) == (50_000, 0, 0)
    for _ in range(3):
        desk.world.clock.advance(seconds=61)
        desk.settle()
    desk.mine()
    assert [desk.proposal(each)["status"] for each in psbt_ids] == ["INVALIDATED", "CONFIRMED", "CONFIRMED"]


def test_half_signed_and_cancelled_it_offers_no_self_spend(desk: Desk, psbt_id: str) -> None:
    ok(desk.submit("alice", psbt_id, sign(desk.devices["alice"], desk.psbt(psbt_id), inputs=[0])))
    desk.admin = desk.signers["alice"]
    answer = ok(cancel(desk, psbt_id))
    assert (answer["coins_kept"], answer["self_spend_offered"]) == (True, False)
    assert ok(cancel(desk, psbt_id, release_coins=True))
    assert figures(desk.signers["alice"]) == (160_000, 0, 0)
