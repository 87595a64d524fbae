"""F: what a platform answers that is no proposal to sign, to a whole daemon and to the client: numbers that
no column holds, bodies that grow while they are read; and that all else goes on.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from signerd.account.wire import UNFORESEEN
from tests.support.daemons import daemon_at, is_well, prepare
from tests.support.desk import snapshot_of, spend
from tests.support.examples import drawn
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.processes import said

HONEST = snapshot_of(spend())


# --- one number ---------------------------------------------------------------------------------------------


def in_vault(fake: FakePlatform, changed: dict[str, Any]) -> None:
    fake.bad_vaults = [{**fake._vault(), "id": "vault-9", **changed}]


def in_proposal(fake: FakePlatform, changed: dict[str, Any]) -> None:
    fake.bad_proposals = [{**fake._shape(replace(HONEST, psbt_id="p-9")), **changed}]


def in_workspace(fake: FakePlatform, changed: dict[str, Any]) -> None:
    """A workspace beside ours, with a vault and without a proposal."""
    user = fake._user()
    listed = user["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"]
    listed.insert(0, {"WorkspaceInfo": {**listed[0]["WorkspaceInfo"], **changed}})

    def answer(request: httpx.Request) -> httpx.Response | None:
        if request.url.path == "/api/v1/get-user-info":
            return httpx.Response(200, json=user)
        if request.url.params.get("workspace_id", "1") == "1":
            return None
        vaults = [{**fake._vault(), "id": "vault-9"}] if request.url.path == "/api/v1/list-wallets" else []
        return httpx.Response(200, json=vaults)

    fake.after = answer


WIDEST = 2**63 - 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("place", "field", "value", "is_left_out"),
    [
        (in_proposal, "contract_uid", WIDEST, False),
        (in_vault, "m", WIDEST + 1, True),
        (in_proposal, "fee_sats", WIDEST + 1, True),
        (in_proposal, "confirmations", -WIDEST - 2, True),
        (in_proposal, "collected_signatures", 2**64, True),
        (in_workspace, "uid", WIDEST + 1, True),
    ],
)
async def test_f_a_number_that_no_column_holds_is_one_entrys_fault(
    place: Callable[[FakePlatform, dict[str, Any]], None],
    field: str,
    value: int,
    is_left_out: bool,
    tmp_path: Path,
) -> None:
    """What the daemon says of it, once it has served the honest ones."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    prepare(state)
    fake = FakePlatform(tmp_path, {"p-1": HONEST})
    place(fake, {field: value})
    async with daemon_at(state, fake, FakeBridge()) as daemon:
        await is_well(daemon, fake)
        notes = [note for note in (await daemon.status()).notes if "is left out" in note]
    assert bool(notes) is is_left_out
    assert not any(UNFORESEEN in note for note in notes)


# --- a body that grows --------------------------------------------------------------------------------------

SHELLS = ("waiting", "awaiting")
# An answer of 64 MiB is held once as it comes and once whole.
MOST_MEGABYTES = 200


# By rule (`tests.support.bomb`), the megabytes that it has once it is read, and the error's name.
BODIES = {
    "a megabyte of blanks around an empty list": ("blanks", 1, "None"),
    "half a megabyte of gzip that unfolds to five hundred": ("packed", 500, "BadAnswer"),
    "four times as much as an answer may have": ("endless", 256, "BadAnswer"),
    "as many values as fit into an answer": ("values", 60, "BadAnswer"),
}


@pytest.mark.parametrize(
    ("body", "shell"), [(name, shell) for name in BODIES for shell in drawn(SHELLS, 1, of=name)]
)
def test_f_an_answer_that_grows_is_refused_in_bounded_memory(body: str, shell: str) -> None:
    rule, size, outcome = BODIES[body]
    command = [sys.executable, "-m", "tests.support.bomb", rule, str(size), shell]
    error, megabytes = said(command, seconds=240).split()
    assert error == outcome
    assert int(megabytes) < MOST_MEGABYTES
