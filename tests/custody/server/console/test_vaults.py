"""Vaults at the console: listed, looked at, made, bounded, frozen; their movements as pages and files."""

import re

import pytest

from custody.server.store.models import ProposalRow
from tests.support.console import Visitor, forms_of
from tests.support.custody import SHOP, ok
from tests.support.platform import PASSWORD


@pytest.fixture
def base(desk) -> str:
    return f"/console/w/{desk.workspace_id}/vaults/{desk.vault['id']}"


@pytest.fixture
def admin(browse) -> Visitor:
    return browse("admin")


def test_the_list_shows_balance_policy_and_limit_and_finds_by_name(desk, admin):
    desk.deposit(150_000_000)
    path = f"/console/w/{desk.workspace_id}/vaults"
    admin.open(path)
    for words in ("Treasury", "2 of 3 sign", "1.50000000 BTC", "regtest", "in each payment"):
        assert words in admin.words
    assert "Treasury" in admin.open(f"{path}?name=treas").words
    assert "No vault has this in its name." in admin.open(f"{path}?name=other").words


def test_a_vault_shows_its_signers_limit_descriptor_and_code(desk, admin, base):
    admin.open(base)
    for words in ("alice@example.org", "in use", "Verification code", "signerd kit"):
        assert words in admin.words
    assert desk.vault["descriptor"] in admin.words
    answer = admin.http.get(f"{base}/bsms")
    assert answer.text.startswith("BSMS 1.0\n")
    assert "attachment" in answer.headers["content-disposition"]


def test_a_fresh_address_comes_with_its_code_and_an_amount_in_a_link(desk, admin, base):
    address = desk.vault["receive_address"]
    admin.open(f"{base}/receive?amount=0.25")
    assert f'data-copy="{address}"' in admin.html
    assert f'href="bitcoin:{address}?amount=0.25000000"' in admin.html
    assert "0.25000000 BTC" in admin.words
    admin.open(f"{base}/receive?amount=much", 422)
    assert "The amount is not a plain decimal number" in admin.words


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
    assert "3 signatures cannot be asked of 2 signers." in admin.words
    assert ("name", "Payroll") in admin.form(path).fields
    hidden = (signers[0], ("signers", f"0{ids[1]}"))
    admin.send(path, m="1", repeated=hidden, **typed, status=422)
    assert "among the members" in admin.words, "the review would not show a signer whom making it takes"
    admin.send(path, m="1", repeated=signers, **typed)
    assert (admin.facts["Signatures needed"], "alice@example.org" in admin.facts["Signers"]) == ("1", True)
    assert "at most 0.50000000 BTC in all payments of a week from Monday" in admin.facts["Limit"]
    assert len(desk.wallets()) == 1
    admin.confirm(path)
    assert "The vault is made." in admin.words
    assert "two groups without a member in common" in admin.words
    assert [vault["name"] for vault in desk.wallets() if vault["m"] == 1] == ["Payroll"]
    assert "0.50000000 BTC 50,000,000 sats left until" in admin.words


def test_the_limit_is_changed_with_the_second_factor(desk, admin, base):
    admin.open(f"{base}/limits")
    typed = {"transaction_limit": "0.25", "cycle_period": "M", "cycle_day": "5"}
    admin.send(f"{base}/limits", **typed)
    each = "in each payment, however many there are"
    now = f"now at most 10.00000000 BTC {each}, from then on"
    assert admin.facts["Limit"] == f"{now} at most 0.25000000 BTC {each}"
    admin.send(f"{base}/limits", back="yes", confirmed="yes").send(f"{base}/limits", per_cycle="yes", **typed)
    total = "in all payments of a month from day 5 (UTC) together"
    assert admin.facts["Limit"] == f"{now} at most 0.25000000 BTC {total}"
    confirming = admin.html
    admin.confirm(f"{base}/limits")
    shown = desk.wallets()[0]["detailed_vault_limits"]
    assert (shown["Limit"], shown["PerCycle"]) == ("0.25000000", True)
    # Sent twice, as by a second click, it is no other's change.
    admin.html = confirming
    assert "The limit is changed." in admin.confirm(f"{base}/limits").words
    admin.open(f"{base}/limits").send(f"{base}/limits", **typed | {"transaction_limit": "a lot"}, status=422)
    assert ("transaction_limit", "a lot") in admin.form(f"{base}/limits").fields


