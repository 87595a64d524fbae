"""Mails to those for whom something waits (P71): one for many, without amounts, and none that is lost."""

from datetime import datetime

import pytest

from custody.common.text import minute
from custody.server.mail.waiting import GATHER, INTERVAL
from tests.support.custody import SHOP, Desk, ok
from tests.support.two_people import DORA, ask, ruled

ALICE, BOB, CAROL = "alice@example.org", "bob@example.org", "carol@example.org"
EVERYBODY = [ALICE, BOB, CAROL]


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.deposit(*[100_000] * 6)
    desk.world.mail.sent.clear()
    return desk


def mailed(desk: Desk, **span: float) -> list:
    """After a while; what was mailed since the last time."""
    desk.world.clock.advance(**span)
    desk.world.deliver_mail()
    found = list(desk.world.mail.sent)
    desk.world.mail.sent.clear()
    return sorted(found, key=lambda mail: mail.to)


def gathered(desk: Desk) -> list:
    return mailed(desk, seconds=GATHER.total_seconds())


def propose(desk: Desk, amount: int = 20_000) -> str:
    """As a person who signs in again: sessions lapse meanwhile."""
    desk.admin = desk.world.as_user("admin@example.org")
    return ok(desk.propose(amount))["psbt_id"]


def choose(desk: Desk, email: str, **settings: bool) -> dict:
    return ok(desk.world.as_user(email).post("/api/v1/update-mail-settings", settings))


def test_p71_many_proposals_are_one_mail_to_each_signer_without_amounts(desk: Desk) -> None:
    """And none to another tenant's (P24)."""
    desk.world.organisation("Umbrella", "eve@example.com")
    ids = [propose(desk, 20_001) for _ in range(3)]
    assert mailed(desk) == [], "what comes soon after is in the same mail"
    found = gathered(desk)
    assert [mail.to for mail in found] == EVERYBODY
    for mail in found:
        assert mail.subject == "3 things wait for you"
        assert [one in mail.text for one in ids] == [True] * 3
        assert not [word for word in (SHOP, "20001", "0.0002", "http") if word in mail.text]
    propose(desk)
    assert gathered(desk) == [], "at most one in half an hour"
    assert [mail.subject for mail in mailed(desk, minutes=28)] == ["4 things wait for you"] * 3


def test_amounts_and_addresses_for_who_chose_them_and_nothing_for_who_wants_none(desk: Desk) -> None:
    assert ok(desk.world.as_user(BOB).get("/api/v1/mail-settings")) == {"waiting": True, "amounts": False}
    assert choose(desk, BOB, amounts=True) == {"waiting": True, "amounts": True}
    choose(desk, ALICE, waiting=False)
    assert ok(desk.world.as_user(CAROL).get("/api/v1/mail-settings"))["waiting"], "settings are one's own"
    before = len(desk.world.audit_actions())
    choose(desk, ALICE, waiting=False)
    assert "MAIL_SETTINGS_CHANGED" not in desk.world.audit_actions()[before:]
    propose(desk, 20_001)
    bob, carol = gathered(desk)
    assert (bob.to, f"0.00020001 BTC to {SHOP}" in bob.text) == (BOB, True)
    assert (carol.to, SHOP in carol.text) == (CAROL, False)


def test_what_was_decided_by_then_and_what_cannot_be_signed_is_not_mailed(desk: Desk) -> None:
    psbt_id = propose(desk)
    desk.approve("bob", psbt_id)
    ok(desk.decline("carol", psbt_id))
    choose(desk, ALICE, waiting=False)
    assert gathered(desk) == []
    propose(desk)
    desk.freeze()
    assert mailed(desk, minutes=40) == []
    desk.later()
    desk.unfreeze("bob", "carol")
    assert [mail.to for mail in gathered(desk)] == [BOB, CAROL], "now it can be signed"


def test_a_change_waits_for_who_may_confirm_it_and_not_for_who_asked(desk: Desk) -> None:
    ruled(desk.world, desk.admin, hours=24)
    change = ok(ask(desk.admin, "add-whitelist-address", name="Shop", address=SHOP))
    (mail,) = gathered(desk)
    assert (mail.to, mail.subject) == (DORA, "Something waits for you")
    until = datetime.fromisoformat(change["not_before"])
    assert f"{change['change_id']}, not before {minute(until)}" in mail.text
    assert SHOP not in mail.text


def test_p71_what_comes_while_a_mail_is_sent_is_in_the_next_one(desk: Desk) -> None:
    """It finds the job open, and makes none."""
    first, late = propose(desk), []
    send = desk.world.mail.send

    def slow(mail) -> None:
        send(mail)
        if not late:
            late.append(propose(desk))

    desk.world.mail.send = slow
    found = gathered(desk)
    del desk.world.mail.send
    assert all(first in mail.text for mail in found)
    again = mailed(desk, seconds=INTERVAL.total_seconds())
    assert {mail.to for mail in found if late[0] not in mail.text} == {mail.to for mail in again} != set()
    assert all(late[0] in mail.text for mail in again)
    assert mailed(desk, hours=2) == []


def test_p71_a_worker_that_dies_before_sending_loses_none(desk: Desk) -> None:
    propose(desk)
    desk.world.clock.advance(seconds=GATHER.total_seconds())
    assert desk.world.platform.background.outbox("mail").lease() is not None
    assert len(mailed(desk)) == 2, "one is the dead worker's"
    assert len(mailed(desk, minutes=10)) == 1
    assert mailed(desk, hours=2) == []
