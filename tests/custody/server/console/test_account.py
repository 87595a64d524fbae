"""The person's keys and purchases at the console."""

from tests.support.custody import ok


def test_a_key_is_revoked_after_what_it_means_was_shown(desk, browse):
    (key,) = ok(desk.signers["alice"].get("/api/v1/keys"))
    alice = browse("alice").open("/console/account")
    assert "for 1 more vault" in alice.words
    assert "signerd register" in alice.words
    path = f"/console/account/keys/{key['ID']}/revoke"
    assert path in alice.html
    alice.open(path).send(path, reason="superseded")
    assert "only moves between a workspace's own vaults" in alice.words
    alice.confirm(path)
    assert "another device replaced it" in alice.words.lower()
    alice.open(path).send(path, reason="lost")
    alice.confirm(path)
    assert ok(desk.signers["alice"].get("/api/v1/keys"))[0]["RevokedReason"]["String"] == "lost"
    assert path not in alice.open("/console/account").html


def test_a_vault_left_short_is_explained_and_forced(desk, browse):
    for name in ("alice", "bob"):
        (key,) = ok(desk.signers[name].get("/api/v1/keys"))
        person = browse(name)
        path = f"/console/account/keys/{key['ID']}/revoke"
        person.open(path).send(path, reason="lost")
        person.confirm(path, status=200 if name == "alice" else 409)
    assert "Fewer signers than a movement needs would be left in vault 'Treasury'." in person.words
    assert "short of signers" in person.words
    person.send(path, reason="lost", force="yes")
    assert "Also where a vault keeps too few signers" in person.words
    person.confirm(path)
    assert "The key is revoked." in person.words


def test_another_persons_key_is_not_shown(desk, browse):
    (key,) = ok(desk.signers["alice"].get("/api/v1/keys"))
    browse("bob").open(f"/console/account/keys/{key['ID']}/revoke", 404)
