"""Proposals in the console: the list, one of them, a new payment from the form to the chain, and its end."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from custody.server.store.models import AddressBookEntryRow, ChainCoinRow, ProposalRow
from multisig import Network, Psbt, encode_address
from multisig.script import P2A_SCRIPT
from tests.conformance.payments import with_output
from tests.support.custody import CAFE, SHOP, ok
from tests.support.examples import drawn
from tests.support.history import listed_coins
from tests.support.look_alikes import look_alikes
from tests.support.profiles import grant
from tests.support.replacing import bump, finished, made, meanwhile, take_back
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
    browse("admin").open(f"{here}/new").says("Medium", "2 sat/vB now", "At least 0.1 sat/vB is taken now.")
    dear = looked_at(browse, here, amount="0.00001", fee="own", fee_rate="90")
    assert "The fee is more than what is paid." in dear.words
    person = looked_at(browse, here, description="Invoice 7")
    assert "The fee is more" not in person.words
    assert desk.rows(ProposalRow) == []
    person.says("Where the money goes", "Back to Treasury", "400,000 sats")
    assert person.facts["Approvals"] == "2 of alice@example.org, bob@example.org, carol@example.org"
    fee = person.words.partition("Network fee")[2]
    person.confirm(f"{here}/new")
    (proposal,) = desk.rows(ProposalRow)
    assert f"{proposal.fee_sats:,} sats" in fee
    assert person.url == f"{here}/{proposal.id}"
    person.says("It is proposed.", "bob@example.org not yet", "by admin@example.org (you)")
    again = f"Treasury pays the same 0.00400000 BTC in proposal {proposal.id[:8]} (0 of 2 signatures)."
    looked_at(browse, here).says(again, "paid twice")
    assert "paid twice" not in looked_at(browse, here, amount="0.0041").words
    assert len(in_focus(person)) == 1, "its heading"
    assert "It is proposed." not in person.http.get(person.page.by_id("standing").attributes["hx-get"]).text
    signer = browse("alice").open(person.url).words
    assert f"alice@example.org (you) not yet member {desk.user_ids['bob']} not yet" in signer
    assert "bob@example.org" not in signer
    desk.approve("alice", proposal.id)
    ok(desk.decline("carol", proposal.id, "too early"))
    assert "too early" in person.open(person.url).words
    desk.approve("bob", proposal.id)
    desk.settle()
    desk.mine(6)
    person.open(person.url)
    assert "6 confirmations" in person.words


def test_what_was_shown_is_made_though_other_coins_would_do_or_it_is_told(desk, browse, here):
    """And what was typed stays."""
    person = looked_at(browse, here)
    coins = [value for name, value in person.form(f"{here}/new").fields if name == "shown_coin"]
    desk.deposit(5_000_000, 400_500)
    person.confirm(f"{here}/new")
    assert {f"{item.outpoint}" for item in psbt(desk.proposal(newest(desk).id)).inputs} == set(coins)
    person = looked_at(browse, here, amount="0.05", description="All coins")
    desk.world.clock.advance(seconds=1)
    made(desk.sweep())
    person.confirm(f"{here}/new", status=409)
    assert "Another payment has taken a coin" in person.words
    fields = set(person.form(f"{here}/new").fields)
    assert {("recipient", SHOP), ("amount", "0.05"), ("description", "All coins")} <= fields
    assert len(desk.rows(ProposalRow)) == 2


def psbt(record):
    return Psbt.parse(record["psbt_base64"])


def test_an_anchor_and_version_3_have_their_names(desk, browse, here):
    """The platform makes neither: a row that was altered has them."""
    psbt_id = made(desk.propose(400_000))
    of_ours = desk.psbt(psbt_id)
    paid = next(n for n, output in enumerate(of_ours.outputs) if not output.derivations)
    anchored = with_output(of_ours, paid, script_pubkey=P2A_SCRIPT)
    with desk.store.write() as db:
        row = db.get_one(ProposalRow, psbt_id)
        row.psbt = replace(anchored, tx=replace(anchored.tx, version=3)).to_bytes()
    page = browse("admin").open(f"{here}/{psbt_id}")
    page.says("an anchor that anyone may take (P2A): 51024e73", "version 3 (TRUC, BIP-431)")


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


def test_a_payment_like_one_that_was_proposed_meanwhile_is_looked_at_again(desk, browse, here):
    coins = [f"{each['txid']}:{each['vout']}" for each in listed_coins(desk)]
    one, other = (looked_at(browse, here, recipient=f"bitcoin:{SHOP}", coin=each) for each in coins)
    assert "paid twice" not in one.words + other.words
    one.confirm(f"{here}/new")
    other.confirm(f"{here}/new", status=409)
    other.says("new since you looked", "paid twice")
    assert len(desk.rows(ProposalRow)) == 1
    again = other.html
    other.confirm(f"{here}/new")
    made_at = other.url
    assert len(desk.rows(ProposalRow)) == 2
    other.html = again
    assert other.confirm(f"{here}/new").url == made_at, "sent twice, it acts once"
    assert len(desk.rows(ProposalRow)) == 2


def test_the_address_book_is_understood_and_what_it_means_now_is_what_counts(desk, browse, here):
    entry = desk.enter("Cafe Müller", CAFE)
    person = browse("admin")
    offered = f"/console/w/{desk.workspace_id}/parts/addresses?recipient="
    assert person.open(f"{offered}MÜLL").html.strip() == f'<option value="Cafe Müller">{CAFE}</option>'
    assert person.open(f"{offered}bar").html.strip() == ""
    person = looked_at(browse, here, recipient="cafe müller", amount="25,000", unit="sats")
    assert "Cafe Müller in the address book" in person.words
    person.confirm(f"{here}/new")
    assert newest(desk).recipients == [CAFE]
    person = looked_at(browse, here, recipient="cafe müller")
    ok(desk.tell("remove-whitelist-address", uid=entry["uid"]))
    desk.enter("Cafe Müller", encode_address(foreign_script("thief"), Network.REGTEST))
    person.confirm(f"{here}/new", status=409)
    assert "would now do something else" in person.words
    assert len(desk.rows(ProposalRow)) == 1


def test_several_recipients_links_own_rate_and_the_most(desk, browse, here):
    person = browse("admin").open(f"{here}/new")
    first = (("recipient", f"bitcoin:{SHOP}?amount=0.001"), ("amount", ""))
    rows = (*first, ("recipient", CAFE), ("amount", "0.002"))
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
    coins = listed_coins(desk)
    small = f"{coins[1]['txid']}:{coins[1]['vout']}"
    assert small not in person.html
    person.send(f"{here}/new", recipient=SHOP, amount="0.001", back="coins")
    assert small in person.html
    person.send(f"{here}/new", coin=small)
    person.confirm(f"{here}/new")
    assert [str(item.outpoint) for item in psbt(desk.proposal(newest(desk).id)).inputs] == [small]


def selected(person, path, vault_id):
    """What a browser sends of the selection with the payment: nothing where it is another form's."""
    (label,) = [tag for tag in person.page.all("label") if "Pay from" in tag.words]
    select = form = person.page.by_id(label.attributes["for"])
    while form.name != "form":
        form = form.parent
    return {select.attributes["name"]: vault_id} if form.attributes["action"] == path else {}