@pytest.mark.parametrize("is_late", [False, True], ids=["before the review", "after the review"])
def test_a_limit_that_another_changed_meanwhile_is_looked_at_again(desk, admin, base, is_late):
    """The person would confirm against another limit than the one beside which they typed."""
    typed = {"transaction_limit": "9", "per_cycle": "no", "cycle_period": "M", "cycle_day": "1"}
    admin.open(f"{base}/limits")
    if is_late:
        admin.send(f"{base}/limits", **typed)
    here = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    others = {"transaction_limit": "0.125", "cycle_period": "M", "cycle_day": 1}
    ok(desk.admin.post("/api/v1/update-vault", {**here, **others}))
    if is_late:
        admin.confirm(f"{base}/limits", status=409)
    else:
        # A refusal for something else renews nothing.
        admin.send(f"{base}/limits", **typed | {"transaction_limit": "a lot"}, status=422)
        admin.send(f"{base}/limits", **typed, status=409)
    assert "It was changed while you looked at it." in admin.words
    assert ("transaction_limit", "9") in admin.form(f"{base}/limits").fields
    assert desk.wallets()[0]["detailed_vault_limits"]["Limit"] == "0.12500000"
    admin.send(f"{base}/limits").confirm(f"{base}/limits")
    assert desk.wallets()[0]["detailed_vault_limits"]["Limit"] == "9.00000000"


def test_the_controls_are_changed(desk, admin, base):
    admin.open(f"{base}/controls").send(f"{base}/controls", only_address_book="yes")
    assert admin.facts["Pay addresses of the book alone"] == "now no, from then on yes"
    admin.confirm(f"{base}/controls")
    assert "only the address book" in admin.words
    controls = ok(
        desk.admin.get("/api/v1/vault-controls", workspace_id=desk.workspace_id, vault_id=desk.vault["id"])
    )
    assert controls["only_address_book"] is True


def test_one_freezes_and_two_unfreeze(desk, browse, base):
    alice = browse("alice").open(f"{base}/freeze")
    alice.send(f"{base}/freeze", reason="A phone is gone")
    assert "A phone is gone" in alice.words
    alice.confirm(f"{base}/freeze")
    assert desk.wallets()[0]["is_frozen"]
    for words in ("This vault is frozen.", "Frozen by alice@example.org (you)", "Reason: A phone is gone"):
        assert words in alice.open(base).words
    assert "Of its signers these may: alice@example.org (you); " in alice.open(f"{base}/freeze").words
    assert "They are: admin@example.org; alice@example.org; " in browse("admin").open(f"{base}/freeze").words
    kept = "pending proposals may then get signatures that signers have already made"
    assert kept in alice.open(f"{base}/freeze").words
    alice.send(f"{base}/unfreeze")
    assert "the first of two" in alice.words
    assert kept in alice.words
    alice.confirm(f"{base}/unfreeze")
    assert "another member has to agree" in alice.words
    actions = [form.action for form in forms_of(alice.open(f"{base}/freeze").html) if form.method == "post"]
    assert alice.facts["Reason"] == "A phone is gone"
    assert actions[1:] == [f"{base}/freeze"], "no second word of the same member, and a way to take it back"
    bob = browse("bob").open(f"{base}/freeze").send(f"{base}/unfreeze")
    assert "the second: it unfreezes" in bob.words
    assert kept in bob.words
    bob.confirm(f"{base}/unfreeze")
    assert not desk.wallets()[0]["is_frozen"]


