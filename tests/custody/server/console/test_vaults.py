"""Vaults at the console: listed, looked at, made, bounded, frozen; their movements as pages and files."""

import re
from urllib.parse import urlencode

import pytest

from custody.common.text import minute
from custody.server.store.models import ProposalRow
from tests.support.console import SAME_SITE, Visitor, forms_of
from tests.support.custody import SHOP, ok
from tests.support.history import listed_coins
from tests.support.platform import PASSWORD
from tests.support.replacing import finished, made
from tests.support.screening import URL, Program, answer, hook


@pytest.fixture
def base(desk) -> str:
    return f"/console/w/{desk.workspace_id}/vaults/{desk.vault['id']}"


@pytest.fixture
def admin(browse) -> Visitor:
    return browse("admin")


def test_the_list_a_vault_and_its_address(desk, admin, base):
    desk.deposit(150_000_000)
    path = f"/console/w/{desk.workspace_id}/vaults"
    admin.open(path)
    admin.says("Treasury", "2 of 3 sign", "1.50000000 BTC", "regtest", "in each payment")
    assert "No vault has this in its name." in admin.open(f"{path}?name=other").words
    admin.open(base)
    admin.says("alice@example.org", "Verification code", "signerd kit", desk.vault["descriptor"])
    answer = admin.http.get(f"{base}/bsms")
    assert answer.text.startswith("BSMS 1.0\n")
    assert admin.http.get(f"{base}/policy").text.startswith("wsh(sortedmulti(2,@0/**,")
    (address,) = (each["receive_address"] for each in desk.wallets())
    admin.open(f"{base}/receive?amount=0.25")
    assert f'data-copy="{address}"' in admin.html
    assert f'href="bitcoin:{address}?amount=0.25000000"' in admin.html
    admin.open(f"{base}/receive?amount=much", 422)


def test_a_vault_is_made_after_its_signers_were_shown_back(desk, admin):
    path = f"/console/w/{desk.workspace_id}/vaults/new"
    admin.open(path)
    assert "admin@example.org" in admin.words, "who has no key is shown, and why not to be chosen"
    ids = [desk.user_ids[name] for name in ("alice", "bob")]
    choices = re.findall(r'name="signers" value="(\d+)"', admin.html)
    assert sorted(choices) == sorted(str(each) for each in desk.user_ids.values())
    typed = {"name": "Payroll", "transaction_limit": "0.5", "per_cycle": "yes"}
    typed |= {"cycle_period": "W", "cycle_day": "1"}
    signers = tuple(("signers", str(each)) for each in ids)
    admin.send(path, m="3", repeated=signers, **typed, status=422)
    assert ("name", "Payroll") in admin.form(path).fields
    hidden = (signers[0], ("signers", f"0{ids[1]}"))
    admin.send(path, m="1", repeated=hidden, **typed, status=422)
    admin.send(path, m="1", repeated=signers, **typed)
    assert (admin.facts["Signatures needed"], "alice@example.org" in admin.facts["Signers"]) == ("1", True)
    assert "Either of the two can pay alone, without the other's knowing: one invoice" in admin.words
    assert len(desk.wallets()) == 1
    admin.confirm(path)
    assert [vault["name"] for vault in desk.wallets() if vault["m"] == 1] == ["Payroll"]


