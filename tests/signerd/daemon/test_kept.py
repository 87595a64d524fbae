"""A signature that the platform refuses for now, where much happens before it is tried again."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from itertools import count

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.account import follower
from signerd.backup.container import unpack
from signerd.backup.restoring import restore
from signerd.backup.writing import make_backup
from signerd.core.states import State
from signerd.journal.chain import utc_now
from tests.support.backups import CONFIG
from tests.support.daemons import PAUSES_OF_KEPT, approve, daemon_at, hurried_sleep, until, until_state
from tests.support.desk import snapshot_of, spend
from tests.support.fake_platform import EMAIL, PASSWORD, is_whole_list, problem

pytestmark = pytest.mark.anyio

# Proposed in the place of p-1, and rejected.
ENDED_VERSION = snapshot_of(spend(fee=2_000), "p-2", replaces="p-1", status=ProposalStatus.REJECTED)


async def kept(daemon):
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    await approve(daemon, "p-1")
    await until_state(daemon, "p-1", State.KEPT)


def refuse_signatures(request):
    if "sign-psbt" in request.url.path and b'"reject"' not in request.content:
        return problem(409, "VAULT_FROZEN")
    return None


def signatures_get_lost(request):
    if "sign-psbt" in request.url.path:
        raise httpx.ConnectError("away")


async def no_second_try(seconds):
    """What is kept waits for the whole of a test."""
    await (asyncio.Event().wait() if seconds in PAUSES_OF_KEPT else hurried_sleep(seconds))


@pytest.mark.parametrize("held", [State.SIGNED, State.KEPT])
async def test_declined_after_the_backup_it_does_not_go_out_once_that_is_restored(
    prepared, platform, bridge, tmp_path, held
):
    """Of what the backup holds as signed it is not known either that it was not kept and declined since."""
    platform.before = refuse_signatures if held is State.KEPT else signatures_get_lost
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", held)
        (prepared / "config.toml").write_text(CONFIG)
        backup = unpack(make_backup(prepared, utc_now())[1])
        platform.before = refuse_signatures
        await until_state(daemon, "p-1", State.KEPT)
        await daemon.decline("p-1", "fraud")
        await until(lambda: daemon.journal.record("p-1").decline.delivered)
    platform.before = lambda _request: None
    assert restore(backup, tmp_path / "new", lambda found: found.undelivered == 1)
    async with daemon_at(tmp_path / "new", platform, bridge) as daemon:
        await until(lambda: not daemon.journal.behind())
        record = daemon.journal.record("p-1")
    assert record.state is State.WITHDRAWN
    assert "propose it anew" in record.reason
    assert [told["decision"] for told in platform.told()] == ["reject"]


@pytest.mark.parametrize("signs_in_late", [False, True])
async def test_what_replaced_it_and_ended_while_signerd_was_off_withdraws_it(
    prepared, platform, bridge, signs_in_late
):
    """The payment is pending again by then, and the platform would take it: nobody asked for that."""
    platform.before = refuse_signatures
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await kept(daemon)
    platform.before = lambda _request: None
    platform.proposals["p-2"] = ENDED_VERSION
    signs_in = not signs_in_late

    async def sleep(seconds):
        await (no_second_try if signs_in else hurried_sleep)(seconds)

    async with daemon_at(prepared, platform, bridge, sleep=sleep, sign_in=signs_in) as daemon:
        if signs_in_late:
            await for_some_turns()
            signs_in = True
            await daemon.sign_in(EMAIL, PASSWORD)
        await until_state(daemon, "p-1", State.WITHDRAWN)
        assert "p-2 was proposed in its place" in daemon.journal.record("p-1").reason
    assert platform.signatures("p-1") == []


async def test_after_an_outage_it_looks_at_the_platform_and_then_acts(daemon, platform):
    """As after a machine's sleep, which ends each pause at once: nothing else has heard of p-2 by then."""
    away = True

    def outage(request):
        if away and request.url.path.startswith("/api"):
            raise httpx.ConnectError("away")
        return problem(503, "INTERNAL") if "awaiting" in request.url.params else None

    await until_state(daemon, "p-1", State.WAITING_PERSON)
    platform.before = outage
    await approve(daemon, "p-1")
    await until(lambda: "no answer" in daemon.journal.record("p-1").reason)
    platform.proposals["p-2"] = ENDED_VERSION
    away = False
    await until_state(daemon, "p-1", State.WITHDRAWN)
    assert platform.signatures("p-1") == []