def test_two_people_replace_a_vault_and_follow_it(desk, browse, admin, base):
    desk.deposit(1_000_000)
    unsigned = ok(desk.propose(20_000))["psbt_id"]
    desk.world.member(desk.workspace_id, "dora@example.org", "Administrator")
    admin.open(base)
    assert "Replace this vault" in admin.words
    entry = {"workspace_id": desk.workspace_id, "name": "Our vault", "address": desk.vault["address"]}
    ok(desk.admin.post("/api/v1/add-whitelist-address", entry))
    ok(desk.admin.post("/api/v1/add-whitelist-address", entry | {"name": "Shop", "address": SHOP}))
    admin.open(f"{base}/replace").send(f"{base}/replace", status=409)
    assert (admin.facts["Vault"], admin.facts["Name"]) == ("Treasury", "Treasury 2")
    assert admin.facts["Leads to the old vault"] == "Our vault"
    assert admin.facts["Signatures needed"] == "2, as now"
    assert unsigned in admin.facts["Cancelled"]
    admin.send(f"{base}/replace", button="ask_second_person", step_password=PASSWORD)
    assert "Nothing is changed yet" in admin.words
    assert "waits for a second person" in admin.open(f"{base}/replace").words
    changes = f"/console/w/{desk.workspace_id}/changes"
    dora = browse("dora").open(changes).send(f"{changes}/confirm")
    assert (dora.facts["What would change"], dora.facts["Vault"]) == ("Replace a vault", "Treasury")
    assert dora.facts["Signatures needed"] == "2, as now"
    assert unsigned in dora.facts["Cancelled"]
    assert all(f"{name}@example.org" in dora.facts["Signers"] for name in ("alice", "bob", "carol"))
    dora.confirm(f"{changes}/confirm")
    (new,) = (each for each in desk.wallets() if "replaces" in each)
    assert "This vault is replaced." in admin.open(base).words
    for form in ("proofs", "tokens"):
        chooses = admin.open(f"/console/w/{desk.workspace_id}/{form}/new").page.by_id("vault_id")
        assert chooses.words.strip() == "Treasury 2"
    admin.open(f"{base}/replace")
    for words in ("Treasury 2", desk.devices["alice"].fingerprint.hex, f"signerd pin {new['id']}"):
        assert words in admin.words
    assert "these lead to this vault: Our vault." in admin.words
    before = len(desk.rows(ProposalRow))
    admin.send(f"{base}/replace/sweep")
    assert "Treasury 2" in admin.words
    assert len(desk.rows(ProposalRow)) == before
    admin.confirm(f"{base}/replace/sweep")
    assert "1 sweep is proposed." in admin.words
    assert "held by" in admin.open(f"{base}/coins").words
    admin.open(f"{base}/replace").send(f"{base}/replace/sweep", status=409)
    desk.sign_off(desk.rows(ProposalRow)[-1].id)
    desk.settle()
    desk.mine()
    admin.open(f"{base}/receive")
    assert "replaced by Treasury 2" in admin.words
    assert desk.vault["address"] not in admin.words
    assert "Receive" not in admin.open(f"{base}/standing").words
    # One history, on the new vault's pages.
    new_base = f"/console/w/{desk.workspace_id}/vaults/{new['id']}/movements"
    assert "+0.01000000 BTC" not in admin.open(new_base).words
    assert "+0.01000000 BTC" in admin.open(f"{new_base}?with_replaced=true").words
    assert "0.01000000" in admin.http.get(f"{new_base}.csv?with_replaced=true").text


def test_movements_are_found_and_downloaded_without_a_formula(desk, admin, base):
    desk.deposit(150_000_000)
    proposal = ok(desk.propose(20_000_000, description="=1+1 rent"))
    desk.sign_off(proposal["psbt_id"])
    desk.settle()
    desk.mine()
    admin.open(f"{base}/movements")
    assert "=1+1 rent" in admin.words
    assert "+1.50000000 BTC" in admin.words
    admin.open(f"{base}/movements?kind=deposit")
    assert "=1+1 rent" not in admin.words
    assert "Nothing was found." in admin.open(f"{base}/movements?least=9").words
    assert "This is not a day" in admin.open(f"{base}/movements?since=yesterday", 422).words
    lines = admin.http.get(f"{base}/movements.csv?label=rent").text.split("\r\n")
    assert lines[0].startswith("time (UTC),status,kind,amount (sats)")
    assert ",'=1+1 rent," in lines[1]
    assert lines[2:] == [""]
    assert admin.http.get(f"{base}/movements.csv?since=yesterday").status_code == 422


