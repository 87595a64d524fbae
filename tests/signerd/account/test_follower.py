"""Asking for what awaits the signer: a tag that spares the list, a long poll where one is wanted, workspaces
side by side. Tokens are learnt before a proposal is judged, within bounds, and without believing a word
(S12, S13).
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from custody.schemas.proposals import ProposalStatus
from firmware_bridge import DeviceState
from multisig import Network
from signerd.account import follower
from signerd.account.follower import FOLLOWED_A_ROUND
from signerd.core.events import JudgeAgain, News
from signerd.core.rules.reading import written_rules
from signerd.core.states import State
from signerd.core.tokens import PublishedToken
from signerd.daemon.service import Daemon
from signerd.errors import NeedsAcknowledgement, StaleApproval
from signerd.journal import quota
from signerd.journal.proposals import RECONSIDERED
from tests.support.daemons import daemon_at, make_config, prepare, some_rounds, submits, until, until_state
from tests.support.desk import open_journal, snapshot_of, spend
from tests.support.examples import examples
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, PASSWORD, URL, FakePlatform
from tests.support.payments import spend_of
from tests.support.tokens import GOLD, call, gold, published, token_snapshot

pytestmark = pytest.mark.anyio
LIST = "/api/v1/psbt"
# What it says of a proposal changes with the day, so that proposals are judged anew every minute.
PER_DAY = '[ask]\nabove_per_day = "1 BTC"\n'


@dataclass
class WatchedPlatform(FakePlatform):
    """Every call for the list of what awaits the signer, and for a single proposal."""

    lists: list[httpx.Request] = field(default_factory=list)
    singles: list[str] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == LIST and "psbt_id" in request.url.params:
            self.singles.append(request.url.params["psbt_id"])
        elif request.url.path == LIST and "awaiting" in request.url.params:
            self.lists.append(request)
        return super().answer(request)


@pytest.fixture
def watched(tmp_path: Path) -> WatchedPlatform:
    return WatchedPlatform(tmp_path, {"p-1": snapshot_of(spend())})


async def test_a_long_poll_is_short_while_something_is_followed_by_itself(prepared, watched):
    config = make_config(platform={"url": URL, "long_poll_seconds": 50})
    async with daemon_at(prepared, watched, FakeBridge(), config=config) as daemon:
        await some_rounds(daemon)
        assert {request.headers["prefer"] for request in watched.lists[1:]} == {"wait=50"}
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        # It leaves the list, and is not over: no long poll tells what becomes of it.
        watched.proposals["p-1"] = replace(watched.proposals["p-1"], status=ProposalStatus.BROADCASTING)
        await until(lambda: watched.lists[-1].headers["prefer"] == "wait=20")


SIZES = st.lists(st.integers(1, 6), min_size=5, max_size=12)


@settings(
    max_examples=examples(12),
    # Each is a whole daemon: what is drawn is short as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(sizes=SIZES, most=st.sampled_from([4, 1, 12, 1_000]), later=st.integers(0, 5))
def test_s34_a_round_judges_so_many_inputs_and_outputs_and_the_rest_is_asked_for_again(
    tmp_path_factory, sizes: list[int], most: int, later: int
) -> None:
    """What waits at the start, and what comes ``later``: one goes beyond the bound at most."""
    state, folder = tmp_path_factory.mktemp("state"), tmp_path_factory.mktemp("platform")
    state.chmod(0o700)
    prepare(state)
    waiting, parts = {}, {}
    for number, size in enumerate(sizes):
        psbt = spend_of(range(10 * number, 10 * number + size), (("shop", 50_000 + number),))
        waiting[f"p-{number}"] = snapshot_of(psbt, f"p-{number}")
        parts[f"p-{number}"] = size + 2
    platform = WatchedPlatform(folder)
    platform.proposals = dict(islice(waiting.items(), later, None))
    judged: list[int] = []

    def count(request: httpx.Request) -> None:
        if "awaiting" in request.url.params:
            judged.append(sum(parts[record.psbt_id] for record in daemons[0].journal.records()))

    async def life() -> None:
        async with daemon_at(state, platform, FakeBridge(), sign_in=False) as daemon:
            daemons.append(daemon)
            await daemon.sign_in(EMAIL, PASSWORD)
            await until(lambda: len(daemon.journal.records()) == len(platform.proposals))
            platform.proposals = waiting
            await until(lambda: len(daemon.journal.records()) == len(waiting))
            judged.append(sum(parts.values()))

    daemons: list[Daemon] = []
    platform.before = count
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(follower, "MOST_PARTS_A_ROUND", most)
        asyncio.run(life())
    assert all(after - before <= most + max(parts.values()) for before, after in pairwise(judged)), judged


# --- several workspaces -------------------------------------------------------------------------------------


def several(*numbers: int) -> Callable[[httpx.Request], httpx.Response | None]:
    """The account sees these workspaces; number 1 has the proposals, the others have none."""

    def hook(platform: FakePlatform, request: httpx.Request) -> httpx.Response | None:
        if request.url.path == "/api/v1/get-user-info":
            user = platform._user()
            workspaces = user["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"]
            (one,) = workspaces
            workspaces[:] = [
                one | {"WorkspaceInfo": one["WorkspaceInfo"] | {"uid": number}} for number in numbers
            ]
            return httpx.Response(200, json=user)
        if request.url.params.get("workspace_id", "1") != "1":
            return httpx.Response(200, content=json.dumps([]))
        return None

    return hook


def asked_of(watched: WatchedPlatform) -> set[str]:
    return {request.url.params["workspace_id"] for request in watched.lists}


async def test_a_workspace_that_comes_or_goes_is_noticed(prepared, watched):
    hooks = [several(1)]
    watched.before = lambda request: hooks[-1](watched, request)
    async with daemon_at(prepared, watched, FakeBridge()) as daemon:
        await until(lambda: asked_of(watched) == {"1"})
        hooks.append(several(1, 2))
        await until(lambda: asked_of(watched) == {"1", "2"})
        hooks.append(several(2))
        await until(lambda: [workspace.id for workspace in daemon.follower.workspaces] == [2])
        rounds = len(watched.lists)
        await until(lambda: len(watched.lists) > rounds + 4)
        late = {request.url.params["workspace_id"] for request in watched.lists[rounds + 2 :]}
        assert late == {"2"}


async def test_each_workspace_takes_its_own_turns_in_what_is_asked_for_one_by_one(prepared, watched):
    """Else the one with few begins the other anew each time, and what became of its last is never heard."""
    few, many = ["z"], [f"a-{number:02}" for number in range(FOLLOWED_A_ROUND + 2)]
    with open_journal(prepared) as journal:
        for workspace_id, ids in ((1, few), (2, many)):
            for psbt_id in ids:
                snapshot = replace(snapshot_of(b"garbage!", psbt_id), workspace_id=workspace_id)
                journal.poll(snapshot)
                watched.proposals[psbt_id] = snapshot
                watched.not_ours.add(psbt_id)
    hook = several(1, 2)
    watched.before = lambda request: hook(watched, request)
    async with daemon_at(prepared, watched, FakeBridge()):
        await until(lambda: set(watched.singles) >= {*few, *many})


async def test_f_what_is_forgotten_while_others_are_judged_ends_no_task(prepared, tmp_path, monkeypatch):
    """A flood from another workspace makes room for itself between two proposals that are judged anew, or
    matched with a device.
    """
    async with daemon_at(prepared, FakePlatform(tmp_path), FakeBridge(), sign_in=False) as daemon:
        journal, runner = daemon.journal, daemon.runner
        journal.rules = written_rules(PER_DAY, Network.REGTEST).resolved({})
        shown = [replace(snapshot_of(spend()), psbt_id=f"p-{number}") for number in (1, 2, 3)]
        for snapshot in shown[:2]:
            journal.poll(snapshot)
        listed = journal.ids(RECONSIDERED)
        assert listed == ("p-1", "p-2")

        def forget() -> None:
            journal.poll(replace(shown[1], status=ProposalStatus.EXPIRED))
            stored = journal._db.execute(quota._STORED).fetchone()
            monkeypatch.setattr(quota, "MOST_WORK", stored["work"])
            journal.poll(shown[2])

        real = journal.reconsider

        def judged(psbt_id: str) -> tuple[News, ...]:
            found = real(psbt_id)
            if journal.is_followed("p-2"):
                forget()
            return found

        monkeypatch.setattr(journal, "reconsider", judged)
        runner.announce((JudgeAgain(),))
        await until(lambda: not journal.is_followed("p-2") and not runner._judging_due.is_set())
        assert [real(psbt_id) for psbt_id in listed] == [(), ()]
        assert not daemon.task.done()
        await runner._ask_if_ready(asyncio.TaskGroup(), "p-2")


async def test_s12_what_is_not_proven_is_refused_and_shown_in_the_decimals_of_its_token_once_it_is(
    prepared, tmp_path
):
    """What proves nothing is `journal/test_books.py`'s."""
    proposals = {"t-1": token_snapshot(call()), "p-1": snapshot_of(spend())}
    platform = FakePlatform(tmp_path, proposals, published={1: published(gold(decimals=8))})
    # It shows a token's data whole.
    bridge = FakeBridge(model="Trezor Model T", firmware="2.8.9")
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "t-1", State.REFUSED)
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        view = await daemon.proposal("t-1")
        assert [c.name for c in view.checks if c.outcome == "refuse"] == ["token-known"]
        (data,) = view.money.data
        assert not data.token.proven
        assert "1250 raw units of tokens that this machine does not know" in data.token.sentence
        assert any("t-1" in note and "not proven" in note for note in (await daemon.status()).notes)
        platform.published = {1: published(GOLD)}
        await until_state(daemon, "t-1", State.WAITING_PERSON)
        await until(lambda: not any("not proven" in line for line in daemon.troubles.sentences()))
        (data,) = (await daemon.proposal("t-1")).money.data
        assert data.token.sentence.startswith("Send 12.50 GOLD tokens to ")
        # Known for good: nothing of it is asked for again.
        asked = platform.requests.count(("GET", "/api/v1/contract"))
        await submits(daemon, "t-1")
        assert platform.requests.count(("GET", "/api/v1/contract")) == asked