async def test_what_was_signed_while_the_machine_slept_is_sent_after_a_look_as_well(daemon, platform, bridge):
    """The person has pressed the device's button, and shut the lid: nothing is heard before it is opened."""
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    platform.before = lambda r: problem(503, "INTERNAL") if "awaiting" in r.url.params else None

    def sleep(psbt):
        daemon.journal._now = lambda: utc_now() + timedelta(hours=8)
        platform.proposals["p-2"] = ENDED_VERSION
        return psbt

    bridge.alter = sleep
    await approve(daemon, "p-1")
    await until_state(daemon, "p-1", State.WITHDRAWN, State.SUBMITTED)
    assert platform.signatures("p-1") == []


@pytest.mark.parametrize("kept_first", [True, False], ids=["kept", "lost"])
async def test_a_try_is_one_request_and_none_follows_a_no(daemon, platform, kept_first):
    """A platform that is busy answers the first after the person has said no, or is away: nothing is sent
    again.
    """
    sent = []

    def busy(request):
        if "sign-psbt" not in request.url.path or b'"reject"' in request.content:
            return None
        sent.append(request)
        if not kept_first:
            return signatures_get_lost(request)
        return problem(409, "VAULT_FROZEN") if len(sent) == 1 else problem(503, "INTERNAL")

    platform.before = busy
    await approve(daemon, "p-1")
    await until(lambda: len(sent) == 2)
    await daemon.decline("p-1", "fraud")
    platform.before = lambda _request: None
    await until(lambda: daemon.journal.record("p-1").decline.delivered)
    await for_some_turns()
    assert [told["decision"] for told in platform.told()] == ["reject"]
    assert not kept_first or len(sent) == 2


async def test_a_version_that_was_over_before_the_signature_withdraws_nothing_whatever_the_clocks_say(
    prepared, platform, bridge
):
    platform.proposals["p-2"] = replace(ENDED_VERSION, created_at="2100-01-01T00:00:00Z")
    platform.before = refuse_signatures
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await kept(daemon)
        daemon.journal.hear_anew(1)
        await daemon.follower.others.read(daemon.follower.workspaces[0])
        assert daemon.journal.record("p-1").state is State.KEPT
        platform.proposals["p-4"] = replace(ENDED_VERSION, psbt_id="p-4", created_at="2000-01-01T00:00:00Z")
        await daemon.follower.others.read(daemon.follower.workspaces[0])
        assert daemon.journal.record("p-1").state is State.WITHDRAWN


async def test_who_is_not_in_the_workspace_is_told_and_it_goes_once_they_are_again(daemon, platform):
    """Removed by mistake, or signed in with another account."""
    platform.before = refuse_signatures
    await kept(daemon)
    nowhere = platform._user() | {"OrganisationsInfo": {"Organisations": []}}
    platform.before = lambda r: httpx.Response(200, json=nowhere) if "get-user-info" in r.url.path else None
    told = "You are not in its workspace"
    await until(lambda: any(told in line.text for line in daemon.feed.since(0, "p-1")))
    await for_some_turns()
    assert sum(told in line.text for line in daemon.feed.since(0, "p-1")) == 1
    assert (daemon.journal.record("p-1").state, platform.signatures("p-1")) == (State.KEPT, [])
    platform.before = lambda _request: None
    await until_state(daemon, "p-1", State.SUBMITTED)


def unreadable(platform, request):
    """A status that this signerd does not know."""
    shown = json.loads(platform._psbt(request).content)
    named = [each | {"status": "PAUSED"} if each["psbt_id"] == "p-2" else each for each in shown]
    return httpx.Response(200, json=named)


@pytest.mark.parametrize(
    "whole_list",
    [
        lambda _platform, _request: httpx.Response(200, text="<html>maintenance</html>"),
        lambda _platform, _request: problem(403, "PERMISSION_DENIED"),
        unreadable,
    ],
    ids=["no JSON", "refused", "an entry that cannot be read"],
)
async def test_it_waits_until_the_platform_shows_all_that_came_after_it(daemon, platform, whole_list):
    platform.before = refuse_signatures
    await kept(daemon)
    platform.before = lambda request: whole_list(platform, request) if is_whole_list(request) else None
    platform.proposals["p-2"] = ENDED_VERSION
    await for_some_turns()
    assert daemon.journal.record("p-1").state is State.KEPT
    platform.before = lambda _request: None
    await until_state(daemon, "p-1", State.WITHDRAWN)
    assert platform.signatures("p-1") == []


