"""F: the corpus of answers, to a whole daemon and to the client: what one entry or body is, and that all else
goes on.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from signerd.account.wire import UNFORESEEN
from tests.attacks.recipes.platform import BODIES, LEFT_OUT, NUMBERS, Body, Number
from tests.support.daemons import daemon_at, is_well, prepare
from tests.support.desk import snapshot_of, spend
from tests.support.examples import drawn
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

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


PLACES: dict[str, Callable[[FakePlatform, dict[str, Any]], None]] = {
    "vault": in_vault,
    "proposal": in_proposal,
    "workspace": in_workspace,
}


async def told_of(entry: Number, folder: Path) -> str | None:
    """What the daemon says of it, once it has served the honest ones."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    prepare(state)
    fake = FakePlatform(folder, {"p-1": HONEST})
    PLACES[entry.of](fake, {entry.field: entry.value})
    async with daemon_at(state, fake, FakeBridge()) as daemon:
        await is_well(daemon, fake)
        notes = [note for note in (await daemon.status()).notes if "is left out" in note]
    if not notes:
        return None
    assert not any(UNFORESEEN in note for note in notes)
    return LEFT_OUT


@pytest.mark.anyio
@pytest.mark.parametrize("entry", NUMBERS, ids=str)
async def test_f_a_number_that_no_column_holds_is_one_entrys_fault(entry: Number, tmp_path: Path) -> None:
    assert await told_of(entry, tmp_path) == entry.outcome


# --- a body that grows --------------------------------------------------------------------------------------

SHELLS = ("waiting", "awaiting")
# An answer of 64 MiB is held once as it comes and once whole.
MOST_MEGABYTES = 200


def read(entry: Body, shell: str) -> tuple[str | None, int]:
    """The error's name, and the megabytes that the client took."""
    command = [sys.executable, "-m", "tests.support.bomb", entry.rule, str(entry.megabytes), shell]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    error, megabytes = done.stdout.split()
    return None if error == "None" else error, int(megabytes)


@pytest.mark.parametrize(
    ("entry", "shell"),
    [(entry, shell) for entry in BODIES for shell in drawn(SHELLS, 1, of=str(entry))],
    ids=str,
)
def test_f_an_answer_that_grows_is_refused_in_bounded_memory(entry: Body, shell: str) -> None:
    error, megabytes = read(entry, shell)
    assert error == entry.outcome
    assert megabytes < MOST_MEGABYTES
