"""One proposal on the page: all that is shown, a yes bound to it, and what follows. On the page, whom a new
token lists from the start: every address whole, however many there are (S12).
"""

import unicodedata
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.common.pages.flow import MOST_COINS, THINNEST
from custody.common.text import amount, plain
from custody.schemas.proposals import ProposalStatus, TxType
from multisig import RECEIVE, TxOut, build_psbt, encode_address, sats
from multisig.bip322 import build_proof
from signerd.callers import TERMINAL
from signerd.cli.words import proposal_text, proposals_text
from signerd.core.addresses import RECOGNISED_ADDRESSES
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.tokens import PublishedToken
from signerd.core.values import DeclineClaim, Pin, VaultClaim
from signerd.daemon import vaults
from signerd.daemon.views import MAX_OUTPUTS_ON_SCREENS
from signerd.feed import Feed
from signerd.loopback.page import rendering
from signerd.loopback.page.proposals import picture_of, shares, stages_of, status_line
from signerd.shapes import ChangeView, CoinView, DataView, MoneyView, PaymentView, ProposalLine
from signerd.standing import own_words
from tests.support.bills import bill
from tests.support.daemons import until, until_state
from tests.support.desk import NETWORK, VAULT, snapshot_of, spend
from tests.support.paged import Markup
from tests.support.tokens import gold, token_snapshot
from tests.support.wallets import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    foreign_script,
    fund,
    make_vault,
    pay,
    with_input,
)

pytestmark = pytest.mark.anyio

# Markup, an attribute that ends, an override of the reading direction, a zero-width space, a template's own
# marks, and a lot of it.
HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> \u202egnp.exe\u200b {{ 7*7 }}{% raw %} "
    + "W" * 800
)


async def digest_of(desk, psbt_id="p-1"):
    page = await desk.page(f"/proposals/{psbt_id}")
    (field,) = page.all("input", name="digest")
    return field.attributes["value"]


async def test_every_figure_of_the_view_is_on_the_page(desk):
    view = await desk.daemon.proposal("p-1")
    page = await desk.page("/proposals/p-1")
    shown = page.all("table")[0].words
    together = "".join(shown.split())
    drawn = "".join(page.all("figure")[0].words.split())
    for output in (*view.money.payments, *view.money.change):
        # As the device writes it comes first.
        assert together.index(output.on_screen) < together.index(output.address)
        assert output.on_screen in drawn
        assert f"{output.amount_sats / 1e8:.8f}" in drawn
        assert f"{output.amount_sats:,} sats" in shown
        assert amount(output.amount_sats).split(" (")[0].replace(" ", "") in together
    assert f"{view.money.fee_sats:,} sats" in shown
    assert view.money.fee_rate in shown
    whole = page.all("main")[0].words
    assert view.verification_code in whole
    assert f"{view.collected} of {view.required}" in whole
    for check in view.checks:
        assert check.sentence in whole
    assert page.words.count("REGTEST: these coins are worth nothing") == 1


async def test_p93_a_message_is_told_as_what_moves_no_money(desk):
    proof = build_proof(VAULT, "Audit of 2026", 0, 0, [fund(VAULT, 70_000, index=2)])
    asked = snapshot_of(proof.psbt, "m-1", kind=TxType.PROOF, recipients=(), amounts=(), op_return=None)
    desk.platform.proposals["m-1"] = asked
    # The pretended device signs none.
    await until_state(desk.daemon, "m-1", State.REFUSED)
    whole = (await desk.page("/proposals/m-1")).all("main")[0].words
    for words in ("It moves no money", "control of 2 addresses, and of 1 coin of 0.00070000 BTC"):
        assert words in whole
    for words in ("Where the money goes", "Network fee", "Taken from", "Others sign, and it is sent"):
        assert words not in whole
    assert "no money" in (await desk.page("/")).all("main")[0].words
    # Others signed it.
    desk.platform.proposals["m-1"] = replace(asked, status=ProposalStatus.PROVEN)
    await until_state(desk.daemon, "m-1", State.CONFIRMED)
    told = proposals_text([await desk.daemon.proposal("m-1")])
    assert "proven: The platform has the whole proof." in told
    assert "'Treasury', moves no money" in told
    assert "Proven" in (await desk.page("/proposals/m-1")).all("main")[0].words