async def test_a_list_without_an_end_ends_the_look(prepared, platform, bridge, monkeypatch):
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr("signerd.account.platform.PAGE", 1)
    shape, number = platform._shape(snapshot_of(spend())), count()

    async def endless(request):
        await asyncio.sleep(0)
        if not is_whole_list(request):
            return refuse_signatures(request) or platform.answer(request)
        return httpx.Response(200, json=[{**shape, "psbt_id": f"x-{next(number)}"}])

    transport = httpx.MockTransport(endless)
    async with daemon_at(prepared, platform, bridge, transport=transport, sleep=no_second_try) as daemon:
        await kept(daemon)
        assert not await daemon.follower.look("p-1")


async def test_an_entry_that_cannot_be_read_keeps_the_signature_here_and_is_named(prepared, platform, bridge):
    entry = httpx.Response(200, json=[{"psbt_id": "x-1"}])
    platform.before = lambda request: entry if is_whole_list(request) else refuse_signatures(request)
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await kept(daemon)
        for _ in range(2):
            assert not await daemon.follower.look("p-1")
        (line,) = [line for line in daemon.feed.since(0, "p-1") if "kept and not sent yet" in line.text]
        assert "x-1" in line.text


async def test_a_version_that_was_heard_while_it_was_on_its_way_withdraws_it(prepared, platform, bridge):
    on_its_way, lost = asyncio.Event(), asyncio.Event()

    async def slow(request):
        if "sign-psbt" in request.url.path and not lost.is_set():
            on_its_way.set()
            await lost.wait()
            raise httpx.ConnectError("lost")
        return platform.answer(request)

    async with daemon_at(prepared, platform, bridge, transport=httpx.MockTransport(slow)) as daemon:
        await approve(daemon, "p-1")
        await on_its_way.wait()
        platform.proposals["p-2"] = replace(ENDED_VERSION, status=ProposalStatus.PENDING)
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        platform.proposals["p-3"] = snapshot_of(spend(n_inputs=3), "p-3")
        await until_state(daemon, "p-3", State.WAITING_PERSON)
        await daemon.follower.others.read(daemon.follower.workspaces[0])
        platform.proposals["p-2"] = ENDED_VERSION
        await until_state(daemon, "p-2", State.WITHDRAWN)
        lost.set()
        await until_state(daemon, "p-1", State.WITHDRAWN, State.SUBMITTED)
    assert platform.signatures("p-1") == []


async def for_some_turns():
    for _turn in range(20):
        await hurried_sleep(1.0)


async def test_what_is_kept_for_a_month_ends_and_what_is_over_for_three_is_not_followed_any_more(
    prepared, platform, bridge
):
    platform.before = refuse_signatures
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await kept(daemon)
        journal = daemon.journal
        for days, state, is_followed in (
            (29, State.KEPT, True), (31, State.WITHDRAWN, True), (120, State.WITHDRAWN, True),
            (122, State.WITHDRAWN, False),
        ):  # fmt: skip
            journal._now = lambda days=days: utc_now() + timedelta(days=days)
            await for_some_turns()
            assert journal.record("p-1").state is state
            assert bool(journal.followed(1)) is is_followed
        platform.proposals["p-3"] = snapshot_of(spend(fee=3_000), "p-3")
        await until_state(daemon, "p-3", State.WAITING_PERSON)
        assert (await daemon.proposal("p-3")).to_acknowledge == ("conflict",)


SAID = {"psbt_id": "p-1", "status": "PENDING", "collected_signatures": 0, "required_signatures": 2}
TO_A_NO = {
    "recorded before": lambda: httpx.Response(
        200, json={**SAID, "status": "REJECTED", "detail": "Your decline was recorded before."}
    ),
    "did not accept it: Your role": lambda: problem(403, "PERMISSION_DENIED", "Your role may not."),
}


@pytest.mark.parametrize("words", TO_A_NO)
async def test_a_no_to_it_is_told_once_and_what_the_platform_says_to_it(prepared, platform, bridge, words):
    noes = []

    def answer(request):
        if "sign-psbt" not in request.url.path or b'"reject"' not in request.content:
            return refuse_signatures(request)
        noes.append(request)
        return TO_A_NO[words]()

    platform.before = answer
    async with daemon_at(prepared, platform, bridge, sleep=no_second_try) as daemon:
        await kept(daemon)
        await daemon.decline("p-1", "no more")
        await until(lambda: daemon.journal.record("p-1").decline.delivered)
        record = daemon.journal.record("p-1")
        assert (record.state, words in record.reason) == (State.DECLINED, True)
    assert len(noes) == 1
