"""One bad entry in a list of the platform's is left out by its name and told; the others go on (F)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.account import platform as platform_module
from signerd.account.follower import LEARN_EVERY_SECONDS
from signerd.core.states import State
from signerd.journal import Journal
from tests.support.daemons import daemon_at, notices, submits, until, until_state
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
        assert len(daemon.follower.state.workspaces) == 1


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