async def test_screens_of_many_outputs_are_written_out_to_a_bound_and_the_rest_is_counted(desk):
    outputs = [pay(1_000 + number) for number in range(MAX_OUTPUTS_ON_SCREENS + 7)]
    coin = fund(VAULT, sum(int(output.amount) for output in outputs) + 20_000)
    psbt = build_psbt(VAULT, [coin], outputs, 0)
    desk.platform.proposals["m-1"] = snapshot_of(psbt, "m-1")
    await until_state(desk.daemon, "m-1", State.WAITING_PERSON)
    view = await desk.daemon.proposal("m-1")
    assert (len(view.money.payments), len(view.screens)) == (len(outputs), MAX_OUTPUTS_ON_SCREENS + 1)
    assert view.outputs_left_out == 7
    paid = sum(output.amount for output in outputs) + view.money.fee_sats
    assert view.screens[-1].figures[0].value == f"{Decimal(paid) / 10**8:f} TEST"


async def test_an_address_of_another_pinned_vault_is_named_wherever_the_person_looks(desk):
    reserve = make_vault((ALICE, BOB, MALLORY), account=1)
    pin = Pin("vault-2", 1, "Reserve 2", reserve, ALICE.vault_key(NETWORK, 1))
    desk.daemon.journal.add_pin(pin, Note("pinned", "vault-2"))
    at = [TxOut(sats(9_000), reserve.script_pubkey(RECEIVE, index)) for index in (3, RECOGNISED_ADDRESSES)]
    psbt = build_psbt(VAULT, [fund(VAULT, 20_000)], at, 0)
    desk.platform.proposals["s-1"] = snapshot_of(psbt, "s-1", description="to your pinned vault 'Cold'")
    await until_state(desk.daemon, "s-1", State.WAITING_PERSON)
    view = await desk.daemon.proposal("s-1")
    called = f"'Reserve 2' ({reserve.verification_code[:4]})"
    words = f"your pinned vault {called}, receive address 3, derived again here"
    # No further than a bound, so that many vaults cost little.
    assert [paid.pinned for paid in view.money.payments] == [words, None]
    assert view.title == f"Pay 0.00018 BTC to 2 payees, 0.00009 BTC of it to your vault {called}"
    assert [one.pinned for screen in view.screens for one in screen.figures if one.label == "To"] == [
        words,
        None,
    ]
    assert f"         {words}\n" in proposal_text(view)
    assert words in (await desk.page("/proposals/s-1")).all("main")[0].words
    # An app would find out by asking which addresses are the person's.
    told = await desk.daemon.proposal("s-1", replace(TERMINAL, app_id="app-1"))
    assert "Reserve 2" not in told.model_dump_json()


async def test_of_pinned_vaults_one_in_alarm_is_told_as_such_and_two_of_one_name_by_their_whole_codes(desk):
    first, second = make_vault((ALICE, BOB, MALLORY), account=1), make_vault((ALICE, BOB, CAROL), account=1)
    for number, vault, name in ((1, first, "Reserve"), (2, second, "RESERVE")):
        pin = Pin(f"v-{number}", 1, name, vault, ALICE.vault_key(NETWORK, 1))
        desk.daemon.journal.learn(VaultClaim(pin.vault_id, 1, name, vault.descriptor))
        desk.daemon.journal.add_pin(pin, Note("pinned", pin.vault_id))
    desk.daemon.journal.learn(VaultClaim("v-1", 1, "Reserve", first.descriptor, threshold=3))
    paid = [
        TxOut(sats(amount), vault.script_pubkey(RECEIVE, 0))
        for amount, vault in ((9_000, first), (5_000, second))
    ]
    desk.platform.proposals["s-1"] = snapshot_of(build_psbt(VAULT, [fund(VAULT, 20_000)], paid, 0), "s-1")
    await until_state(desk.daemon, "s-1", State.WAITING_PERSON)
    view = await desk.daemon.proposal("s-1")
    (page,) = [page for page in await vaults.vaults(desk.daemon) if page.vault_id == "v-1"]
    alarm = (
        f"your pinned vault 'Reserve' ({first.verification_code}), receive address 0. "
        f"Send nothing here before you have looked into this: {page.fault}"
    )
    calm = f"your pinned vault 'RESERVE' ({second.verification_code}), receive address 0, derived again here"
    assert "ALARM" in alarm
    assert {paid.amount_sats: paid.pinned for paid in view.money.payments} == {9_000: alarm, 5_000: calm}
    assert view.title.endswith(f"your vault 'Reserve' ({first.verification_code}): SEND NOTHING THERE")
    assert alarm in proposal_text(view)
    assert alarm in (await desk.page("/proposals/s-1")).all("main")[0].words


