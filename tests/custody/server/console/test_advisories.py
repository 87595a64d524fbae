"""Advisories by the console: handed in by who manages, the vaults that one exposes, refused in words."""

from sqlalchemy import update

from custody.server.store.models import Key
from tests.support.advisories import Publisher, entry, secret, trust

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
