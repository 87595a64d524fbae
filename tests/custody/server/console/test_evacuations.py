"""An evacuation by the console: advisories, keys ticked, the plan, a second person who sees it, and how far
it is.
"""

from sqlalchemy import update

from custody.server.console import changes, evacuations
from custody.server.store.models import Key, User
from tests.support.advisories import Publisher, entry, secret, trust
from tests.support.custody import ok
from tests.support.evacuations import add_accounts, add_signer, key_of, staff

# As if it were two signers.
IMITATION = "Carol Jones (key 1a2b3c4d), Erin"


def name_erin(desk):
    with desk.world.platform.services.store.write() as db:
        db.get_one(User, desk.user_ids["erin"]).first_name = IMITATION


def test_two_people_start_one_and_follow_it(desk, browse):
    staff(desk)
    desk.deposit(1_000_000)
    here, key = f"/console/w/{desk.workspace_id}", key_of(desk, "carol")
    admin, dora = browse("admin"), browse("dora")
    name_erin(desk)
    keys = [key, key_of(desk, "bob")]
    admin.open(f"{here}/evacuations/plan?exposed={keys[0]}&exposed={keys[1]}")
    sent = [value for name, value in admin.form(f"{here}/evacuations/start").fields if name == "exposed"]
    assert sent == [" ".join(keys)], "a form has fewer fields than a plan takes keys"
    assert "is not moved" in admin.send(f"{here}/evacuations/start", status=409).facts["Treasury"]
    admin.open(f"{here}/evacuations/plan?exposed={key}")
    assert "1 of 3 keys exposed, 2 sign" in admin.words
    admin.send(f"{here}/evacuations/start", status=409)
    assert "Treasury (new)" in admin.facts["Treasury"]
    admin.send(f"{here}/evacuations/start", button="ask_second_person")
    assert (admin.url, "Nothing is changed yet" in admin.words) == (f"{here}/changes", True)
    dora.open(f"{here}/changes").send(f"{here}/changes/confirm")
    assert "Treasury (new)" in dora.facts["Treasury"]
    lines = [" ".join(tag.words.split()) for tag in dora.page.all("li")]
    (new, seated) = (line for line in lines if repr(IMITATION) in line)
    assert (new.endswith("', in 1 vault"), "', instead of 'member " in seated) == (True, True)
    assert new[:9] == seated[:9], "the fingerprint first"
    dora.confirm(f"{here}/changes/confirm")
    desk.settle()
    desk.deposit(70_000, to=desk.vault["address"])
    (row,) = admin.open(f"{here}/evacuations").rows
    assert (row[0], "awaiting approval" in row[1]) == ("Treasury", True)
    admin.send(f"{here}/evacuations/again")
    desk.settle()
    assert "Sweep again" not in admin.open(f"{here}/evacuations").words
    assert admin.facts["Confirmed by"] == "dora@example.org"


def test_a_plan_is_shown_in_pages_and_takes_substitutes(desk, browse, monkeypatch):
    for module in (evacuations, changes):
        monkeypatch.setattr(module, "PLAN_PAGE", 1)
    staff(desk)
    fay = add_signer(desk, "fay", 10)
    add_accounts(desk, 4, *desk.signers)
    more = ok(desk.create_vault("Savings"))
    desk.deposit(1_000_000)
    # They are as urgent: what Treasury holds changes no place.
    first, second = sorted(
        ("Treasury", "Savings"), key={"Treasury": desk.vault["id"], "Savings": more["id"]}.get
    )
    key, here = key_of(desk, "carol"), f"/console/w/{desk.workspace_id}"
    plan, start = f"{here}/evacuations/plan?exposed={key}", f"{here}/evacuations/start"
    admin, dora = browse("admin"), browse("dora")
    # Unasked, the platform takes one of the two for one vault and the other for the other.
    admin.open(f"{plan}&substitute={key}:{fay}")
    assert admin.facts["Vaults that are moved"] == "2 of 2"
    assert f"member {fay}" in admin.facts[f"To {first} (new), of"]
    assert second not in admin.words
    assert f"member {fay}" in admin.open(admin.link("The next vaults")).facts[f"To {second} (new), of"]
    admin.open(admin.link("The vaults before")).send(start, status=409)
    assert second not in admin.facts
    others = "The vaults 2 to 2 of this plan, in a window of their own"
    assert f"member {fay}" in browse("admin").open(admin.link(others)).facts[f"To {second} (new), of"]
    admin.send(start, button="ask_second_person")
    dora.open(f"{here}/changes").send(f"{here}/changes/confirm")
    assert (f"member {fay}" in dora.facts[first], second in dora.facts) == (True, False)
    assert f"member {fay}" in browse("dora").open(dora.link(others)).facts[f"To {second} (new), of"]
    dora.confirm(f"{here}/changes/confirm")
    desk.settle()
    assert {row[0] for row in admin.open(f"{here}/evacuations").rows} == {"Treasury", "Savings"}


PUBLISHER = Publisher()


def test_one_is_handed_in_and_shows_what_it_exposes(desk, browse):
    trust(desk, PUBLISHER.root)
    with desk.world.platform.services.store.write() as db:
        known = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}
        db.execute(update(Key).where(Key.user_id == desk.user_ids["bob"]).values(**known))
    here = f"/console/w/{desk.workspace_id}/advisories"
    admin = browse("admin").open(here)
    assert "No advisory was taken yet." in admin.words
    forged = PUBLISHER.list(1, entry()).signed(secret(9), bytes(32))
    admin.send(here, status=422, list=forged.line.decode())
    assert "was changed, or is not signed" in admin.words
    admin.send(here, list=PUBLISHER.list(1, entry(text="Guessed <b>keys</b>")).line.decode())
    assert "The list with the serial 1 is taken." in admin.words
    assert "Guessed <b>keys</b>" in admin.words
    (link,) = [a for a in admin.page.all("a") if a.words == "COLDCARD-2026-07"]
    admin.open(link.attributes["href"])
    assert admin.rows == [["Treasury", "2 of 3, of which 2 sign", "no other key", "0.00000000 BTC 0 sats"]]

    signer = browse("alice").open(link.attributes["href"])
    assert signer.rows == admin.rows
    assert "Submit a list" not in signer.words