async def test_l8_what_the_platform_wrote_is_text_and_marked_as_the_platforms(desk):
    desk.platform.proposals["p-2"] = snapshot_of(
        spend(n_inputs=3), "p-2", description=HOSTILE, created_by=HOSTILE[:400]
    )
    await until_state(desk.daemon, "p-2", State.WAITING_PERSON)
    claim = desk.daemon.journal.claim("vault-1")
    desk.daemon.journal.learn(replace(claim, name=HOSTILE + "\x1b[2J"))
    desk.daemon.journal.note(Note("pinned", HOSTILE, {"who": [HOSTILE, 7], "why": None, "sure": True}))
    vaults = ("/vaults", "/vaults/vault-1", "/vaults/vault-1/pin")
    for path in ("/proposals/p-2", "/", "/history", "/history?search=ALERT", *vaults):
        answer = await desk.browser.get(path)
        page = Markup(answer.text)
        assert page.broken == []
        assert all(tag.attributes["src"].startswith("/static/") for tag in page.all("script"))
        assert not [tag for tag in page.all("img") if tag.attributes["src"] == "x"]
        assert not [char for char in answer.text if unicodedata.category(char) in {"Cf", "Zl", "Zp"}]
        assert "{{ 7*7 }}" in answer.text or path not in {"/proposals/p-2", "/history"}
        assert "\x1b" not in answer.text
    said = (await desk.page("/proposals/p-2")).by_id("review").words
    before, claims = said.split("What the platform says")
    assert "alert(1)" in claims
    assert "alert(1)" not in before


async def test_a_part_that_shows_what_is_so_is_not_sent_again_and_one_that_does_not_is(desk):
    page = await desk.page("/proposals/p-1")
    for shown, name in ((await desk.page("/"), "notes"), (page, "standing"), (page, "review")):
        path = shown.by_id(name).attributes["hx-get"]
        assert (await desk.browser.get(path)).status_code == 204
    review = page.by_id("review").attributes["hx-get"]
    other = review.replace("shown=", "shown=0")
    assert "It changed since you looked" in (await desk.browser.get(other)).text
    await desk.post("/proposals/p-1/decline", reason="no")
    # The platform then lists that decline: nobody looks at old figures.
    for path in (review, other):
        again = await desk.browser.get(path)
        assert (again.status_code, "It changed since you looked" in again.text) == (200, False)


def test_a_check_links_the_proposals_that_it_names_and_nothing_else_is_markup():
    first = "0123456789abcdef" * 2
    assert rendering.linked(f"You signed {first}, <b>not {first}0. See `signerd show`.") == (
        f'You signed <a href="/proposals/{first}">01234567…</a>, &lt;b&gt;not {first}0. '
        "See <code>signerd show</code>."
    )


async def test_s24_each_warning_has_a_box_of_its_own_and_none_is_ticked(desk):
    await desk.post("/proposals/p-1/approve", digest=await digest_of(desk))
    await until_state(desk.daemon, "p-1", State.SUBMITTED)
    # The same payment again, from other coins (S6).
    desk.platform.proposals["p-2"] = snapshot_of(spend(n_inputs=3, fee=1_500), "p-2")
    await until_state(desk.daemon, "p-2", State.WAITING_PERSON)
    assert "held: read why before you decide" in (await desk.page("/")).words
    view = await desk.daemon.proposal("p-2")
    page = await desk.page("/proposals/p-2")
    boxes = page.all("input", name="acknowledged")
    assert view.to_acknowledge
    assert {box.attributes["value"] for box in boxes} == set(view.to_acknowledge)
    assert all("required" in box.attributes and "checked" not in box.attributes for box in boxes)
    # What was seen is no more so (S24).
    stale = await desk.post("/proposals/p-2/approve", digest="0" * 64, acknowledged=list(view.to_acknowledge))
    assert (stale.status_code, stale.headers["hx-retarget"]) == (409, "#review")
    assert "It changed since you looked" in stale.text
    refused = await desk.post("/proposals/p-2/approve", digest=view.digest)
    assert refused.status_code == 409
    assert refused.headers["hx-retarget"] == "find .problem"
    assert "needs-acknowledgement" in refused.text
    accepted = await desk.post(
        "/proposals/p-2/approve", digest=view.digest, acknowledged=list(view.to_acknowledge)
    )
    assert accepted.status_code == 200