async def test_s28_the_device_that_is_there_says_what_is_held(prepared, tmp_path):
    """A Trezor One is exchanged for a device with the same seed that shows all, while the call waits."""
    platform = FakePlatform(tmp_path, {"t-1": token_snapshot(call())}, published={1: published(GOLD)})
    bridge = FakeBridge(model="Trezor One", firmware="1.14.1")
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "t-1", State.WAITING_PERSON)
        await until(lambda: daemon.journal.review_context(token_snapshot(call())).screen is not None)
        view = await daemon.proposal("t-1")
        (data,) = view.money.data
        assert view.to_acknowledge == ("token-not-on-screen",)
        assert data.token.on_screen == data.token.hex[:62]
        assert data.token.not_on_screen == ("contract", "amount", "recipient")
        with pytest.raises(NeedsAcknowledgement):
            await daemon.approve("t-1", view.digest)
        bridge.becomes(DeviceState.ABSENT)
        bridge.model, bridge.firmware = "Trezor Model T", "2.8.9"
        bridge.becomes(DeviceState.READY)
        model = "Trezor Model T 2.8.9"
        await until(lambda: daemon.journal.review_context(token_snapshot(call())).screen.name == model)
        shown = await daemon.proposal("t-1")
        (data,) = shown.money.data
        assert (shown.to_acknowledge, data.token.on_screen) == ((), data.token.hex)
        with pytest.raises(StaleApproval):
            await daemon.approve("t-1", view.digest, frozenset({"token-not-on-screen"}))
        await daemon.approve("t-1", shown.digest)
        await until_state(daemon, "t-1", State.SUBMITTED)


async def test_f_tokens_have_an_end_and_that_is_an_alarm(prepared, tmp_path, monkeypatch):
    """They are kept for good, and an attacker can prove any number of tokens of their own."""
    # As if all but two of them were there.
    monkeypatch.setitem(quota._KINDS, "tokens", f"SELECT count(*) + {quota.MOST - 2} FROM bytecodes")
    tokens = {n: gold(ticker=f"GOLD{n}") for n in (1, 2, 3)}
    proposals = {
        f"t-{n}": token_snapshot(token.deployment, psbt_id=f"t-{n}", contract_uid=n)
        for n, token in tokens.items()
    }
    shown = {n: PublishedToken(token.blob) for n, token in tokens.items()}
    async with daemon_at(
        prepared, FakePlatform(tmp_path, proposals, published=shown), FakeBridge()
    ) as daemon:
        await until_state(daemon, "t-3", State.REFUSED)
        known = [daemon.journal.bytecode(token.deployment) for token in tokens.values()]
        assert known == [tokens[1], tokens[2], None]
        (alarm,) = daemon.feed.since(0, "platform")
        assert alarm.kind == "alarm"
        assert "tokens, which is the most" in alarm.text
