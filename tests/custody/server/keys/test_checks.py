"""Key checks: each signer's device signs something once in so many months, or its holder is reminded."""

import pytest

from custody.server.mail.waiting import GATHER, REMIND_AGAIN
from tests.support.custody import Desk, ok
from tests.support.platform import register_key, seed

SIX_MONTHS = 183


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.deposit(100_000, 100_000)
    return desk


def ask_every(desk: Desk, months: int) -> None:
    assert ok(desk.tell("update-workspace", key_check_months=months))["key_check_months"] == months


def due(desk: Desk) -> dict[str, bool]:
    """By signer: as the vault's list has it, and their own list of keys."""
    listed = {one["user_id"]: one["check_due"] for one in desk.wallets()[0]["signers"]}
    by_name = {name: listed[str(desk.user_ids[name])] for name in desk.signers}
    for name, person in desk.signers.items():
        (key,) = [one for one in ok(person.get("/api/v1/keys")) if one["Status"] == "active"]
        assert key["CheckDue"] is by_name[name]
    return by_name


def reminded(desk: Desk) -> list[str]:
    """To whom a mail about a check goes now."""
    desk.world.mail.sent.clear()
    desk.world.platform.background.expiry()()
    desk.world.clock.advance(seconds=GATHER.total_seconds())
    desk.world.deliver_mail()
    return sorted(
        mail.to.partition("@")[0] for mail in desk.world.mail.sent if "signerd register" in mail.text
    )


def test_a_payment_or_a_fresh_challenge_shows_that_a_device_signs_and_others_are_reminded(desk: Desk) -> None:
    ask_every(desk, 6)
    desk.later(days=SIX_MONTHS - 3)
    assert (due(desk), reminded(desk)) == (dict.fromkeys(desk.signers, False), [])
    desk.approve("alice", ok(desk.propose(20_000))["psbt_id"])
    desk.decline("carol", ok(desk.propose(20_001))["psbt_id"])
    desk.later(days=4)
    assert due(desk) == {"alice": False, "bob": True, "carol": True}, "a decline is no signature"
    assert reminded(desk) == ["bob", "carol"]
    desk.later(days=1)
    assert reminded(desk) == [], "not every day"
    forged = register_key(desk.signers["bob"], seed(90), replace=False)
    assert forged.status_code == 409, "another device shows nothing of this one"
    ok(register_key(desk.signers["bob"], desk.devices["bob"]))
    assert desk.world.audit_actions()[-1] == "KEY_CHECKED"
    assert due(desk) == {"alice": False, "bob": False, "carol": True}
    desk.later(seconds=REMIND_AGAIN.total_seconds())
    assert reminded(desk) == ["carol"], "once in a week"
    ask_every(desk, 0)
    desk.later(days=SIX_MONTHS * 5)
    assert (due(desk), reminded(desk)) == (dict.fromkeys(desk.signers, False), [])


def test_another_workspace_asks_nobody_of_this_one_and_a_revoked_key_is_not_asked(desk: Desk) -> None:
    other = desk.world.organisation("Umbrella", "eve@example.com")
    eve = desk.world.as_user("eve@example.com")
    ok(eve.post("/api/v1/update-workspace", {"workspace_id": other.workspace_id, "key_check_months": 1}))
    desk.later(days=60)
    assert due(desk) == dict.fromkeys(desk.signers, False)
    ask_every(desk, 1)
    (key,) = ok(desk.signers["carol"].get("/api/v1/keys"))
    ok(desk.signers["carol"].post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "lost"}))
    assert reminded(desk) == ["alice", "bob"]


@pytest.mark.parametrize("months", [-1, 25, "6", 1.5])
def test_months_beyond_the_bounds_are_refused(desk: Desk, months: object) -> None:
    assert desk.tell("update-workspace", key_check_months=months).status_code == 422