@pytest.mark.parametrize("is_late", [False, True], ids=["before the review", "after the review"])
def test_a_limit_that_another_changed_meanwhile_is_looked_at_again(desk, admin, base, is_late):
    """The person would confirm against another limit than the one beside which they typed."""
    typed = {"transaction_limit": "9", "per_cycle": "no", "cycle_period": "M", "cycle_day": "1"}
    admin.open(f"{base}/limits")
    if is_late:
        admin.send(f"{base}/limits", **typed)
    desk.limit("0.125")
    if is_late:
        admin.confirm(f"{base}/limits", status=409)
    else:
        # A refusal for something else renews nothing.
        admin.send(f"{base}/limits", **typed | {"transaction_limit": "a lot"}, status=422)
        admin.send(f"{base}/limits", **typed, status=409)
    assert "It was changed while you looked at it." in admin.words
    assert ("transaction_limit", "9") in admin.form(f"{base}/limits").fields
    assert desk.wallets()[0]["detailed_vault_limits"]["Limit"] == "0.12500000"
    admin.send(f"{base}/limits", per_cycle="yes")
    now, then = admin.facts["Limit"].split(", from then on ")
    assert now == "now at most 0.12500000 BTC in each payment, however many there are"
    assert then == "at most 9.00000000 BTC in all payments of a calendar month (UTC) together"
    admin.confirm(f"{base}/limits")
    shown = desk.wallets()[0]["detailed_vault_limits"]
    assert (shown["Limit"], shown["PerCycle"]) == ("9.00000000", True)


def test_the_controls_are_changed(desk, admin, base):
    """A form sends both of them: it would take the change of another back."""
    here = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    admin.open(f"{base}/controls")
    desk.bind(only_address_book=True)
    admin.send(f"{base}/controls", maker_may_approve="", status=409)
    admin.says(
        "It was changed while you looked at it.",
        "Now: It pays only the address book. Who proposed a payment may approve it.",
    )
    admin.send(f"{base}/controls")
    pair = (
        admin.facts["It pays only addresses of the address book"],
        admin.facts["Who proposed a payment may approve it, too"],
    )
    assert pair == ("now yes, from then on no",) * 2
    admin.confirm(f"{base}/controls")
    controls = ok(desk.admin.get("/api/v1/vault-controls", **here))
    assert (controls["only_address_book"], controls["maker_may_approve"]) == (False, False)