def test_the_vault_that_is_selected_pays_whatever_the_page_showed_before(desk, browse, here):
    savings = ok(desk.create_vault("Savings"))
    vaults = {desk.vault["id"]: "Treasury", savings["id"]: "Savings"}
    desk.deposit(800_000, 900_000, to=savings["address"])
    coins = {f"{each.txid}:{each.vout}": each.vault_id for each in desk.rows(ChainCoinRow)}
    person, path = browse("admin"), f"{here}/new"
    for salt in drawn(range(1_000), 20, of=__name__):
        chance = Random(salt)
        desk.world.clock.advance(seconds=20)
        person.open(chance.choice([path, f"{path}?vault={chance.choice([*vaults])}"]))
        for back in chance.choices(["vault", "more", "coins", "refused"], k=chance.randrange(4)):
            wanted = chance.choice([*vaults])
            typed = {"recipient": SHOP, "amount": "a lot" if back == "refused" else "0.001"}
            typed |= selected(person, path, wanted) | ({} if back == "refused" else {"back": back})
            person.send(path, **typed, status=422 if back == "refused" else 200)
            assert person.page.by_id("vault-title").words == vaults[wanted], (salt, back)
            assert ("recipient", SHOP) in person.form(path).fields
        wanted, coin = chance.choice([*vaults]), chance.choice([None, *coins])
        paid = {"recipient": SHOP, "amount": "0.001"} | selected(person, path, wanted)
        if coin is not None and coins[coin] != wanted:
            person.send(path, **paid, coin=coin, status=422)
            assert "is not a coin of this vault" in person.words
            assert "coin" not in dict(person.form(path).fields)
            coin = None
        person.send(path, **paid, **({} if coin is None else {"coin": coin}))
        assert f"Taken from {vaults[wanted]}" in person.words, salt
        person.confirm(path)
        assert newest(desk).vault_id == wanted, salt
        assert coin is None or {*map(str, desk.coins(newest(desk).id))} == {coin}
        desk.reject(newest(desk).id)


