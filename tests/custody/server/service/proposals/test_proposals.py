"""Proposing a send: what is refused, what is locked, and what the PSBT holds (P16, P19, P28 to P30, P48).

And the whole way of a payment, from the deposit to the confirmation.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from custody.server.chain.embedded import mining
from multisig import Network, OutPoint, Psbt, Sats, TxOut, decode_address, inspect, parse_op_return
from tests.support.custody import CAFE, SHOP, ok, refused

OTHER_NETWORK = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"
MAINNET = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
BTC = 100_000_000


def coins_of(response) -> set[OutPoint]:
    return {txin.outpoint for txin in Psbt.parse(ok(response)["psbt_base64"]).tx.inputs}


class TestThePsbt:
    def test_it_says_what_was_asked_and_nothing_else(self, funded):
        created = ok(funded.propose(150_000, 30_000, op_return="invoice 7", fee_rate="3"))
        psbt = Psbt.parse(created["psbt_base64"])
        seen = inspect(psbt, funded.policy, network=Network.REGTEST)
        assert seen.ok, seen.findings
        assert {(p.address, p.amount) for p in seen.payments} == {(SHOP, 150_000), (CAFE, 30_000)}
        assert [item.data for item in seen.op_returns] == [b"invoice 7"]
        assert len(seen.change) == 1
        record = funded.proposal(created["psbt_id"])
        assert record["txid_expected"] == psbt.tx.txid
        assert (record["recipients"], record["amounts_sats"]) == ([SHOP, CAFE], [150_000, 30_000])
        assert record["fee_sats"] == seen.fee
        assert 3 <= float(record["fee_rate"]) < 3.1
        assert record["op_return"] == "0x" + b"invoice 7".hex()
        assert seen.signals_rbf

    def test_it_holds_what_every_device_needs(self, funded):
        psbt = Psbt.parse(ok(funded.propose(150_000))["psbt_base64"])
        for item in psbt.inputs:
            assert item.non_witness_utxo.txid == item.outpoint.txid
            assert item.witness_utxo == item.non_witness_utxo.outputs[item.outpoint.vout]
            assert item.witness_script
            assert len(item.derivations) == 3
            assert item.sequence == 0xFFFFFFFD
        assert len(psbt.xpubs) == 3

    def test_the_lock_time_is_the_tip_or_a_little_before(self, funded):
        psbt = Psbt.parse(ok(funded.propose(150_000))["psbt_base64"])
        assert funded.chain.tip().height - 100 < psbt.tx.locktime <= funded.chain.tip().height

    def test_an_old_tip_gives_no_lock_time(self, funded):
        funded.world.clock.advance(hours=9)
        funded.admin = funded.world.as_user("admin@example.org")
        assert Psbt.parse(ok(funded.propose(150_000))["psbt_base64"]).tx.locktime == 0

    def test_a_bip21_link_carries_its_amount(self, funded):
        body = {"recipients": [f"bitcoin:{SHOP}?amount=0.0015&label=Shop"], "amounts_sats": None}
        record = funded.proposal(ok(funded.propose(**body))["psbt_id"])
        assert (record["recipients"], record["amounts_sats"]) == ([SHOP], [150_000])

    def test_data_alone_makes_a_data_only_transaction(self, funded):
        created = ok(funded.propose(recipients=[], amounts_sats=None, op_return="0xdeadbeef"))
        outputs = Psbt.parse(created["psbt_base64"]).tx.outputs
        assert sorted(parse_op_return(out.script_pubkey) or b"" for out in outputs) == [
            b"",
            b"\xde\xad\xbe\xef",
        ]

    def test_each_change_has_an_address_of_its_own(self, funded):
        def change(response):
            seen = inspect(Psbt.parse(ok(response)["psbt_base64"]), funded.policy, network=Network.REGTEST)
            return [item.index for item in seen.change]

        assert change(funded.propose(10_000)) + change(funded.propose(10_000)) == [0, 1]

    def test_the_fee_share_stays_modest_where_coins_allow(self, funded):
        record = funded.proposal(ok(funded.propose(1_000, fee_rate="10"))["psbt_id"])
        outputs = Psbt.parse(record["psbt_base64"]).tx.outputs
        assert record["fee_sats"] * 20 < sum(out.amount for out in outputs)

    def test_extra_fields_are_kept(self, funded):
        created = ok(funded.propose(10_000, description="rent", contract_ids=["7"]))
        record = funded.proposal(created["psbt_id"])
        assert (record["description"], record["contract_ids"], record["tx_type"]) == ("rent", ["7"], "send")


class TestRefused:
    @pytest.mark.parametrize("address", [OTHER_NETWORK, MAINNET, "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"])
    def test_p28_an_address_of_another_network(self, funded, address):
        problem = refused(funded.propose(10_000, recipients=[address]), 422, "WRONG_NETWORK_ADDRESS")
        assert problem["errors"][0]["pointer"] == "/recipients/0"

    @pytest.mark.parametrize(
        "address", [SHOP[:10] + SHOP[10:].upper(), SHOP[:-1] + "q", "nonsense", SHOP + "q"]
    )
    def test_p28_mixed_case_typing_errors_and_nonsense(self, funded, address):
        refused(funded.propose(10_000, recipients=[address]), 422, "VALIDATION")

    def test_p29_a_repeated_recipient(self, funded):
        refused(funded.propose(10_000, 10_000, recipients=[SHOP, SHOP]), 422, "VALIDATION")
        refused(funded.propose(10_000, 10_000, recipients=[SHOP, SHOP.upper()]), 422, "VALIDATION")

    def test_p29_dust(self, funded):
        refused(funded.propose(293), 422, "DUST")
        ok(funded.propose(294))

    @pytest.mark.parametrize("amount", [0, -1, 2_100_000_000_000_001, 1.5, "10000", True])
    def test_p29_p21_amounts_that_are_none(self, funded, amount):
        refused(funded.propose(amount), 422, "VALIDATION")

    @pytest.mark.parametrize("op_return", ["x" * 81, "0x" + "00" * 81, "0xzz", "", "CPT\x11 forged"])
    def test_p30_data(self, funded, op_return):
        refused(funded.propose(10_000, op_return=op_return), 422, "VALIDATION")

    @pytest.mark.parametrize("fee_rate", ["0.999", "1001", "1e3", "-1", "NaN", "0.1234"])
    def test_p48_absurd_rates(self, funded, fee_rate):
        refused(funded.propose(10_000, fee_rate=fee_rate), 422, "VALIDATION")

    def test_neither_recipients_nor_data(self, funded):
        refused(funded.propose(recipients=[], amounts_sats=[]), 422, "VALIDATION")

    def test_recipients_without_amounts(self, funded):
        refused(funded.propose(recipients=[SHOP], amounts_sats=None), 422, "VALIDATION")

    def test_a_rate_and_a_priority_at_once(self, funded):
        refused(funded.propose(10_000, fee_rate="2", priority="high"), 422, "VALIDATION")

    def test_more_than_there_is(self, funded):
        refused(funded.propose(700_000), 422, "INSUFFICIENT_FUNDS")

    def test_an_unconfirmed_deposit_cannot_be_spent(self, desk):
        desk.deposit(100_000, blocks=0)
        (vault,) = desk.wallets()
        assert (vault["confirmed_sats"], vault["unconfirmed_sats"]) == (0, 100_000)
        refused(desk.propose(10_000), 422, "INSUFFICIENT_FUNDS")

    def test_p10_coins_of_huge_transactions_are_too_much_at_once(self, desk, monkeypatch):
        """Every input carries the transaction that made it, and the payer chooses its size."""
        assemble = mining._assemble

        def huge(coins, outputs):
            payment, *change = outputs
            data = TxOut(Sats(0), b"\x6a\x4e" + (90_000).to_bytes(4, "little") + bytes(90_000))
            return assemble(coins, (*[TxOut(Sats(20_000), payment.script_pubkey)] * 30, data, *change))

        desk.deposit(1_000)
        with monkeypatch.context() as patch:
            patch.setattr(mining, "_assemble", huge)
            desk.deposit(1_000_000)
        refused(desk.propose(570_000, fee_rate="1"), 422, "VALIDATION")
        assert desk.wallets()[0]["locked_sats"] == 0
        ok(desk.propose(100_000, fee_rate="1"))

    def test_another_workspaces_vault(self, funded):
        funded.world.organisation("Rival", "rival@example.org")
        rival = funded.world.as_user("rival@example.org")
        workspace = ok(rival.get("/api/v1/get-user-info"))["DefaultWorkspace"]
        body = {
            "wallet_id": funded.vault["id"],
            "workspace_id": workspace,
            "tx_type": "send",
            "recipients": [SHOP],
            "amounts_sats": [10_000],
        }
        refused(rival.post("/api/v1/create-psbt", body), 404, "NOT_FOUND")

    def test_a_signer_may_not_propose(self, funded):
        body = {
            "wallet_id": funded.vault["id"],
            "workspace_id": funded.workspace_id,
            "tx_type": "send",
            "recipients": [SHOP],
            "amounts_sats": [10_000],
        }
        refused(funded.signers["alice"].post("/api/v1/create-psbt", body), 403, "PERMISSION_DENIED")

    def test_nothing_is_kept_of_what_is_refused(self, funded):
        refused(funded.propose(700_000), 422, "INSUFFICIENT_FUNDS")
        (vault,) = funded.wallets()
        assert vault["locked_sats"] == 0
        assert ok(funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id)) == []


class TestLimits:
    @pytest.fixture
    def limited(self, desk):
        desk.vault = ok(desk.create_vault("Limited", limit="0.001"))
        desk.deposit(500_000, to=desk.vault["address"])
        return desk

    def test_p19_equal_to_the_limit_passes_and_one_satoshi_more_does_not(self, limited):
        fee = limited.proposal(ok(limited.propose(50_000, fee_rate="2"))["psbt_id"])["fee_sats"]
        limited.deposit(500_000, to=limited.vault["address"])
        problem = refused(limited.propose(100_000 - fee + 1, fee_rate="2"), 403, "VAULT_LIMIT_EXCEEDED")
        assert problem["figures"]["limit"] == "0.00100000"
        assert problem["figures"]["requested"] == "0.00100001"
        ok(limited.propose(100_000 - fee, fee_rate="2"))

    def test_used_and_unused_follow_proposals_and_their_ends(self, limited):
        def figures():
            vault = next(v for v in limited.wallets() if v["id"] == limited.vault["id"])
            limits = vault["detailed_vault_limits"]
            return limits["Used"], limits["Unused"], limits["NextReset"]

        assert figures() == ("0.00000000", "0.00100000", "2026-04-01T00:00:00.000Z")
        created = ok(limited.propose(50_000))
        fee = limited.proposal(created["psbt_id"])["fee_sats"]
        assert figures()[0] == f"0.000{50_000 + fee}"
        assert figures()[1] == f"0.000{50_000 - fee}"
        ok(limited.decline("alice", created["psbt_id"]))
        ok(limited.decline("bob", created["psbt_id"]))
        assert figures()[:2] == ("0.00000000", "0.00100000")

    def test_a_move_to_the_vault_itself_counts_for_its_fee_alone(self, limited):
        inside = next(v for v in limited.wallets() if v["id"] == limited.vault["id"])["receive_address"]
        ok(limited.propose(300_000, recipients=[inside]))


class TestLocks:
    def test_two_proposals_never_share_a_coin(self, funded):
        first, second = coins_of(funded.propose(150_000)), coins_of(funded.propose(150_000))
        assert first.isdisjoint(second)

    def test_locked_funds_are_told_from_missing_ones(self, funded):
        ok(funded.propose(650_000))
        refused(funded.propose(50_000), 409, "LOCKED_FUNDS")
        refused(funded.propose(5 * BTC), 422, "INSUFFICIENT_FUNDS")

    def test_p16_parallel_proposals_over_one_coin(self, desk):
        desk.deposit(500_000)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: desk.propose(100_000), range(8)))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200] + [409] * 7
        assert {a.json()["code"] for a in answers if a.status_code == 409} == {"LOCKED_FUNDS"}

    def test_p16_the_database_itself_refuses_a_second_lock(self, funded):
        """Also where two processes chose the same coin before either had written."""
        from custody.server.domain.errors import LockedFunds
        from custody.server.service.proposals.coins import lock_coins

        outpoint = OutPoint("ab" * 32, 0)
        store = funded.world.platform.services.store
        with store.write() as db:
            lock_coins(db, "regtest", [outpoint], "one")
        with pytest.raises(LockedFunds), store.write() as db:
            lock_coins(db, "regtest", [outpoint], "two")

    def test_the_same_idempotency_key_proposes_once(self, funded):
        body = {
            "wallet_id": funded.vault["id"],
            "workspace_id": funded.workspace_id,
            "tx_type": "send",
            "recipients": [SHOP],
            "amounts_sats": [10_000],
        }
        first, again = (
            ok(funded.admin.post("/api/v1/create-psbt", body, **{"Idempotency-Key": "k1"})) for _ in range(2)
        )
        assert first == again
        assert len(ok(funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id))) == 1


class TestReading:
    def test_a_list_is_newest_last_and_paged(self, funded):
        ids = [ok(funded.propose(1_000 + number))["psbt_id"] for number in range(3)]
        listed = funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id)
        order = [item["psbt_id"] for item in ok(listed)]
        assert order == sorted(ids), "made at one moment, so in order of their ids"
        page = funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id, limit=2)
        assert [item["psbt_id"] for item in ok(page)] == order[:2]
        assert page.headers["X-Total-Count"] == "3"
        assert f"after={order[1]}" in page.headers["Link"]
        rest = funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id, limit=2, after=order[1])
        assert [item["psbt_id"] for item in ok(rest)] == order[2:]
        assert "Link" not in rest.headers

    def test_later_proposals_come_later(self, funded):
        ids = []
        for number in range(3):
            ids.append(ok(funded.propose(1_000 + number))["psbt_id"])
            funded.world.clock.advance(seconds=1)
        listed = ok(funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id))
        assert [item["psbt_id"] for item in listed] == ids

    def test_what_awaits_me_is_what_i_have_not_decided(self, funded):
        ids = {ok(funded.propose(1_000 + number))["psbt_id"] for number in range(2)}

        def awaiting(name):
            query = {"workspace_id": funded.workspace_id, "awaiting": "me"}
            return {item["psbt_id"] for item in ok(funded.signers[name].get("/api/v1/psbt", **query))}

        assert awaiting("alice") == ids
        first, second = sorted(ids)
        funded.approve("alice", first)
        assert awaiting("alice") == {second}
        ok(funded.decline("alice", second))
        assert awaiting("alice") == set()
        funded.approve("bob", first)
        assert awaiting("carol") == {second}

    def test_by_status(self, funded):
        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        query = {"workspace_id": funded.workspace_id}
        assert [i["psbt_id"] for i in ok(funded.admin.get("/api/v1/psbt", status="PENDING", **query))] == [
            psbt_id
        ]
        assert ok(funded.admin.get("/api/v1/psbt", status="CONFIRMED", **query)) == []

    @pytest.mark.parametrize(
        "query", [None, {"limit": 0}, {"status": "DONE"}, {"after": "nowhere"}, {"awaiting": "you"}]
    )
    def test_queries_that_make_no_sense(self, funded, query):
        asked = {} if query is None else {"workspace_id": 1, **query}
        refused(funded.admin.get("/api/v1/psbt", **asked), 422, "VALIDATION")

    def test_p24_another_tenants_proposal_is_answered_as_one_that_never_was(self, funded):
        psbt_id = ok(funded.propose(50_000))["psbt_id"]
        funded.world.organisation("Rival", "rival@example.org")
        rival = funded.world.as_user("rival@example.org")
        answers = [
            refused(rival.get("/api/v1/psbt", psbt_id=one), 404, "NOT_FOUND") for one in (psbt_id, "0" * 32)
        ]
        assert answers[0]["detail"] == answers[1]["detail"]

    def test_an_etag_spares_the_body(self, funded):
        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        for query in ({"psbt_id": psbt_id}, {"workspace_id": funded.workspace_id}):
            first = funded.admin.get("/api/v1/psbt", **query)
            headers = {**funded.admin.headers, "If-None-Match": first.headers["ETag"]}
            again = funded.admin.http.get("/api/v1/psbt", params=query, headers=headers)
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["ETag"] == first.headers["ETag"]
        funded.approve("alice", psbt_id)
        changed = funded.admin.http.get("/api/v1/psbt", params=query, headers=headers)
        assert changed.status_code == 200

    def test_a_long_poll_ends_when_something_changes(self, funded):
        """The waiting request is under way before the signature comes, and ends with it."""
        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        etag = funded.admin.get("/api/v1/psbt", psbt_id=psbt_id).headers["ETag"]
        headers = {**funded.admin.headers, "If-None-Match": etag, "Prefer": "wait=30"}
        signed = funded.signed("alice", psbt_id)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(
                funded.admin.http.get, "/api/v1/psbt", params={"psbt_id": psbt_id}, headers=headers
            )
            while not funded.world.platform.services.following.open:
                assert not waiting.done()
            ok(funded.submit("alice", psbt_id, signed))
            answer = waiting.result(10)
        assert ok(answer)["collected_signatures"] == 1

    def test_a_long_poll_without_change_ends_with_304(self, funded):
        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        etag = funded.admin.get("/api/v1/psbt", psbt_id=psbt_id).headers["ETag"]
        headers = {
            **funded.admin.headers,
            "If-None-Match": f'"x", W/{etag}',
            "Prefer": "respond-async, wait=1",
        }
        answer = funded.admin.http.get("/api/v1/psbt", params={"psbt_id": psbt_id}, headers=headers)
        assert answer.status_code == 304


def test_a_send_from_deposit_to_confirmation(funded):
    (vault,) = funded.wallets()
    assert (vault["confirmed_sats"], vault["unconfirmed_sats"], vault["locked_sats"]) == (700_000, 0, 0)
    psbt_id = ok(funded.propose(150_000))["psbt_id"]
    assert funded.proposal(psbt_id)["status"] == "PENDING"
    first = funded.approve("alice", psbt_id)
    assert (first["status"], first["collected_signatures"], first["txid"]) == ("PENDING", 1, None)
    second = funded.approve("bob", psbt_id)
    assert (second["status"], second["collected_signatures"]) == ("SIGNED", 2)
    funded.settle()
    sent = funded.proposal(psbt_id)
    assert (sent["status"], sent["txid"]) == ("BROADCASTING", sent["txid_expected"])
    (block,) = funded.chain.mine(1)
    funded.watcher.look()
    confirmed = funded.proposal(psbt_id)
    assert (confirmed["status"], confirmed["confirmations"]) == ("CONFIRMED", 1)
    assert (confirmed["block_height"], confirmed["block_hash"]) == (block.height, block.hash)
    funded.chain.mine(2)
    funded.watcher.look()
    assert funded.proposal(psbt_id)["confirmations"] == 3
    outputs = funded.chain.outputs_to([decode_address(SHOP, Network.REGTEST)])
    assert [out.amount for out in outputs] == [150_000]
    (vault,) = funded.wallets()
    assert vault["confirmed_sats"] == 700_000 - 150_000 - confirmed["fee_sats"]
    assert vault["locked_sats"] == 0