def test_coins_tell_what_each_is_for_and_what_holds_it(desk, admin, base):
    desk.deposit(100_000_000, 50_000)
    made = ok(desk.propose(20_000_000))
    admin.open(f"{base}/coins")
    assert "may be spent" in admin.words
    assert f'href="/console/w/{desk.workspace_id}/proposals/{made["psbt_id"]}"' in admin.html
    admin.open(f"{base}/coins?state=spendable")
    assert "held by proposal" not in admin.words
    assert len(admin.http.get(f"{base}/coins.csv").text.split("\r\n")) == 4


def test_a_signers_key_is_marked_as_lost_and_a_vault_left_short_is_explained(desk, admin, base):
    keys = {each["user_id"]: each["key_id"] for each in desk.vault["signers"]}
    for name, words in (
        ("alice", "The key is marked as lost."),
        ("bob", "Fewer signers than a movement needs"),
    ):
        path = f"{base}/signers/{keys[str(desk.user_ids[name])]}/lost"
        admin.open(path).send(path)
        admin.confirm(path, status=200 if name == "alice" else 409)
        assert words in admin.words
    assert "short of signers" in admin.words
    admin.send(path, force="yes")
    admin.confirm(path)
    assert [each["key_state"] for each in desk.wallets()[0]["signers"]] == ["lost", "lost", "active"]


def test_with_the_rule_of_two_people_the_limit_and_a_lost_key_are_asked_for(desk, admin, base):
    desk.world.member(desk.workspace_id, "dora@example.org", "Administrator")
    place = {"workspace_id": desk.workspace_id}
    rule = {**place, "is_on": True, "cooling_off_hours": 0, "confirming_role_id": 1}
    ok(desk.admin.post("/api/v1/update-second-person-rule", rule))
    typed = {"transaction_limit": "0.25", "cycle_period": "M", "cycle_day": "5"}
    key_path = f"{base}/signers/{desk.vault['signers'][0]['key_id']}/lost"
    # Whose key it is decides whether another has to confirm: that is known to the call alone.
    admin.open(key_path).send(key_path).confirm(key_path, status=409)
    admin.send(key_path, button="ask_second_person")
    assert "It waits for a second person." in admin.words
    limits = f"{base}/limits"
    admin.open(limits).send(limits, status=409, **typed).send(limits, button="ask_second_person")
    assert "It waits for a second person." in admin.words
    asked = [each["path"] for each in ok(desk.admin.get("/api/v1/changes", **place))]
    assert sorted(asked) == ["/api/v1/revoke-key", "/api/v1/update-vault"]
    (vault,) = desk.wallets()
    assert vault["detailed_vault_limits"]["Limit"] == "10.00000000"
    assert vault["signers"][0]["key_state"] == "active"


def test_controls_that_another_changed_meanwhile_are_looked_at_again(desk, admin, base):
    """A form sends both of them: it would take the other's change back."""
    admin.open(f"{base}/controls")
    here = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    others = {"only_address_book": True, "maker_may_approve": True}
    ok(desk.admin.post("/api/v1/update-vault-controls", {**here, **others}))
    admin.send(f"{base}/controls", maker_may_approve="", status=409)
    assert "It was changed while you looked at it." in admin.words
    now = "It pays only the address book. Who proposed a payment may approve it."
    assert f"Now: {now}" in admin.words
    admin.send(f"{base}/controls")
    pair = admin.facts["Pay addresses of the book alone"], admin.facts["The proposer may approve"]
    assert pair == ("now yes, from then on no",) * 2