def test_what_is_wrong_is_told_beside_its_field(browse, here):
    person = browse("admin")
    for typed, words, status in (
        ({"amount": "abc"}, "In BTC an amount is like 0.25.", 422),
        ({"amount": "1.5", "unit": "sats"}, "In sats an amount is a whole number", 422),
        ({"amount": ""}, "Type an amount", 422),
        ({"amount": "0,5"}, "Write it with a point, as in 0.5.", 422),
        ({"amount": "9"}, "At most", 422),
        ({"amount": "20"}, "does not fit", 403),
        ({"recipient": "Acmee"}, "No entry of the address book is called Acmee", 422),
        ({"recipient": SHOP[:-1] + "q"}, "the checksum is wrong", 422),
        ({"amount": "0"}, "Type an amount of more than 0", 422),
        ({"fee": "own"}, "Type a rate in sat/vB", 422),
        ({"fee": "own", "fee_rate": "2,5"}, "with a point and at most three places, as in 2.5", 422),
        ({"most": "yes"}, "The most is sent to one recipient", 422),
    ):
        sent = {"recipient": SHOP, "amount": "0.004"} | typed
        person.open(f"{here}/new").send(f"{here}/new", **sent, status=status)
        assert any(words in problem for problem in problems(person)), person.words
        kept = {pair for pair in typed.items() if pair[0] in {"recipient", "amount", "fee_rate"}}
        assert kept <= set(person.form(f"{here}/new").fields)


@pytest.mark.parametrize("typed", [CAFE, f"bitcoin:{CAFE}", f"{CAFE[:4]} {CAFE[4:9]}  {CAFE[9:]}"])
def test_an_address_is_never_looked_up_as_a_name(desk, browse, here, typed):
    """Not even in a book from before such names were refused."""
    thief = encode_address(foreign_script("thief"), Network.REGTEST)
    entry = {"workspace_id": desk.workspace_id, "created_by": 1, "created_at": desk.world.clock()}
    with desk.store.write() as db:
        db.add(AddressBookEntryRow(name=typed, name_key=typed.lower(), address=thief, **entry))
    looked_at(browse, here, recipient=typed).confirm(f"{here}/new")
    assert newest(desk).recipients == [CAFE]


def test_s37_a_payee_that_only_resembles_a_known_one_is_said_in_the_review(desk, browse, here):
    known, other = (encode_address(each, Network.REGTEST) for each in look_alikes("shop", Network.REGTEST))
    desk.enter("Shop", known)
    assert (
        f"{other} looks like Shop in the address book, {known} and is another address"
        in looked_at(browse, here, recipient=other).words
    )
    assert "looks like" not in looked_at(browse, here, recipient="Shop").words


