"""An evacuation by the console: keys ticked, the plan, a second person who sees it, and how far it is."""

from tests.support.evacuations import key_of, staff


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
