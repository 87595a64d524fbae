"""Numbers, texts and lists of the platform's at their extremes, and lists without an end: the daemon goes on
(F).
"""

import json
from dataclasses import replace

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.account.wire import MOST_WORKSPACES
from signerd.core.states import State
from signerd.daemon import vaults
from signerd.journal import quota
from tests.support.daemons import daemon_at, is_well, submits, until, until_state
from tests.support.desk import snapshot_of, spend

pytestmark = pytest.mark.anyio
HONEST = snapshot_of(spend())
# As JSON writes them: half a character, and a number that Python refuses to read.
ODD = (r'"\ud800"', "9" * 5_000, "NaN", "1e999")


async def test_f_a_text_or_list_without_measure_hides_no_other_vault(prepared, platform, bridge):
    without_measure = {"name": "n" * 100_000, "descriptor": "d" * 1_000_000, "signers": [{}] * 100_000}
    platform.bad_vaults = [
        {**platform._vault(), "id": f"vault-{field}", field: value}
        for field, value in without_measure.items()
    ]
    async with daemon_at(prepared, platform, bridge) as daemon:
        await is_well(daemon, platform)
        assert [vault.pinned for vault in await vaults.vaults(daemon)] == [True]
        notes = " ".join((await daemon.status()).notes)
        assert [f"vault vault-{field} is left out" in notes for field in without_measure] == [True] * 3


async def test_f_what_one_entry_writes_is_no_fault_of_the_list(prepared, platform, bridge):
    bad = ", ".join(f'{{"id": "v-{n}", "psbt_id": "q-{n}", "n": {odd}}}' for n, odd in enumerate(ODD))

    def with_it(request: httpx.Request) -> httpx.Response | None:
        lists = {"/api/v1/psbt", "/api/v1/list-wallets"}
        honest = platform._route(request)
        if request.url.path not in lists or "psbt_id" in request.url.params or not honest.is_success:
            return None
        rest = "".join(f", {json.dumps(each)}" for each in honest.json())
        return httpx.Response(200, content=f"[{bad}{rest}]".encode(), headers=honest.headers)

    platform.after = with_it
    async with daemon_at(prepared, platform, bridge) as daemon:
        await is_well(daemon, platform)
        notes = " ".join((await daemon.status()).notes)
        assert [f"proposal q-{n} is left out" in notes for n in range(len(ODD))] == [True] * len(ODD)


async def test_f_a_list_of_proposals_without_an_end_comes_to_one(prepared, platform, bridge, monkeypatch):
    """Every page is full of new ones and has another behind it."""
    monkeypatch.setattr("signerd.account.platform.MOST_LISTED", 60)
    monkeypatch.setattr("signerd.account.platform.PAGE", 20)
    asked: list[str | None] = []
    shape = platform._shape(HONEST)

    def endless(request: httpx.Request) -> httpx.Response | None:
        if request.url.path != "/api/v1/psbt" or "psbt_id" in request.url.params:
            return None
        asked.append(after := request.url.params.get("after"))
        first = 1 if after is None else int(after.removeprefix("p-")) + 1
        return httpx.Response(200, json=[{**shape, "psbt_id": f"p-{n}"} for n in range(first, first + 20)])

    async with daemon_at(prepared, platform, bridge, sign_in=False) as daemon:
        platform.before = lambda request: endless(request) if "authorization" in request.headers else None
        await daemon.sign_in("alice@example.org", "correct horse battery")
        await until(lambda: daemon.follower.state.rounds > 0 and len(asked) > 3, patience=60)
        assert asked[:3] == [None, "p-20", "p-40"]
        assert asked[3] is None
        assert len(daemon.journal.records()) == 60
        assert any("is read so far" in note for note in (await daemon.status()).notes)


async def test_f_of_workspaces_without_number_the_first_are_followed(prepared, platform, bridge):
    user = platform._user()
    entries = user["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"]
    info = entries[0]["WorkspaceInfo"]
    entries += [{"WorkspaceInfo": {**info, "uid": n + 2, "net": "mainnet"}} for n in range(5_000)]
    entries += [{"WorkspaceInfo": {**info, "name": f"again {n}"}} for n in range(10)]
    platform.after = lambda r: httpx.Response(200, json=user) if "get-user-info" in r.url.path else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert [workspace.id for workspace in daemon.follower.state.workspaces] == [1]
        _user_id, listed = await daemon.platform.user()
        assert len(listed.items) == MOST_WORKSPACES
        assert any("workspaces, and is read so far" in note for note in (await daemon.status()).notes)


async def test_f_a_platform_that_floods_is_an_alarm_and_what_was_approved_goes_on(
    daemon, platform, monkeypatch
):
    monkeypatch.setattr(quota, "MOST", 10)
    await submits(daemon, "p-1")
    platform.proposals |= {f"q-{n:02}": replace(HONEST, psbt_id=f"q-{n:02}") for n in range(40)}
    await until(lambda: bool(daemon.feed.since(0, "platform")))
    await until(
        lambda: any("q-39" in told for told in daemon.troubles._standing.get("proposals of workspace 1", {}))
    )
    (line,) = daemon.feed.since(0, "platform")
    assert line.kind == "alarm"
    assert "floods this machine" in line.text
    assert len(daemon.journal.records()) == 11  # The signed one counts for nothing.
    confirmed = replace(platform.proposals["p-1"], status=ProposalStatus.CONFIRMED, confirmations=6)
    platform.proposals = {"p-1": confirmed}
    await until_state(daemon, "p-1", State.CONFIRMED)