def test_a_program_is_chosen_to_screen_and_what_it_holds_says_so(desk, admin, browse, base):
    program_id, here = hook(desk), {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    admin.open(f"{base}/controls")
    typed = {"screening_webhook_id": program_id, "screening_seconds": "120", "screening_fails_open": "yes"}
    admin.send(f"{base}/controls", **typed)
    assert admin.facts["Program that screens proposals"] == f"now none, from then on {URL}"
    assert admin.facts["A proposal that it does not decide in time goes on"] == "now no, from then on yes"
    admin.confirm(f"{base}/controls")
    controls = ok(desk.admin.get("/api/v1/vault-controls", **here))
    assert {name: controls[name] for name in typed} == {
        "screening_webhook_id": program_id, "screening_seconds": 120, "screening_fails_open": True,
    }  # fmt: skip
    admin.open(base).says("screens its proposals")
    program = desk.world.platform.background.webhook_jobs.sender = Program()
    desk.deposit(500_000)
    psbt_id = made(desk.propose(100_000))
    answer(desk, program, "hold:<b>asked</b> the bank")
    page = admin.open(f"/console/w/{desk.workspace_id}/proposals/{psbt_id}")
    page.says("Held by screening", "It says: <b>asked</b> the bank", "Now: Screening Later: Signers approve")
    overview = f"/console/w/{desk.workspace_id}/"
    admin.open(overview).says("held by screening")
    assert [psbt_id in person.open(overview).html for person in (admin, browse("alice"))] == [True, False]


def test_whose_approval_is_asked_for_is_ticked_and_shown_where_it_is_missing(desk, admin, base):
    desk.deposit(500_000)
    path = f"{base}/controls"
    admin.open(path).says("One approval comes from any signer.", "The role Signer")
    carol = f"user:{desk.user_ids['carol']}"
    admin.send(path, approvers=carol)
    assert admin.facts["One approval has to come from each of"] == "now none, from then on carol@example.org"
    admin.confirm(path)
    assert admin.open(base).facts["One approval comes from"] == "carol@example.org"
    admin.open(path).send(path)
    assert admin.facts["One approval has to come from each of"] == "carol@example.org, as now"
    psbt_id = made(desk.propose(20_000))
    proposal = f"/console/w/{desk.workspace_id}/proposals/{psbt_id}"
    desk.sign_off(psbt_id)
    admin.open(proposal).says("waits for an approval from carol@example.org")
    ok(desk.tell("remove-user-from-workspace", user_uuid=desk.user_ids["carol"], force=True))
    admin.open(proposal).says("carol@example.org, which nobody who has not decided can give")
    for page in (base, f"/console/w/{desk.workspace_id}/"):
        admin.open(page).says("None of its signers can give an approval that it asks for.")


def test_one_freezes_and_two_unfreeze(desk, browse, base):
    alice = browse("alice").open(f"{base}/freeze")
    alice.send(f"{base}/freeze", reason="A phone is gone")
    alice.confirm(f"{base}/freeze")
    assert desk.wallets()[0]["is_frozen"]
    alice.open(base).says(
        "This vault is frozen.", "Frozen by alice@example.org (you)", "Reason: A phone is gone"
    )
    assert "Of its signers these may: alice@example.org (you); " in alice.open(f"{base}/freeze").words
    assert "They are: admin@example.org; alice@example.org; " in browse("admin").open(f"{base}/freeze").words
    alice.send(f"{base}/unfreeze")
    assert "the first of two" in alice.words
    early = browse("bob").open(f"{base}/freeze").send(f"{base}/unfreeze")
    assert "the first of two" in early.words
    alice.confirm(f"{base}/unfreeze").open(f"{base}/freeze")
    early.confirm(f"{base}/unfreeze", status=409)
    assert "would now do something else" in early.words
    assert desk.wallets()[0]["is_frozen"], "it would have been the second"
    actions = [form.action for form in forms_of(alice.html) if form.method == "post"]
    assert actions[1:] == [f"{base}/freeze"], "no second word of the same member, and a way to take it back"
    bob = browse("bob").open(f"{base}/freeze").send(f"{base}/unfreeze")
    bob.says("the second: it unfreezes", "may then get signatures that signers have already made")
    bob.confirm(f"{base}/unfreeze")
    assert not desk.wallets()[0]["is_frozen"]
    early.open(f"{base}/freeze").post_one(f"{base}/unfreeze", status=409)
    assert "The vault is not frozen." in early.words


def test_two_people_replace_a_vault_and_follow_it(desk, browse, admin, base):
    desk.deposit(1_000_000)
    unsigned = ok(desk.propose(20_000))["psbt_id"]
    desk.world.member(desk.workspace_id, "dora@example.org", "Administrator")
    desk.enter("Our vault", desk.vault["address"])
    desk.enter("Shop", SHOP)
    admin.open(base).open(admin.link("Replace this vault"))
    admin.send(f"{base}/replace", status=409)
    assert (admin.facts["Vault"], admin.facts["Name"]) == ("Treasury", "Treasury 2")
    assert admin.facts["Leads to the old vault"] == "Our vault"
    admin.send(f"{base}/replace", button="ask_second_person", step_password=PASSWORD)
    assert "waits for a second person" in admin.open(f"{base}/replace").words
    changes = f"/console/w/{desk.workspace_id}/changes"
    dora = browse("dora").open(changes).send(f"{changes}/confirm")
    assert (dora.facts["What would change"], dora.facts["Vault"]) == ("Replace a vault", "Treasury")
    assert dora.facts["Signatures needed"] == "2, as now"
    assert unsigned in dora.facts["Cancelled"]
    assert all(f"{name}@example.org" in dora.facts["Signers"] for name in ("alice", "bob", "carol"))
    dora.confirm(f"{changes}/confirm")
    (new,) = (each for each in desk.wallets() if "replaces" in each)
    for form in ("proofs", "tokens"):
        chooses = admin.open(f"/console/w/{desk.workspace_id}/{form}/new").page.by_id("vault_id")
        assert chooses.words.strip() == "Treasury 2"
    admin.open(f"{base}/replace")
    admin.says(desk.devices["alice"].fingerprint.hex, f"signerd pin {new['id']}", "vault: Our vault.")
    before = len(desk.rows(ProposalRow))
    admin.send(f"{base}/replace/sweep")
    assert len(desk.rows(ProposalRow)) == before
    assert "your own vault Treasury 2" in admin.words, "the address book has no entry of it"
    admin.confirm(f"{base}/replace/sweep")
    assert "locked by" in admin.open(f"{base}/coins").words
    admin.open(f"{base}/replace").send(f"{base}/replace/sweep", status=409)
    sweep = desk.rows(ProposalRow)[-1].id
    assert f'is locked by <a href="/console/w/{desk.workspace_id}/proposals/{sweep}">' in admin.html
    finished(desk, sweep)
    desk.mine()
    admin.open(f"{base}/receive")
    assert "replaced by Treasury 2" in admin.words
    assert desk.vault["address"] not in admin.words
    # One history, on the new vault's pages.
    new_base = f"/console/w/{desk.workspace_id}/vaults/{new['id']}/movements"
    assert "+0.01000000 BTC" not in admin.open(new_base).words
    assert "+0.01000000 BTC" in admin.open(f"{new_base}?with_replaced=true").words


def test_movements_and_coins_are_found_and_downloaded_without_a_formula(desk, admin, base):
    desk.deposit(150_000_000)
    proposal = made(desk.propose(20_000_000, description="=1+1 rent"))
    admin.open(f"{base}/coins")
    assert f'href="/console/w/{desk.workspace_id}/proposals/{proposal}"' in admin.html
    assert "locked by proposal" not in admin.open(f"{base}/coins?state=spendable").words
    assert len(admin.http.get(f"{base}/coins.csv").text.split("\r\n")) == 3
    finished(desk, proposal)
    desk.mine()
    admin.open(f"{base}/movements")
    admin.says("=1+1 rent", "+1.50000000 BTC")
    assert "=1+1 rent" not in admin.open(f"{base}/movements?kind=deposit").words
    assert "This is not a day" in admin.open(f"{base}/movements?since=yesterday", 422).words
    lines = admin.http.get(f"{base}/movements.csv?label=rent").text.split("\r\n")
    assert lines[0].startswith("time (UTC),status,kind,amount (sats)")
    assert ",'=1+1 rent," in lines[1]
    assert lines[2:] == [""]
    assert admin.http.get(f"{base}/movements.csv?since=yesterday").status_code == 422


def test_a_coin_is_set_aside_and_released(desk, admin, base):
    desk.deposit(150_000_000)
    admin.open(f"{base}/coins").open(admin.link("Set it aside"))
    action = f"{base}/coins/aside"
    past = {"reason": "Audit", "until": "2001-01-01"}
    assert "This time is past" in admin.send(action, **past, status=422).words
    assert "not a day" in admin.send(action, reason="Audit", until="soon", status=422).words
    admin.send(action, reason="<b>Audit</b>", until="2099-01-01")
    (coin,) = listed_coins(desk)
    assert coin["address"] in admin.facts["Address"].replace(" ", "")
    assert admin.facts["Until"] == "1 Jan 2099, 23:59 UTC"
    admin.confirm(action)
    admin.says("The coin is set aside", "<b>Audit</b>", "until 1 Jan 2099")
    release = f"{base}/coins/release"
    admin.send(release)
    assert admin.facts["Set aside now"].startswith("<b>Audit</b>, until 1 Jan 2099, 23:59 UTC, by ")
    admin.confirm(release).says("is spendable again")
    assert "<b>Audit</b>" not in admin.words


def test_a_closed_month_is_a_page_to_print_and_a_file(desk, admin, base):
    desk.deposit(150_000_000)
    month = f"{desk.world.clock():%Y-%m}"
    desk.later(days=32)
    desk.mine(11)
    admin.sign_in("admin@example.org").open(f"{base}/statement?month={month}")
    admin.says("Opening balance", "+1.50000000 BTC", "Closing balance")
    code = ok(
        desk.admin.get("/api/v1/vault-export", workspace_id=desk.workspace_id, vault_id=desk.vault["id"])
    )
    on_paper = ["Acme", "Main", "regtest", code["verification_code"], minute(desk.world.clock())]
    assert [*admin.facts.values()] == on_paper
    lines = admin.http.get(f"{base}/statement.csv?month={month}").text.split("\r\n")
    assert "opening balance" in lines[1]
    assert "closing balance" in lines[-2]
    assert "is not closed" in admin.open(f"{base}/statement?month=2099-01", 409).words
    for month in ("May", "0001-01", "9999-12"):
        assert "must be a month of the years" in admin.open(f"{base}/statement?month={month}", 422).words


def test_a_signers_key_is_marked_as_lost_and_a_vault_left_short_is_explained(desk, admin, base):
    keys = {each["user_id"]: each["key_id"] for each in desk.vault["signers"]}
    for name, words in (
        ("alice", "The key is marked as lost."),
        ("bob", "Fewer signers than a movement needs"),
    ):
        path = f"{base}/signers/{keys[str(desk.user_ids[name])]}/lost"
        admin.open(path).send(path, status=200 if name == "alice" else 409)
        if name == "alice":
            admin.confirm(path)
        assert words in admin.words
    assert "short of signers" in admin.words
    admin.send(path, force="yes")
    admin.confirm(path)
    assert [each["key_state"] for each in desk.wallets()[0]["signers"]] == ["lost", "lost", "active"]


def test_with_the_rule_of_two_people_a_lost_key_is_asked_for(desk, admin, base):
    """Whose key it is decides whether another has to confirm: that is known to the call alone."""
    desk.world.member(desk.workspace_id, "dora@example.org", "Administrator")
    rule = {"is_on": True, "cooling_off_hours": 0, "confirming_role_id": 1}
    ok(desk.tell("update-second-person-rule", **rule))
    path = f"{base}/signers/{desk.vault['signers'][0]['key_id']}/lost"
    admin.open(path).send(path).confirm(path, status=409)
    admin.send(path, button="ask_second_person")
    assert "It waits for a second person." in admin.words
    assert desk.wallets()[0]["signers"][0]["key_state"] == "active"


def test_small_coins_become_one_as_it_was_reviewed(desk, admin, base, browse):
    path = f"{base}/consolidate"
    assert "no two coins to make one of: 0 are free" in admin.open(path).words
    desk.deposit(*range(3_000, 10_000, 1_000), 400_000)
    admin.open(f"{base}/coins").open(admin.link("Make one coin of the small ones"))
    assert "at most three places" in admin.send(path, fee_rate="low", status=422).words
    assert "less_than_equal" not in admin.send(path, coins="101", fee_rate="1", status=422).words
    review = admin.send(path, coins="5", fee_rate="1")
    review.says("Make one coin of 5", "Back to Treasury", "5 coins of 25,000 sats become one.")
    # Back to the form, with what was typed.
    admin.send(path, button="back")
    assert {name: dict(admin.form(path).fields)[name] for name in ("coins", "fee_rate")} == {
        "coins": "5", "fee_rate": "1",
    }  # fmt: skip
    address = desk.wallets()[0]["receive_address"]
    first, second = (browse("admin").open(path).send(path, coins="5", fee_rate="1") for _ in range(2))
    sent = urlencode(first.form(path).fields)
    first.confirm(path)
    (proposal,) = desk.rows(ProposalRow)
    assert (len(desk.coins(proposal.id)), proposal.recipients) == (5, [address])
    listed = admin.open(f"/console/w/{desk.workspace_id}/proposals").facts
    assert listed["Pays"] == "nothing to others"
    # Pressed twice it is made once; another review of the same coins is refused, and shows what is left.
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    again = first.http.post(path, content=sent, headers=SAME_SITE | kind, follow_redirects=True)
    assert again.url.path.endswith(proposal.id)
    assert f"proposals/{proposal.id}" in second.confirm(path, status=409).html
    assert len(desk.rows(ProposalRow)) == 1
    assert "Your role lacks the permission" in browse("alice").open(path, 403).words
