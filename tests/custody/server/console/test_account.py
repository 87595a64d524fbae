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
