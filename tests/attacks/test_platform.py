"""F: the corpus of answers, to a whole daemon and to the client: what one entry or body is, and that all else
goes on.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from signerd.account.wire import UNFORESEEN
from tests.attacks.cases import Entry, entries
from tests.attacks.guards import switch_off
from tests.support.daemons import daemon_at, is_well, prepare
from tests.support.desk import snapshot_of, spend
from tests.support.examples import drawn
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform

NUMBERS = entries("numbers")
GUARDED = tuple(entry for entry in NUMBERS if entry.off)
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


async def told_of(entry: Entry, folder: Path) -> str | None:
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
    return "unforeseen" if any(UNFORESEEN in note for note in notes) else "left-out"


@pytest.mark.anyio
@pytest.mark.parametrize("entry", NUMBERS, ids=str)
async def test_f_a_number_that_no_column_holds_is_one_entrys_fault(entry: Entry, tmp_path: Path) -> None:
    assert await told_of(entry, tmp_path) == entry.outcome


@pytest.mark.anyio
@pytest.mark.parametrize("entry", GUARDED, ids=str)
async def test_f_without_its_bound_a_number_is_taken_or_fails_in_the_journal(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_off(monkeypatch, entry.off)
    assert await told_of(entry, tmp_path) == entry.then != entry.outcome


# --- a body that grows --------------------------------------------------------------------------------------

BODIES = entries("bodies")
BOMBS = tuple(entry for entry in BODIES if entry.off)
SHELLS = ("waiting", "awaiting")
# An answer of 64 MiB is held once as it comes and once whole.
MOST_MEGABYTES = 200
# Of the bomb, and of every bound: what is read without a guard must not take the machine's memory.
SHARE = 0.1


def read(entry: Entry, shell: str, share: float = 1, guard: str = "") -> tuple[str | None, int]:
    """The error's name, and the megabytes that the client took."""
    size = str(max(1, int(entry.megabytes * share)))
    command = [sys.executable, "-m", "tests.support.bomb", entry.rule, size, shell, str(share), guard]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    error, megabytes = done.stdout.split()
    return None if error == "None" else error, int(megabytes)


@pytest.mark.parametrize(
    ("entry", "shell"),
    [(entry, shell) for entry in BODIES for shell in drawn(SHELLS, 1, of=str(entry))],
    ids=str,
)
def test_f_an_answer_that_grows_is_refused_in_bounded_memory(entry: Entry, shell: str) -> None:
    error, megabytes = read(entry, shell)
    assert error == entry.outcome
    assert megabytes < MOST_MEGABYTES


# The waiting client reads no compressed answer: nothing unfolds there, whatever is off.
GROWING = [
    (entry, shell) for entry, shell in product(BOMBS, SHELLS) if (entry.rule, shell) != ("packed", "waiting")
]


@pytest.mark.parametrize(("entry", "shell"), drawn(GROWING, 2, of="bombs"), ids=str)
def test_f_without_its_guard_it_would_take_what_it_grows_to(entry: Entry, shell: str) -> None:
    """A bomb of a tenth, within bounds of a tenth: that the test above would notice."""
    error, megabytes = read(entry, shell, SHARE)
    assert error == entry.outcome
    assert megabytes < MOST_MEGABYTES * SHARE
    error, megabytes = read(entry, shell, SHARE, entry.off)
    assert error == entry.then
    assert megabytes >= MOST_MEGABYTES * SHARE