def test_a_payment_that_waits_says_that_the_vault_was_bound_to_the_address_book(desk, browse, here):
    psbt_id = ok(desk.propose(20_000))["psbt_id"]
    person = browse("admin").open(f"{here}/{psbt_id}")
    assert "Nobody can approve this" not in person.words
    desk.bind(only_address_book=True)
    person.open(f"{here}/{psbt_id}")
    person.says(f"Not in it: {SHOP}.", "Nobody can approve this until it is entered in the address book")
    desk.enter("Shop", SHOP)
    assert "Nobody can approve this" not in person.open(f"{here}/{psbt_id}").words
    desk.approve("alice", psbt_id)


def test_a_frozen_vault_says_so_and_offers_no_payment(desk, browse, here):
    waiting = made(desk.propose(100_000))
    person = looked_at(browse, here)
    assert "The vault is frozen." not in browse("alice").open(f"{here}/{waiting}").words
    desk.freeze()
    person.confirm(f"{here}/new", status=409)
    assert "The vault is frozen." in person.words
    assert "The vault is frozen." in browse("alice").open(f"{here}/{waiting}").words


def test_a_bump_shows_both_fees_and_is_looked_at_again_where_it_would_take_another_coin(desk, browse, here):
    """What is compared when it is confirmed is the version that is stored."""
    (coin,) = listed_coins(desk, min_sats=700_000, max_sats=700_000)
    psbt_id = made(desk.propose(699_000, fee_rate="2", coins=[f"{coin['txid']}:{coin['vout']}"]))
    path = f"{here}/{psbt_id}/bump"
    person = browse("admin").open(path)
    person.send(path, fee_rate="2,5", status=422)
    assert "as in 2.5" in person.page.by_id("fee_rate-problem").words
    person.send(path, fee_rate="1", status=422)
    assert any("BIP-125" in words for words in problems(person))
    person.send(path, fee_rate="9")
    assert "2 sat/vB before, 9 sat/vB now" in person.words
    desk.deposit(5_000_000)
    person.confirm(path, status=409)
    assert "would now do something else" in person.words
    assert len(desk.rows(ProposalRow)) == 1
    person.send(path, fee_rate="9")
    with meanwhile(lambda: desk.deposit(6_000_000)):
        person.confirm(path)
    stored = Psbt.parse(newest(desk).psbt)
    assert 6_000_000 not in [item.witness_utxo.amount for item in stored.inputs]
    person.open(f"{here}/{psbt_id}")
    (newer,) = (each.id for each in desk.rows(ProposalRow) if each.replaces_id)
    person.says(f"Replaced by {newer[:8]}: it takes no signatures any more")
    assert "Signers approve" not in person.words
    overview = person.open(f"/console/w/{desk.workspace_id}/").html
    assert [each in overview for each in (psbt_id, newer)] == [False, True]


