"""The person's keys and purchases at the console."""

from tests.support.custody import ok


def test_a_key_is_revoked_after_what_it_means_was_shown(desk, browse):
    (key,) = ok(desk.signers["alice"].get("/api/v1/keys"))
    alice = browse("alice").open("/console/account")
    path = f"/console/account/keys/{key['ID']}/revoke"
    alice.open(path).send(path, reason="superseded")
    alice.confirm(path)
    assert "another device replaced it" in alice.words.lower()
    alice.open(path).send(path, reason="lost")
    alice.confirm(path)
    assert ok(desk.signers["alice"].get("/api/v1/keys"))[0]["RevokedReason"]["String"] == "lost"
    assert path not in alice.open("/console/account").html
    browse("bob").open(path, 404)


def test_a_device_that_signed_nothing_for_long_is_said_to_its_holder_and_to_who_reads_the_vault(
    desk, browse, here
):
    ok(desk.tell("update-workspace", key_check_months=6))
    day = f"{desk.world.clock():%-d %b %Y}"
    desk.later(days=183)
    assert f"{day} to be checked" in browse("admin").open(f"{here}/vaults/{desk.vault['id']}").words
    own = browse("bob").open("/console/account").words
    assert (f"last signed on {day}" in own, "still signs" in own) == (True, True)
