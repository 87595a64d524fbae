"""Proposals in the console: the list, one of them, a new payment from the form to the chain, and its end."""

from datetime import timedelta

import pytest

from custody.server.store.models import AddressBookEntryRow, ProposalRow
from multisig import Network, Psbt, encode_address
from tests.support.custody import CAFE, SHOP, ok
from tests.support.profiles import grant
from tests.support.replacing import made, meanwhile
from tests.support.wallets import foreign_script


@pytest.fixture
def here(desk):
    desk.deposit(1_000_000, 700_000)
    return f"/console/w/{desk.workspace_id}/proposals"


def looked_at(browse, here, **typed):
    """The review of a payment."""
    person = browse("admin").open(f"{here}/new")
    return person.send(f"{here}/new", **{"recipient": SHOP, "amount": "0.004"} | typed)


def problems(person):
    return [tag.words for tag in person.page.tags if tag.attributes.get("class") == "problem"]


def in_focus(person):
    return [tag.words for tag in person.page.tags if "autofocus" in tag.attributes]


def newest(desk):
    return max(desk.rows(ProposalRow), key=lambda row: row.created_at)


def test_a_payment_is_looked_at_made_signed_and_confirmed(desk, browse, here):
    person = looked_at(browse, here, description="Invoice 7")
    assert desk.rows(ProposalRow) == []
    for words in ("Where the money goes", "Back to Treasury", "400,000 sats"):
        assert words in person.words
    assert person.facts["Approvals"] == "2 of alice@example.org, bob@example.org, carol@example.org"
    fee = person.words.partition("Network fee")[2]
    person.confirm(f"{here}/new")
    (proposal,) = desk.rows(ProposalRow)
    assert f"{proposal.fee_sats:,} sats" in fee
    assert person.url == f"{here}/{proposal.id}"
    assert "It is proposed." in person.words
    assert len(in_focus(person)) == 1, "its heading"
    part = person.page.by_id("standing").attributes
    assert "It is proposed." not in person.open(part["hx-get"]).words
    person.open(f"{here}/{proposal.id}")
    assert "waits for 2 of alice@example.org, bob@example.org" in person.words
    assert "by admin@example.org (you)" in person.words
    signer = browse("alice").open(person.url).words
    assert f"waits for 2 of alice@example.org (you), member {desk.user_ids['bob']}" in signer
    assert "bob@example.org" not in signer
    desk.approve("alice", proposal.id)
    ok(desk.decline("carol", proposal.id, "too early"))
    assert "too early" in person.open(person.url).words
    desk.approve("bob", proposal.id)
    desk.settle()
    desk.mine(6)
    person.open(person.url)
    assert "Confirmed" in person.words
    assert "6 confirmations" in person.words
    assert "Invoice 7" in person.open(here).words


def test_what_was_shown_is_made_though_other_coins_would_do(desk, browse, here):
    person = looked_at(browse, here)
    coins = [value for name, value in person.form(f"{here}/new").fields if name == "shown_coin"]
    desk.deposit(5_000_000, 400_500)
    person.confirm(f"{here}/new")
    made_of = desk.proposal(newest(desk).id)
    assert {f"{item.outpoint}" for item in psbt(made_of).inputs} == set(coins)


def psbt(record):
    return Psbt.parse(record["psbt_base64"])


def test_a_coin_that_was_spent_meanwhile_is_told_and_what_was_typed_stays(desk, browse, here):
    person = looked_at(browse, here, amount="0.016", description="Both coins")
    made(desk.propose(900_000))
    person.confirm(f"{here}/new", status=409)
    assert "Another payment has taken a coin" in person.words
    fields = person.form(f"{here}/new").fields
    assert ("recipient", SHOP) in fields
    assert ("amount", "0.016") in fields
    assert ("description", "Both coins") in fields
    assert len(desk.rows(ProposalRow)) == 1


