"""An evacuation by the console: keys ticked, the plan, a second person who sees it, and how far it is."""

from custody.server.console import changes, evacuations
from tests.support.custody import ok
from tests.support.evacuations import add_accounts, add_signer, key_of, staff


def link(person, words):
    """Where the link of these words leads."""
    (found,) = (tag for tag in person.page.all("a") if " ".join(tag.words.split()) == words)
    return found.attributes["href"]


def test_two_people_start_one_and_follow_it(desk, browse):
    staff(desk)
    desk.deposit(1_000_000)
    here, key = f"/console/w/{desk.workspace_id}", key_of(desk, "carol")
    admin, dora = browse("admin"), browse("dora")
    admin.open(f"{here}/evacuations/plan?exposed={key}")
    assert "1 of 3 keys exposed, 2 sign" in admin.words
    admin.send(f"{here}/evacuations/start")
    assert "Treasury (new)" in admin.facts["Treasury"]
    admin.confirm(f"{here}/evacuations/start", status=409)
    admin.send(f"{here}/evacuations/start", button="ask_second_person")
    assert (admin.url, "Nothing is changed yet" in admin.words) == (f"{here}/changes", True)
    dora.open(f"{here}/changes").send(f"{here}/changes/confirm")
    assert "Treasury (new)" in dora.facts["Treasury"]
    assert "instead of" in dora.facts["Treasury"]
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
    ok(desk.create_vault("Savings"))
    desk.deposit(1_000_000)
    key, here = key_of(desk, "carol"), f"/console/w/{desk.workspace_id}"
    plan, start = f"{here}/evacuations/plan?exposed={key}", f"{here}/evacuations/start"
    admin, dora = browse("admin"), browse("dora")
    # Unasked, the platform takes one of the two for one vault and the other for the other.
    admin.open(f"{plan}&substitute={key}:{fay}")
    assert admin.facts["Vaults that are moved"] == "2 of 2"
    assert f"member {fay}" in admin.facts["To Treasury (new), of"]
    assert "Savings" not in admin.words
    assert f"member {fay}" in admin.open(link(admin, "The next vaults")).facts["To Savings (new), of"]
    admin.open(link(admin, "The vaults before")).send(start)
    assert "Savings" not in admin.facts
    others = "The vaults 2 to 2 of this plan, in a window of their own"
    assert f"member {fay}" in browse("admin").open(link(admin, others)).facts["To Savings (new), of"]
    admin.confirm(start, status=409).send(start, button="ask_second_person")
    dora.open(f"{here}/changes").send(f"{here}/changes/confirm")
    assert (f"member {fay}" in dora.facts["Treasury"], "Savings" in dora.facts) == (True, False)
    assert f"member {fay}" in browse("dora").open(link(dora, others)).facts["To Savings (new), of"]
    dora.confirm(f"{here}/changes/confirm")
    desk.settle()
    assert {row[0] for row in admin.open(f"{here}/evacuations").rows} == {"Treasury", "Savings"}