async def test_s32_what_rests_on_an_unproven_amount_is_not_known(desk):
    """It has no fee, as a message has none, and is not taken for one."""
    unproven = with_input(spend(n_inputs=3), 0, non_witness_utxo=None)
    desk.platform.proposals["p-2"] = snapshot_of(unproven, "p-2")
    await until_state(desk.daemon, "p-2", State.REFUSED)
    page = await desk.page("/proposals/p-2")
    table = "".join(page.all("table")[0].words.split())
    assert "Networkfeetheamountofacoinisnotprovennotknown" in table
    assert "Takenfromthevault3coinsnotknown" in table
    assert not page.all("figure")
    listed = (await desk.page("/")).all("main")[0].words
    assert "Network feenot known" in listed.replace("\n", "")
    assert "no money" not in listed + page.all("main")[0].words
    told = proposals_text([await desk.daemon.proposal("p-2")])
    assert "fee not known" in told


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/json", b'{"digest": "00"}'),
        ("text/plain", b"digest=00"),
        ("application/x-www-form-urlencoded", b"digest=zz"),
        ("application/x-www-form-urlencoded", b"digest=%ff"),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(200))),
    ],
    ids=["json", "text", "no-digest", "no-text", "too-many"],
)
async def test_l9_what_is_no_form_of_ours_is_refused(desk, kind, content):
    answer = await desk.browser.post(
        "/proposals/p-1/approve", content=content, headers={"Content-Type": kind, "HX-Request": "true"}
    )
    assert answer.status_code == 422
    assert desk.daemon.journal.record("p-1").state is State.WAITING_PERSON


OWN = {"Your decision", "Your device signs", "The platform takes the signature"}


@given(
    state=st.sampled_from(State),
    signed=st.booleans(),
    exported=st.booleans(),
    declined=st.sampled_from([None, "", "not ours"]),
    proof=st.booleans(),
)
def test_no_step_is_done_that_this_machine_did_not_do(state, signed, exported, declined, proof):
    line = ProposalLine.model_construct(
        state=state.value,
        imported_by=None,
        paid_sats=0,
        fee_sats=None if proof else 1,
        signed_here=signed,
        exported_here=exported,
        declined=declined,
    )
    found = stages_of(line)
    places = [stage.when for stage in found]
    assert places.count("now") == (1 if found and state is not State.CONFIRMED else 0)
    assert places == sorted(places, key=("done", "now", "later").index)
    if state in (State.BROADCAST, State.CONFIRMED):
        assert OWN & {stage.words for stage in found} == (OWN if signed else set())
        said = own_words(line)
        assert ("not ours" in said, "declined" in said) == (declined == "not ours", declined is not None)
        assert said == "You signed it." or not signed or declined is not None