def test_two_people_at_once_and_one_click_twice(desk, browse, here):
    one, other = (looked_at(browse, here, amount="0.012") for _ in range(2))
    sent: dict[str, list[str]] = {}
    for name, value in one.form(f"{here}/new").fields:
        sent.setdefault(name, []).append(value)
    one.confirm(f"{here}/new")
    answer = one.http.post(f"{here}/new", data=sent, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 303
    assert len(desk.rows(ProposalRow)) == 1
    other.confirm(f"{here}/new", status=409)
    assert len(desk.rows(ProposalRow)) == 1


def test_the_address_book_is_understood_and_what_it_means_now_is_what_counts(desk, browse, here):
    body = {"workspace_id": desk.workspace_id, "name": "Cafe Müller", "address": CAFE}
    ok(desk.admin.post("/api/v1/add-whitelist-address", body))
    person = browse("admin")
    offered = f"/console/w/{desk.workspace_id}/parts/addresses?recipient="
    assert person.open(f"{offered}MÜLL").html.strip() == f'<option value="Cafe Müller">{CAFE}</option>'
    assert person.open(f"{offered}bar").html.strip() == ""
    person = looked_at(browse, here, recipient="cafe müller", amount="25000", unit="sats")
    assert "Cafe Müller in the address book" in person.words
    person.confirm(f"{here}/new")
    assert newest(desk).recipients == [CAFE]


def test_a_name_that_leads_elsewhere_meanwhile_is_looked_at_again(desk, browse, here):
    place = {"workspace_id": desk.workspace_id}
    entry = ok(desk.admin.post("/api/v1/add-whitelist-address", place | {"name": "Cafe", "address": CAFE}))
    person = looked_at(browse, here, recipient="Cafe")
    ok(desk.admin.post("/api/v1/remove-whitelist-address", place | {"uid": entry["uid"]}))
    other = encode_address(foreign_script("thief"), Network.REGTEST)
    ok(desk.admin.post("/api/v1/add-whitelist-address", place | {"name": "Cafe", "address": other}))
    person.confirm(f"{here}/new", status=409)
    assert "would now do something else" in person.words
    assert desk.rows(ProposalRow) == []


def test_several_recipients_links_own_rate_and_the_most(desk, browse, here):
    person = browse("admin").open(f"{here}/new")
    rows = (
        ("recipient", f"bitcoin:{SHOP}?amount=0.001"),
        ("amount", ""),
        ("recipient", CAFE),
        ("amount", "0.002"),
    )
    person.send(f"{here}/new", repeated=rows, fee="own", fee_rate="7")
    person.confirm(f"{here}/new")
    proposal = newest(desk)
    assert (proposal.recipients, proposal.amounts_sats) == ([SHOP, CAFE], [100_000, 200_000])
    assert proposal.fee_rate_sat_per_kvb == 7_000
    desk.world.clock.advance(seconds=1)
    looked_at(browse, here, amount="", most="yes").confirm(f"{here}/new")
    assert newest(desk).amounts_sats[0] > 300_000


def test_coins_are_chosen_by_hand(desk, browse, here):
    person = browse("admin").open(f"{here}/new")
    coins = ok(
        desk.admin.get("/api/v1/vault-coins", workspace_id=desk.workspace_id, vault_id=desk.vault["id"])
    )["coins"]
    small = f"{coins[1]['txid']}:{coins[1]['vout']}"
    assert small not in person.html
    person.send(f"{here}/new", recipient=SHOP, amount="0.001", back="coins")
    assert small in person.html
    person.send(f"{here}/new", coin=small)
    person.confirm(f"{here}/new")
    assert [str(item.outpoint) for item in psbt(desk.proposal(newest(desk).id)).inputs] == [small]


def test_the_vault_that_is_selected_pays_and_coins_of_another_do_not(desk, browse, here):
    savings = ok(desk.create_vault("Savings"))
    desk.deposit(800_000, to=savings["address"])
    query = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    coin = ok(desk.admin.get("/api/v1/vault-coins", **query))["coins"][0]
    person = browse("admin").open(f"{here}/new?vault={desk.vault['id']}")
    paid = {"wallet": savings["id"], "recipient": SHOP, "amount": "0.001"}
    person.send(f"{here}/new", **paid, back="vault")
    assert {("wallet", savings["id"]), ("recipient", SHOP)} <= set(person.form(f"{here}/new").fields)
    assert person.facts["Can be spent now"].startswith("0.00800000")
    person.send(f"{here}/new", **paid, coin=f"{coin['txid']}:{coin['vout']}", status=422)
    assert "is not a coin of this vault" in person.words
    assert "coin" not in dict(person.form(f"{here}/new").fields)
    person.send(f"{here}/new").confirm(f"{here}/new")
    assert newest(desk).vault_id == savings["id"]


@pytest.mark.parametrize(
    ("typed", "words", "status"),
    [
        ({"amount": "abc"}, "In BTC an amount is like 0.25.", 422),
        ({"amount": "1.5", "unit": "sats"}, "In sats an amount is a whole number", 422),
        ({"amount": ""}, "Type an amount", 422),
        ({"amount": "0.000001"}, "dust", 422),
        (
            {"recipient": "Acmee"},
            "No entry of the address book is called Acmee, and it is not an address.",
            422,
        ),
        ({"recipient": SHOP[:-1] + "q"}, "the checksum is wrong", 422),
        ({"amount": "0,5"}, "Write it with a point, as in 0.5.", 422),
        ({"amount": "9"}, "At most", 422),
        ({"amount": "20"}, "does not fit", 403),
        ({"fee": "own"}, "Type a rate in sat/vB", 422),
        ({"fee": "own", "fee_rate": "0"}, "The rate must be", 422),
        ({"fee": "own", "fee_rate": "2,5"}, "with a point and at most three places, as in 2.5", 422),
        ({"most": "yes"}, "The most is sent to one recipient", 422),
    ],
)
def test_what_is_wrong_is_told_beside_its_field(browse, here, typed, words, status):
    person = browse("admin").open(f"{here}/new")
    person.send(f"{here}/new", **{"recipient": SHOP, "amount": "0.004"} | typed, status=status)
    assert any(words in problem for problem in problems(person)), person.words
    fields = person.form(f"{here}/new").fields
    for name, value in typed.items():
        if name in {"recipient", "amount", "fee_rate"}:
            assert (name, value) in fields


def test_a_frozen_vault_says_so_and_offers_no_payment(desk, browse, here):
    vault = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    waiting = made(desk.propose(100_000))
    person = looked_at(browse, here)
    assert "The vault is frozen." not in browse("alice").open(f"{here}/{waiting}").words
    ok(desk.admin.post("/api/v1/freeze-vault", vault))
    person.confirm(f"{here}/new", status=409)
    assert "The vault is frozen." in person.words
    assert "Look at it" not in person.words
    assert "The vault is frozen." in browse("alice").open(f"{here}/{waiting}").words


def test_a_bump_shows_both_fees(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    person = browse("admin").open(f"{here}/{psbt_id}/bump")
    person.send(f"{here}/{psbt_id}/bump", fee_rate="2,5", status=422)
    assert "as in 2.5" in person.page.by_id("fee_rate-problem").words
    person.send(f"{here}/{psbt_id}/bump", fee_rate="1", status=422)
    assert any("BIP-125" in words for words in problems(person))
    person.send(f"{here}/{psbt_id}/bump", fee_rate="9")
    assert "2 sat/vB before, 9 sat/vB now" in person.words
    person.confirm(f"{here}/{psbt_id}/bump")
    assert "an earlier version" in person.words
    assert "Another version is to replace it" in person.open(f"{here}/{psbt_id}").words


def test_a_take_back_that_would_pay_another_fee_by_now_is_looked_at_again(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    path = f"{here}/{psbt_id}/take-back"
    person = browse("admin").open(path).send(path, fee_rate="9")
    person.confirm(path, status=409, fee_rate="90")
    assert "would now do something else" in person.words
    assert len(desk.rows(ProposalRow)) == 1
    person.send(path, fee_rate="9").confirm(path)
    assert len(desk.rows(ProposalRow)) == 2


def test_the_version_that_is_compared_is_the_one_that_is_stored(desk, browse, here):
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    (coin,) = ok(desk.admin.get("/api/v1/vault-coins", **place, min_sats=700_000, max_sats=700_000))["coins"]
    psbt_id = made(desk.propose(699_000, fee_rate="2", coins=[f"{coin['txid']}:{coin['vout']}"]))
    path = f"{here}/{psbt_id}/bump"
    person = browse("admin").open(path).send(path, fee_rate="9")
    with meanwhile(lambda: desk.deposit(5_000_000)):
        person.confirm(path)
    stored = Psbt.parse(newest(desk).psbt)
    assert 5_000_000 not in [item.witness_utxo.amount for item in stored.inputs]


def test_a_cancel_tells_of_signatures_that_are_out_and_offers_a_way_back(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    desk.approve("alice", psbt_id)
    person = browse("admin").open(f"{here}/{psbt_id}/cancel")
    person.send(f"{here}/{psbt_id}/cancel", reason="Wrong invoice")
    assert "1 of 2 signatures are out and stay valid" in person.words
    person.confirm(f"{here}/{psbt_id}/cancel")
    assert desk.proposal(psbt_id)["status"] == "CANCELLED"
    assert "Wrong invoice" in person.words
    desk.world.clock.advance(seconds=1)
    person.open(f"{here}/{psbt_id}/take-back").send(f"{here}/{psbt_id}/take-back", fee_rate="9")
    assert "Back to Treasury" in person.words
    person.confirm(f"{here}/{psbt_id}/take-back")
    assert desk.proposal(newest(desk).id)["recipients"] == []


def test_kept_coins_are_freed(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    desk.approve("alice", psbt_id)
    person = browse("admin").open(f"{here}/{psbt_id}/cancel")
    person.send(f"{here}/{psbt_id}/cancel").confirm(f"{here}/{psbt_id}/cancel")
    person.open(f"{here}/{psbt_id}/release").send(f"{here}/{psbt_id}/release")
    assert "Its coins are free." in person.words
    assert f"{here}/{psbt_id}/release" not in person.html


def test_the_list_filters_and_pages(desk, browse, here, monkeypatch):
    monkeypatch.setattr("custody.server.console.proposals.PAGE", 2)
    desk.deposit(600_000)
    ids = []
    for number in range(3):
        ids.append(made(desk.propose(50_000 + number, description=f"Number {number}")))
        desk.world.clock.advance(seconds=1)
    day = desk.world.clock().date()
    person = browse("alice").open(here)
    assert [f"Number {n}" in person.words for n in range(3)] == [False, True, True]
    person.open(f"{here}?after={ids[1]}")
    assert "Number 0" in person.words
    found = person.open(f"{here}?search=number+2")
    assert [f"Number {n}" in found.words for n in range(3)] == [False, False, True]
    assert "Nothing matches the filter." in person.open(f"{here}?search=nothing").words
    desk.approve("alice", ids[2])
    assert "Number 2" not in person.open(f"{here}?awaiting=me").words
    assert person.open(f"{here}?status=CONFIRMED").link("Show all proposals") == here
    assert "appears on this page" not in person.words
    person.open(f"{here}?from_day=2026-03-02&to_day=2026-03-01&search=rent", 422)
    assert problems(person) == ["From is later than To: change one of them."]
    assert 'value="rent"' in person.html
    assert "Correct these values" not in person.words
    assert "Number 2" in person.open(f"{here}?vault={desk.vault['id']}").words
    assert "Number 2" in person.open(f"{here}?from_day={day}&to_day={day}").words
    assert "Number" not in person.open(f"{here}?from_day={day + timedelta(days=1)}").words
    assert "Number" not in person.open(f"{here}?to_day={day - timedelta(days=1)}").words
    part = person.http.get(f"/console/w/{desk.workspace_id}/parts/proposals?seen=none")
    assert "Number 2" in part.text
    seen = part.text.partition("seen=")[2][:16]
    again = person.http.get(f"/console/w/{desk.workspace_id}/parts/proposals?seen={seen}")
    assert again.status_code == 204


def test_a_member_forwards_own_money(desk, browse, here):
    browse("alice").open(f"{here}/forward", 403)
    grant(desk, "Signer", "PAYMENT_INIT")
    alice = desk.signers["alice"]
    profile = ok(alice.get("/api/v1/signing-profile-address", network="testnet"))["wallet_address"]
    desk.deposit(300_000, to=profile)
    desk.world.clock.advance(seconds=1)
    more = ok(desk.create_vault("Savings"))
    person = browse("alice").open(f"{here}/forward?vault={more['id']}")
    assert ("vault", more["id"]) in person.form(f"{here}/forward").fields
    both = {"amount": "0.001", "sweep": "yes", "fee_sats": "700"}
    assert "not both" in person.send(f"{here}/forward", **both, status=422).words
    person.open(f"{here}/forward").send(f"{here}/forward", amount="0.001", fee_sats="x", status=422)
    assert ("amount", "0.001") in person.form(f"{here}/forward").fields
    person.send(f"{here}/forward", amount="0.001", fee_sats="700")
    assert (person.facts["Into Treasury"], "199,300 sats" in person.facts["Back to you"]) == (
        "0.00100000 BTC 100,000 sats",
        True,
    )
    assert person.page.all("figure"), "the picture of where it goes"
    desk.deposit(500_000, to=profile)
    person.confirm(f"{here}/forward", status=409)
    assert "coins would be spent now" in person.words
    person.send(f"{here}/forward").confirm(f"{here}/forward")
    proposal = newest(desk)
    assert (proposal.tx_type, proposal.amounts_sats, proposal.fee_sats) == ("forward", [100_000], 700)
    assert "Into Treasury" in person.words


@pytest.mark.parametrize("typed", [CAFE, f"bitcoin:{CAFE}", f"{CAFE[:4]} {CAFE[4:9]}  {CAFE[9:]}"])
def test_an_address_is_never_looked_up_as_a_name(desk, browse, here, typed):
    """Not even in a book from before such names were refused."""
    thief = encode_address(foreign_script("thief"), Network.REGTEST)
    named(desk, typed, thief)
    looked_at(browse, here, recipient=typed).confirm(f"{here}/new")
    assert newest(desk).recipients == [CAFE]


def named(desk, name, address):
    """As an earlier version let it be named."""
    entry = {"workspace_id": desk.workspace_id, "created_by": 1, "created_at": desk.world.clock()}
    with desk.world.platform.services.store.write() as db:
        db.add(AddressBookEntryRow(name=name, name_key=name.lower(), address=address, **entry))


def test_another_version_that_would_take_another_coin_by_now_is_looked_at_again(desk, browse, here):
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    (coin,) = ok(desk.admin.get("/api/v1/vault-coins", **place, min_sats=700_000, max_sats=700_000))["coins"]
    psbt_id = made(desk.propose(699_000, fee_rate="2", coins=[f"{coin['txid']}:{coin['vout']}"]))
    path = f"{here}/{psbt_id}/bump"
    person = browse("admin").open(path).send(path, fee_rate="9")
    desk.deposit(5_000_000)
    person.confirm(path, status=409)
    assert "would now do something else" in person.words
    assert len(desk.rows(ProposalRow)) == 1
