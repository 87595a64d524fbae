"""Proposing a send: what is refused, what is locked, and what the PSBT holds (P16, P19, P28 to P30, P48)."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy.exc import IntegrityError

from custody.server.chain.embedded import mining
from custody.server.proposals import reading
from multisig import Network, OutPoint, Psbt, Sats, TxOut, inspect, parse_op_return
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.replacing import made
from tests.support.rows import lock_coins

OTHER_NETWORK = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"
MAINNET = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def test_the_psbt_says_what_was_asked_and_nothing_else_and_holds_what_every_device_needs(funded):
    more = {"op_return": "invoice 7", "description": "rent", "contract_ids": ["7"]}
    created = ok(funded.propose(150_000, 30_000, fee_rate="3", **more))
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
    assert (record["description"], record["contract_ids"], record["tx_type"]) == ("rent", ["7"], "send")
    assert seen.signals_rbf
    for item in psbt.inputs:
        assert item.non_witness_utxo.txid == item.outpoint.txid
        assert item.witness_utxo == item.non_witness_utxo.outputs[item.outpoint.vout]
        assert item.witness_script
        assert len(item.derivations) == 3
        assert item.sequence == 0xFFFFFFFD
    assert len(psbt.xpubs) == 3
    assert funded.chain.tip().height - 100 < psbt.tx.locktime <= funded.chain.tip().height

    # A payment link carries its amount. Each proposal has its coin: by chance the one before took all others.
    funded.deposit(300_000)
    link = {"recipients": [f"bitcoin:{SHOP}?amount=0.0015&label=Shop"], "amounts_sats": None}
    record = funded.proposal(ok(funded.propose(**link))["psbt_id"])
    assert (record["recipients"], record["amounts_sats"]) == ([SHOP], [150_000])

    # Data alone makes a transaction of data alone; at an old tip no lock time says when.
    funded.deposit(50_000)
    funded.later(hours=9)
    alone = ok(funded.propose(recipients=[], amounts_sats=None, op_return="0xdeadbeef"))
    data, tx = b"\xde\xad\xbe\xef", Psbt.parse(alone["psbt_base64"]).tx
    assert sorted(parse_op_return(out.script_pubkey) or b"" for out in tx.outputs) == [b"", data]
    assert tx.locktime == 0


class TestRefused:
    def test_what_cannot_be_asked_or_paid_leaves_nothing(self, funded):
        """Another network's address (P28), amounts and recipients that are none (P29, P21), data (P30),
        absurd rates (P48).
        """
        for address in (OTHER_NETWORK, MAINNET, "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"):
            problem = refused(funded.propose(10_000, recipients=[address]), 422, "WRONG_NETWORK_ADDRESS")
            assert problem["errors"][0]["pointer"] == "/recipients/0"
        for amounts, more in (
            # Mixed case, a typing error, a recipient twice.
            *(([10_000], {"recipients": [each]}) for each in (SHOP[:-1] + "Q", SHOP[:-1] + "q")),
            ([10_000, 10_000], {"recipients": [SHOP, SHOP.upper()]}),
            *(([amount], {}) for amount in (0, -1, 2_100_000_000_000_001, 1.5, "10000", True)),
            ([10_000], {"op_return": "x" * 81}),
            *(([10_000], {"fee_rate": rate}) for rate in ("0.099", "1001", "1e3", "-1", "NaN", "0.1234")),
            ([], {"recipients": [], "amounts_sats": []}),
            ([10_000], {"fee_rate": "2", "priority": "high"}),
        ):
            refused(funded.propose(*amounts, **more), 422, "VALIDATION")
        refused(funded.propose(700_000), 422, "INSUFFICIENT_FUNDS")
        refused(funded.propose(293), 422, "DUST")
        (vault,) = funded.wallets()
        assert vault["locked_sats"] == 0
        assert ok(funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id)) == []
        ok(funded.propose(294))

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


def test_a_sweep_has_one_recipient_alone_and_what_others_hold_and_what_is_unconfirmed_stays(funded):
    link = f"bitcoin:{SHOP}?amount=0.001"
    unread = (SHOP, f"bitcoin:{SHOP}", f"bitcoin:{SHOP}?amt=0.001")
    for recipients in ([SHOP, CAFE], [link, CAFE], *([text] for text in unread)):
        problem = refused(funded.propose(recipients=recipients, amounts_sats=None), 422, "VALIDATION")
        for way in ("amounts_sats", "payment link", "sweep: true"):
            assert way in problem["errors"][0]["detail"]
    held = len(Psbt.parse(ok(funded.propose(1_000))["psbt_base64"]).inputs)
    funded.deposit(50_000, blocks=0)
    everything = ok(funded.sweep(op_return="moved"))
    assert held + len(Psbt.parse(everything["psbt_base64"]).inputs) == 3
    record = funded.proposal(everything["psbt_id"])
    assert record["op_return"] == "0x" + b"moved".hex(), "data may go with it"


def test_p16_the_database_itself_refuses_a_second_lock(funded):
    """Also where two processes chose the same coin before either had written."""
    outpoint = OutPoint("ab" * 32, 0)
    store = funded.store
    with store.write() as db:
        lock_coins(db, "regtest", [outpoint], "one")
    with pytest.raises(IntegrityError), store.write() as db:
        lock_coins(db, "regtest", [outpoint], "two")


def ids(listed) -> list[str]:
    return [item["psbt_id"] for item in ok(listed)]


class TestReading:
    def test_a_list_is_newest_last_and_paged(self, funded):
        first, second, *_ = order = sorted(made(funded.propose(1_000 + number)) for number in range(2))
        funded.world.clock.advance(seconds=1)
        order += [made(funded.propose(1_003))]
        list_them = partial(funded.admin.get, "/api/v1/psbt", workspace_id=funded.workspace_id)
        assert ids(list_them()) == order, "of one moment, in order of their ids"
        page = list_them(limit=2)
        assert ids(page) == [first, second]
        assert page.headers["X-Total-Count"] == "3"
        assert f"after={second}" in page.headers["Link"]
        rest = list_them(limit=2, after=second)
        assert ids(rest) == order[2:]
        assert "Link" not in rest.headers
        assert (ids(list_them(status="PENDING")), ids(list_them(status="CONFIRMED"))) == (order, [])

    def test_a_search_finds_by_title_name_address_id_and_amount(self, funded, monkeypatch):
        funded.enter("Acme Ltd.", SHOP)
        rent = made(funded.propose(50_000, description="Rent of März 100%"))
        funded.world.clock.advance(seconds=1)
        wages = made(funded.propose(7_000, recipients=[CAFE], description="Wages"))
        txid = funded.proposal(wages)["txid_expected"]
        by_word = {
            "rent": [rent], "RENT 100%": [rent], "rent acme": [rent], "wages acme": [], "ltd": [rent],
            SHOP[:20].upper(): [rent], CAFE: [wages], txid[:9]: [wages], rent[:12].upper(): [rent],
            "0.0005": [rent], "50000 rent": [rent], "5000": [], "7000": [wages], "%": [rent],
            '"': [], "_": [],
        }  # fmt: skip
        find = partial(funded.admin.get, "/api/v1/psbt", workspace_id=1)
        assert {words: ids(find(search=words)) for words in by_word} == by_word
        assert ids(find(search="e", order="newest")) == [wages, rent]
        assert ids(funded.signers["alice"].get("/api/v1/psbt", workspace_id=1, search="acme")) == []
        refused(find(search="a b c d e f g h i"), 422, "VALIDATION")
        assert ids(find(search="rent " * 9)) == [rent]
        # Each page looks at one: an answer without any goes on after it.
        monkeypatch.setattr(reading, "WINDOW", 1)
        first = find(search="wages")
        assert (ids(first), first.headers["X-Total-Count-Is"]) == ([], "at-least")
        assert f"after={rent}" in first.headers["Link"]
        assert ids(find(search="wages", after=rent)) == [wages]
        # The words of a search share what is looked at.
        monkeypatch.setattr(reading, "WINDOW", 2)
        assert (ids(find(search="wages")), ids(find(search="wages cafe"))) == ([wages], [])
        assert f"after={rent}" in find(search="wages cafe").headers["Link"]

    def test_no_query_that_makes_no_sense_is_answered(self, funded):
        refused(funded.admin.get("/api/v1/psbt"), 422, "VALIDATION")
        for query in ({"limit": 0}, {"status": "DONE"}, {"after": "nowhere"}, {"awaiting": "you"}):
            refused(funded.admin.get("/api/v1/psbt", workspace_id=1, **query), 422, "VALIDATION")

    def test_an_etag_spares_the_body_and_a_long_poll_ends_when_something_changes(self, funded):
        """The waiting request is under way before the signature comes, and ends with it; or without a
        change, when its time is over.
        """
        psbt_id = ok(funded.propose(1_000))["psbt_id"]

        def ask(query, etag, **more):
            headers = {**funded.admin.headers, "If-None-Match": etag, **more}
            return funded.admin.http.get("/api/v1/psbt", params=query, headers=headers)

        in_list, one = {"workspace_id": funded.workspace_id}, {"psbt_id": psbt_id}
        etags = [funded.admin.get("/api/v1/psbt", **query).headers["ETag"] for query in (in_list, one)]
        for query, etag in zip((in_list, one), etags, strict=True):
            again = ask(query, etag)
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", etag)
        assert ask(one, f'"x", W/{etags[1]}', Prefer="respond-async, wait=1").status_code == 304
        signed = funded.signed("alice", psbt_id)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(ask, one, etags[1], Prefer="wait=30")
            while not funded.world.platform.services.following.open:
                assert not waiting.done()
            ok(funded.submit("alice", psbt_id, signed))
            answer = waiting.result(10)
        assert ok(answer)["collected_signatures"] == 1
        assert ask(in_list, etags[0]).status_code == 200