async def test_a_decline_is_shown_before_another_signers_yes_and_ones_own_whatever_became_of_it(desk):
    sent = desk.platform.proposals["p-1"]
    before = await digest_of(desk)
    bob = DeclineClaim("Bob", f"{HOSTILE}`signerd approve p-1`", "2026-01-02T03:04:05Z")
    desk.platform.proposals["p-1"] = replace(sent, declines=(bob,))
    await until(lambda: bool(desk.daemon.journal.record("p-1").snapshot.declines))
    view = await desk.daemon.proposal("p-1")
    assert [(one.by, one.reason, one.at) for one in view.declines] == [("Bob", plain(bob.reason), bob.at)]
    pages = [await desk.page(path) for path in ("/", "/proposals/p-1")]
    for page in pages:
        assert page.broken == []
        assert "By the platform's word, Bob declined it: <script>alert(1)" in page.all("main")[0].words
    for words in (proposal_text(view), proposals_text([view])):
        assert "DECLINED, by the platform's word, by Bob on 2026-01-02 03:04:05 UTC: \"<script>" in words
    # With hers too few are left of two in three.
    assert "and ends it: by the platform's word others declined" in pages[1].words
    stale = await desk.post("/proposals/p-1/approve", digest=before)
    assert (stale.status_code, "It changed since you looked" in stale.text) == (409, True)
    assert (await desk.post("/proposals/p-1/decline", reason="A fraud")).status_code == 200
    assert "Declined: “A fraud”." in (await desk.page("/proposals/p-1")).words
    assert "Declined by you, still open" in (await desk.page("/")).words
    # The platform lets it be paid all the same.
    paid = replace(sent, status=ProposalStatus.CONFIRMED, collected=2, confirmations=1)
    desk.platform.proposals["p-1"] = replace(paid, txid=sent.txid_expected)
    await until_state(desk.daemon, "p-1", State.CONFIRMED)
    for path in ("/?ended=1", "/proposals/p-1"):
        page = await desk.page(path)
        assert "You declined it: “A fraud”." in page.words
        assert not any(step in page.words for step in OWN)
    view = await desk.daemon.proposal("p-1")
    assert (view.declined, view.signed_here) == ("A fraud", False)
    assert "You declined it: “A fraud”." in proposal_text(view)


async def test_why_somebody_ended_it_is_in_the_platforms_words(desk):
    sent = desk.platform.proposals["p-1"]
    desk.platform.proposals["p-1"] = replace(
        sent, status=ProposalStatus.CANCELLED, why_ended="Paid by `card`"
    )
    await until_state(desk.daemon, "p-1", State.WITHDRAWN)
    words = (await desk.page("/proposals/p-1")).words
    assert "The platform says: cancelled. Why, by its word: Paid by 'card'" in words
    assert "You did not sign it here." in words


async def test_s13_of_what_was_imported_the_page_says_nothing_of_the_platforms(desk):
    """The platform does not know it: no state, no count of signatures, and no one to show a reason to."""
    view = await desk.daemon.imported.import_psbt(bill().to_base64(), TERMINAL)
    words = (await desk.page(f"/proposals/{view.psbt_id}")).words
    for word in ("The platform takes", "Others sign", "Signatures:", "the platform shows it", "Made by"):
        assert word not in words
    (card,) = (
        tag.words for tag in (await desk.page("/")).all("li") if f"proposal {view.psbt_id}" in tag.words
    )
    assert "Imported by" in card
    assert "The platform says" not in card
    assert "Why (the program that imported it is told)" in words
    assert "Signed, and ready for the program that imported it" in words


async def test_the_status_is_one_sentence_and_of_this_state(desk):
    view = (await desk.daemon.proposal("p-1")).model_copy(update={"reason": "why it stands here"})

    def told(state: str, *kinds: str) -> str:
        feed = Feed()
        for n, kind in enumerate(kinds):
            feed.add("p-1", kind, f"{kind} {n}")
        return status_line(view.model_copy(update={"state": state}), feed.since(0))

    assert told("signing", "state", "progress", "state", "attention", "state", "progress") == "progress 5"
    # What the device said the first time is over.
    assert told("signing", "progress", "state", "attention") == "why it stands here"
    assert told("confirmed", "state", "attention", "progress") == "why it stands here"
    alarmed = view.model_copy(update={"alarm": view.reason})
    assert status_line(alarmed, []) == ""


ICON = "https://evil.example/" + "x" * 400 + "?a=1&b='2'"