def test_a_take_back_that_would_pay_another_fee_by_now_is_looked_at_again(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    path = f"{here}/{psbt_id}/take-back"
    person = browse("admin").open(path).send(path, fee_rate="9")
    person.confirm(path, status=409, fee_rate="90")
    assert "would now do something else" in person.words
    assert len(desk.rows(ProposalRow)) == 1


def test_versions_say_which_of_them_was_mined(desk, browse, here):
    def words(psbt_id):
        return person.open(f"{here}/{psbt_id}").words

    first = made(desk.propose(400_000, fee_rate="2"))
    second = made(bump(desk, first, fee_rate="4"))
    person = browse("admin")
    assert "It is to replace an earlier version." in words(second)
    answer = desk.propose(recipients=[], amounts_sats=None, replaces_psbt_id=first, fee_rate="9")
    assert f"It has a newer version, {second}: replace that one." in answer.text
    third = made(take_back(desk, second, fee_rate="9"))
    finished(desk, third)
    desk.mine(1)
    for each in (first, second):
        assert "Another version was mined in its place" in words(each)
        assert "is to replace" not in words(each)
    assert "It was to replace an earlier version." in words(second)
    assert "It was mined in the place of an earlier version." in words(third)


def test_a_cancel_tells_of_signatures_that_are_out_and_offers_a_way_back(desk, browse, here):
    psbt_id = made(desk.propose(400_000, fee_rate="2"))
    desk.approve("alice", psbt_id)
    person = browse("admin").open(f"{here}/{psbt_id}/cancel")
    assert "1 of 2 signatures are out and stay valid" in person.words
    person.send(f"{here}/{psbt_id}/cancel", reason="Wrong invoice")
    assert desk.proposal(psbt_id)["status"] == "CANCELLED"
    assert "It is cancelled already." in person.open(f"{here}/{psbt_id}/cancel").words
    desk.world.clock.advance(seconds=1)
    person.open(f"{here}/{psbt_id}/take-back").send(f"{here}/{psbt_id}/take-back", fee_rate="9")
    person.confirm(f"{here}/{psbt_id}/take-back")
    back = newest(desk)
    assert (back.recipients, back.replaces_id) == ([], psbt_id)
    desk.reject(back.id)
    person.open(f"{here}/{psbt_id}/release").send(f"{here}/{psbt_id}/release")
    assert f"{here}/{psbt_id}/release" not in person.html


def test_the_list_filters_and_pages(desk, browse, here, monkeypatch):
    monkeypatch.setattr("custody.server.console.context.PAGE", 2)
    desk.deposit(600_000)
    ids = []
    for number in range(3):
        ids.append(made(desk.propose(50_000 + number, description=f"Number {number}")))
        desk.world.clock.advance(seconds=1)
    day = desk.world.clock().date()
    person = browse("alice")

    def shown(query: str = "") -> list[int]:
        person.open(f"{here}{query}")
        return [number for number in range(3) if f"Number {number}" in person.words]

    assert shown() == [1, 2]
    assert shown(f"?after={ids[1]}") == [0]
    assert shown("?search=number+2") == [2]
    assert shown(f"?vault={desk.vault['id']}") == shown(f"?from_day={day}&to_day={day}") == [1, 2]
    assert shown(f"?from_day={day + timedelta(days=1)}") == shown(f"?to_day={day - timedelta(days=1)}") == []
    asker = desk.rows(ProposalRow)[0].created_by
    assert shown(f"?created_by={desk.user_ids['alice']}") == []
    assert shown(f"?created_by={asker}&from_day={day}") == [1, 2]
    assert shown(person.link("Older ones").removeprefix(here)) == [0]
    person.open(f"{here}?created_by=nobody", 422)
    admin = browse("admin").open(f"{here}?created_by={desk.user_ids['alice']}")
    assert "alice@example.org" in admin.page.by_id("created_by").words
    desk.approve("alice", ids[2])
    assert shown("?awaiting=me") == [0, 1]
    assert "Nothing matches the filter." in person.open(f"{here}?search=nothing").words
    assert person.open(f"{here}?status=CONFIRMED").link("Show all proposals") == here
    person.open(f"{here}?from_day=2026-03-02&to_day=2026-03-01&search=rent", 422)
    assert problems(person) == ["From is later than To: change one of them."]
    assert 'value="rent"' in person.html
    part = f"/console/w/{desk.workspace_id}/parts/proposals?seen="
    answer = person.http.get(f"{part}none")
    assert "Number 2" in answer.text
    seen = answer.text.partition("seen=")[2][:16]
    assert person.http.get(f"{part}{seen}").status_code == 204


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
    assert person.facts["Into Treasury"] == "0.00100000 BTC 100,000 sats"
    assert "199,300 sats" in person.facts["Back to you"]
    assert person.page.all("figure"), "the picture of where it goes"
    desk.deposit(500_000, to=profile)
    person.confirm(f"{here}/forward", status=409)
    assert "coins would be spent now" in person.words
    person.send(f"{here}/forward").confirm(f"{here}/forward")
    proposal = newest(desk)
    assert (proposal.tx_type, proposal.amounts_sats, proposal.fee_sats) == ("forward", [100_000], 700)
