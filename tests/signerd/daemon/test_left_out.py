"""One bad entry in a list of the platform's is left out by its name and told; the others go on. So they do
where numbers, texts and lists are at their extremes, and where a list has no end (F).
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.account import platform as platform_module
from signerd.account.follower import LEARN_EVERY_SECONDS
from signerd.account.wire import MOST_WORKSPACES
from signerd.core.states import State
from signerd.daemon import vaults
from signerd.journal import Journal, quota
from tests.support.daemons import daemon_at, is_well, notices, submits, until, until_state
from tests.support.desk import snapshot_of, spend
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio
HONEST = snapshot_of(spend())


def bad(platform: FakePlatform, **fields: Any) -> dict[str, Any]:
    return {**platform._shape(replace(HONEST, psbt_id="p-9")), **fields}


def bad_ones(platform: FakePlatform) -> list[dict[str, Any]]:
    """A status and a kind of the future, a text for a figure, a vault's id that is none, a missing field."""
    odd = {"status": "HALF_SIGNED", "tx_type": "swap", "fee_sats": "1,000", "vault_id": "../v"}
    entries = [bad(platform, psbt_id=f"bad-{name}", **{name: value}) for name, value in odd.items()]
    missing = bad(platform, psbt_id="bad-missing")
    del missing["vault_id"]
    return [*entries, missing]


async def test_f_one_bad_proposal_is_left_out_by_its_id_and_the_others_are_signed(prepared, platform, bridge):
    platform.bad_proposals = bad_ones(platform)
    ids = {entry["psbt_id"] for entry in platform.bad_proposals}
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        told = " ".join(await notices(daemon, "left out"))
        assert all(f"proposal {psbt_id} is left out" in told for psbt_id in ids)
        assert {record.psbt_id for record in daemon.journal.records()} == {"p-1"}
        await submits(daemon, "p-1")
        platform.bad_proposals = []
        platform.proposals["p-2"] = snapshot_of(spend(n_inputs=3), "p-2")
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        assert await notices(daemon, "left out") == []
        # Each was told once, however often the list came.
        assert [line.kind for psbt_id in ids for line in daemon.feed.since(0, psbt_id)] == [
            "attention"
        ] * len(ids)


async def test_f_an_id_that_is_none_is_not_taken(prepared, platform, bridge):
    ids = ["../p", "p 1", "p\x1b[2J", "", "x" * 65, "p-2"]
    platform.proposals = {psbt_id: replace(HONEST, psbt_id=psbt_id) for psbt_id in ids}
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        told = " ".join(await notices(daemon, "left out"))
        assert [f"entry {number}" in told for number in range(1, 7)] == [True] * 5 + [False]
        assert "\x1b" not in told
        assert len(daemon.journal.records()) == 1


async def test_f_a_known_one_that_turns_bad_is_asked_about_beside_the_others(prepared, platform, bridge):
    """It was signed, so that no list has it: each is asked for by its id, and one answer makes no sense."""
    other = snapshot_of(spend(n_inputs=3), "p-2")
    platform.proposals["p-2"] = other
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        for psbt_id, acknowledged in (("p-1", ()), ("p-2", ("conflict",))):
            await until_state(daemon, psbt_id, State.WAITING_PERSON)
            await submits(daemon, psbt_id, *acknowledged)

        def odd(request: httpx.Request) -> httpx.Response | None:
            single = request.url.params.get("psbt_id") == "p-1"
            return httpx.Response(200, json=bad(platform, psbt_id="p-1", status="ODD")) if single else None

        platform.after = odd
        platform.proposals["p-2"] = replace(other, status=ProposalStatus.CONFIRMED, confirmations=1)
        await until_state(daemon, "p-2", State.CONFIRMED)
        assert any("proposal p-1 is left out" in note for note in await notices(daemon, "left out"))
        assert daemon.journal.record("p-1").state is State.SUBMITTED


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (
            {"Role": {"RoleId": 9, "Name": "R", "Description": "", "Perm": [{"UID": 99, "RuleName": "NEW"}]}},
            0,
        ),
        ({"Role": "of another version"}, 0),
        ({"WorkspaceInfo": {"uid": 9, "name": "Signet", "description": "", "net": "signet"}}, 1),
        ({"WorkspaceInfo": None}, 1),
    ],
    ids=["a new permission", "another role", "a new network", "nothing"],
)
async def test_f_a_workspace_that_this_version_does_not_know_hides_no_other(
    prepared, platform, bridge, odd, told
):
    """A new permission of ours, even: roles are the platform's, and a signer signs under any."""
    user = platform._user()
    workspaces = user["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"]
    workspaces.append({**workspaces[0], **odd})
    if "Role" in odd:
        del workspaces[0]
    platform.after = lambda r: httpx.Response(200, json=user) if "get-user-info" in r.url.path else None
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert len(await notices(daemon, "left out")) == told
        assert len(daemon.follower.workspaces) == 1


async def test_f_a_mistake_of_ours_about_one_proposal_is_told_tried_again_and_ends_nothing(
    prepared, platform, bridge, monkeypatch
):
    """Or about a vault: whatever passes the bounds and should not have."""
    wrong = {"p-1", "vault-9"}

    def sometimes(real: Callable[[Journal, Any], object]) -> Callable[[Journal, Any], object]:
        def taken(journal: Journal, shown: Any) -> object:
            if {getattr(shown, "psbt_id", None), shown.vault_id} & wrong:
                raise RecursionError("nobody foresaw it")
            return real(journal, shown)

        return taken

    for name in ("poll", "learn"):
        monkeypatch.setattr(Journal, name, sometimes(getattr(Journal, name)))
    platform.proposals["p-2"] = replace(HONEST, psbt_id="p-2")
    platform.bad_vaults = [{**platform._vault(), "id": "vault-9"}]
    elapsed = [0.0]
    async with daemon_at(prepared, platform, bridge, clock=lambda: elapsed[0]) as daemon:

        def is_well_a_minute_later() -> bool:
            elapsed[0] += LEARN_EVERY_SECONDS
            return not daemon.troubles.sentences()

        await until_state(daemon, "p-2", State.WAITING_PERSON)
        told = " ".join(await notices(daemon, "left out"))
        assert "proposal p-1 is left out" in told
        assert "vault vault-9 is left out" in told
        wrong.clear()
        # Though the platform's list does not change.
        await until(is_well_a_minute_later)
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert await notices(daemon, "left out") == []


async def test_f_a_mistake_in_the_client_is_that_calls_failure(daemon, platform, monkeypatch):
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    sound = platform_module.call
    left = [3]

    def sometimes(*args: Any, **given: Any) -> object:
        if left[0]:
            left[0] -= 1
            raise ZeroDivisionError("nobody foresaw it")
        return sound(*args, **given)

    monkeypatch.setattr(platform_module, "call", sometimes)
    await submits(daemon, "p-1")
    assert left == [0]
    assert len(platform.signatures("p-1")) == 1


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
        await until(lambda: daemon.follower.rounds > 0 and len(asked) > 3, patience=60)
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
        assert [workspace.id for workspace in daemon.follower.workspaces] == [1]
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