@pytest.mark.parametrize("strangers", [1, 30])
async def test_s12_every_listed_address_is_on_the_page_beside_their_number_and_hash(desk, strangers):
    scripts = (VAULT.script_pubkey(RECEIVE, 0), *(foreign_script(f"holder {n}") for n in range(strangers)))
    token = gold(whitelist_enabled=True, whitelist=tuple(sorted(scripts)), icon=ICON)
    desk.platform.published[1] = PublishedToken(token.blob)
    desk.platform.proposals["t-1"] = token_snapshot(token.deployment)
    await until_state(desk.daemon, "t-1", State.WAITING_PERSON)
    assert "token GOLD: a new one" in (await desk.page("/")).all("main")[0].words
    page = await desk.page("/proposals/t-1")
    assert page.broken == []
    addresses = [encode_address(script, NETWORK) for script in token.whitelist]
    words = [found.words for found in page.all("span") if found.attributes.get("class") == "address"]
    # The vault's own stands in the table above, too: what returns goes there.
    assert [shown for shown in words if shown in addresses][1:] == addresses
    (fold,) = [found for found in page.all("details") if found.attributes["id"].startswith("listed-")]
    assert f"Listed from the start: {len(addresses)} addresses" in fold.words
    assert token.whitelist_hash.hex() in fold.words
    assert fold.words.count("this vault itself") == 1
    assert ("open" in fold.attributes) is (len(addresses) <= 10)
    whole = page.all("main")[0].words
    assert f"{ICON[:120]}… (cut: {len(ICON)} characters in all, SHA-256 " in whole
    assert not [tag for tag in page.all("a") if "evil" in tag.attributes.get("href", "")]
    ticks = {box.attributes["value"] for box in page.all("input", name="acknowledged")}
    assert ticks == {"token-effect", "token-listed", "token-not-on-screen"}


ADDRESS = "bcrt1q" + "z" * 58
AMOUNTS = st.lists(st.integers(min_value=1, max_value=21 * 10**14), min_size=1, max_size=12)


def money(coins, pays, back=(), *, fee=None, data=0):
    """``fee`` where it is not what is left, as a transaction that lies has it."""
    left = sum(coins) - sum(pays) - sum(back)
    return MoneyView(
        txid="ab" * 32,
        inputs=len(coins),
        total_in_sats=sum(coins),
        payments=tuple(
            PaymentView(output_index=n, amount_sats=sats, address=ADDRESS, script="00", on_screen=ADDRESS)
            for n, sats in enumerate(pays)
        ),
        change=tuple(
            ChangeView(output_index=n, amount_sats=sats, address=ADDRESS, on_screen=ADDRESS, chain=1, index=n)
            for n, sats in enumerate(back)
        ),
        data=tuple(DataView(output_index=9, data="abcd", text=None) for _ in range(data)),
        paid_sats=sum(pays),
        change_sats=sum(back),
        fee_sats=left if fee is None else fee,
        fee_rate="1",
        vsize=200,
        version=2,
        locktime=0,
        replaceable=True,
        coins=tuple(CoinView(txid="cd" * 32, vout=n, amount_sats=sats) for n, sats in enumerate(coins)),
    )


def test_many_coins_are_one_band_and_no_output_ever_is():
    moved = money([10] * 30, [10] * 20)
    drawn = picture_of(moved, shares(moved, "the vault"))
    assert len(drawn.coins) == MOST_COINS
    assert drawn.coins[-1].flow.title == "23 more coins"
    assert sum(band.flow.sats for band in drawn.coins) == 300
    assert len([band for band in drawn.outputs if band.flow.kind == "pay"]) == 20


@given(AMOUNTS, AMOUNTS, st.lists(st.integers(1, 10**15), max_size=3), st.integers(-(10**15), 10**15))
def test_every_address_is_whole_nothing_overlaps_and_nothing_leaves_the_drawing(coins, pays, back, fee):
    """Also for a transaction whose figures lie: it is refused, and drawn."""
    moved = money(coins, pays, back, fee=fee)
    drawn = picture_of(moved, shares(moved, "the vault"))
    for column in (drawn.coins, drawn.outputs):
        for band in column:
            assert band.height >= THINNEST
            assert 0 <= band.y <= band.y + band.height <= drawn.height
        for above, below in pairwise(column):
            assert above.y + above.height < below.y
    for band in drawn.outputs:
        if band.flow.kind in {"pay", "back"}:
            lines = band.flow.lines
            if band.flow.kind == "back":
                (place,), *lines = lines
                assert place.startswith("change address ")
            assert "".join(group for line in lines for group in line) == ADDRESS
    rows = shares(money(coins, pays, back, fee=fee), "the vault")
    assert [row.sats for row in rows] == [*pays, *back, fee]
    assert all(0 <= row.per_mille <= 1_000 for row in rows)
    assert drawn.middle_y >= 0
    assert drawn.middle_y + drawn.middle_height <= drawn.height
