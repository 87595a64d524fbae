"""What others signed before this machine looked, or without its being asked: heard, compared, and nothing
else (S27).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.core.states import State
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import NeedsAcknowledgement
from signerd.journal import quota
from tests.support.daemons import approve, daemon_at, submits, until, until_state
from tests.support.desk import VAULT, VAULT_ID, reviewed
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, problem
from tests.support.payments import shop

pytestmark = pytest.mark.anyio
LIST = "/api/v1/psbt"
ASKED = shop((2,), psbt_id="p-2")
PAID = shop(status=ProposalStatus.CONFIRMED, collected=2)


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    """The others paid the shop with p-1 before this machine ran; p-2 pays it once more."""
    return FakePlatform(tmp_path, {"p-1": PAID, "p-2": ASKED})


def whole_list(request: httpx.Request) -> bool:
    return request.url.path == LIST and not {"awaiting", "psbt_id"} & set(request.url.params)


def watched(platform: FakePlatform) -> list[str | None]:
    """From where on the whole list is asked for, each time."""
    asked: list[str | None] = []

    def hook(request: httpx.Request) -> httpx.Response | None:
        if whole_list(request) and "authorization" in request.headers:
            asked.append(request.url.params.get("after"))
        return None

    platform.before = hook
    return asked


async def held(daemon: Daemon, psbt_id: str = "p-2") -> set[str]:
    await until_state(daemon, psbt_id, State.WAITING_PERSON)
    return set((await daemon.proposal(psbt_id)).to_acknowledge)


def told(daemon: Daemon, psbt_id: str = "p-2") -> str:
    (verdict,) = [v for v in reviewed(daemon.journal, psbt_id).verdicts if v.name == "signed-by-others"]
    return verdict.sentence


@pytest.mark.parametrize(
    ("status", "collected"),
    [
        (ProposalStatus.CONFIRMED, 2),
        # Signatures that are out stay valid; and the number is the platform's word as the rest is.
        (ProposalStatus.CANCELLED, 1),
        (ProposalStatus.SIGNED, 0),
    ],
)
async def test_s27_what_others_signed_before_this_machine_ran_is_held_and_shown(
    prepared, platform, status, collected
):
    platform.proposals["p-1"] = replace(PAID, status=status, collected=collected)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == {"signed-by-others"}
        assert f"p-1 ({collected} of 2 signatures, {status.lower()} there, and never shown here)" in told(
            daemon
        )
        with pytest.raises(NeedsAcknowledgement):
            await approve(daemon, "p-2")
        # The person is not asked about the other one, and no list or message has it.
        assert {line.psbt_id for line in await daemon.proposals(ended=True)} == {"p-2"}
        assert daemon.feed.since(0, "p-1") == ()
        await submits(daemon, "p-2", "signed-by-others")


@pytest.mark.parametrize(
    "other",
    [
        shop(collected=2, status=ProposalStatus.EXPIRED, vault_id="vault-9"),
        replace(shop(), status=ProposalStatus.CANCELLED),
        shop((2,), 3_000, collected=2, status=ProposalStatus.BROADCASTING),
    ],
    ids=["of another vault", "without a signature", "of the same coins"],
)
async def test_what_cannot_be_paid_beside_it_holds_nothing(prepared, platform, other):
    platform.proposals = {"p-1": other, "p-2": ASKED}
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == set()


async def test_s27_what_never_awaits_this_signer_is_looked_at_until_others_sign_it(prepared, platform):
    platform.not_ours = {"p-1"}
    platform.proposals |= {"p-1": shop(), "p-3": shop((3,), psbt_id="p-3", status=ProposalStatus.EXPIRED)}
    asked = watched(platform)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == set()
        await approve(daemon, "p-2")
        platform.proposals["p-1"] = shop(collected=1)
        platform.proposals["p-4"] = shop((4,), psbt_id="p-4")
        assert "p-1 (1 of 2 signatures, pending there" in (await held(daemon, "p-4") and told(daemon, "p-4"))
        # The first that waits stays the first that is asked for.
        assert set(asked) == {None}


async def test_s27_no_later_word_takes_a_signature_back(prepared, platform):
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == {"signed-by-others"}
    hidden = replace(PAID, status=ProposalStatus.CANCELLED, collected=0)
    for proposals in ({"p-2": ASKED}, {"p-1": hidden, "p-2": ASKED}, {"p-1": shop(), "p-2": ASKED}):
        platform.proposals = proposals
        async with daemon_at(prepared, platform, FakeBridge()) as daemon:
            await until(lambda daemon=daemon: daemon.follower.state.rounds > 2)
            assert await held(daemon) == {"signed-by-others"}
            assert "p-1" in told(daemon)


async def test_the_list_is_read_once_and_again_where_a_vault_was_pinned_since(prepared, platform):
    platform.proposals = {f"p-{n}": shop((n,), psbt_id=f"p-{n}", collected=2, status=ProposalStatus.CONFIRMED)
                          for n in range(1, 8)}  # fmt: skip
    for before, first in ((None, None), ("p-7", "p-7")):
        asked = watched(platform)
        async with daemon_at(prepared, platform, FakeBridge()) as daemon:
            await until(lambda asked=asked: len(asked) > 0)
            await until(lambda daemon=daemon: daemon.follower.state.rounds > 1)
        assert asked[0] == before == first
    asked = watched(platform)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await vaults.unpin(daemon, VAULT_ID, VAULT.verification_code)
        platform.proposals["p-8"] = shop((8,), psbt_id="p-8")
        await until_state(daemon, "p-8", State.REFUSED)
        await vaults.pin(daemon, VAULT_ID, VAULT.verification_code)
        # Pinned, and compared with all that was signed before, at once.
        assert set((await daemon.proposal("p-8")).to_acknowledge) == {"signed-by-others"}
        assert "and 4 more" in told(daemon, "p-8")


async def test_a_list_of_many_pages_is_read_on_in_the_next_rounds(prepared, platform, monkeypatch):
    monkeypatch.setattr("signerd.account.platform.PAGE", 2)
    monkeypatch.setattr("signerd.account.others.MOST_LISTED", 4)
    platform.proposals = {
        f"p-{n:02}": shop((n,), psbt_id=f"p-{n:02}", status=ProposalStatus.EXPIRED) for n in range(10, 21)
    }
    platform.proposals |= {"p-21": replace(PAID, psbt_id="p-21"), "p-22": shop((2,), psbt_id="p-22")}
    asked = watched(platform)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: "p-21" in asked)
        assert await held(daemon, "p-22") == {"signed-by-others"}
        assert asked[:6] == [None, "p-11", "p-13", "p-15", "p-17", "p-19"]


async def test_f_an_endless_list_keeps_no_proposal_waiting(prepared, platform, monkeypatch):
    """Every page is full of signed ones, and has another behind it: what is kept of them is bounded."""
    monkeypatch.setattr("signerd.account.platform.PAGE", 20)
    monkeypatch.setattr("signerd.account.others.MOST_LISTED", 60)
    monkeypatch.setattr(quota, "MOST_WORK", 100)
    shape = platform._shape(PAID)

    def endless(request: httpx.Request) -> httpx.Response | None:
        if not whole_list(request):
            return None
        first = int(request.url.params.get("after", "q-0").removeprefix("q-")) + 1
        return httpx.Response(200, json=[{**shape, "psbt_id": f"q-{n}"} for n in range(first, first + 20)])

    async with daemon_at(prepared, platform, FakeBridge(), sign_in=False) as daemon:
        platform.before = lambda request: endless(request) if "authorization" in request.headers else None
        await daemon.sign_in("alice@example.org", "correct horse battery")
        assert await held(daemon) == {"signed-by-others"}
        await until(lambda: bool(daemon.feed.since(0, "platform")))
        assert "floods this machine" in daemon.feed.since(0, "platform")[0].text
        assert any("what others signed" in note for note in (await daemon.status()).notes)
        assert 0 < daemon.journal._db.execute(quota._UNFOLLOWED).fetchone()[0] <= 100
        await submits(daemon, "p-2", "signed-by-others")


ANSWERS: dict[str, Callable[[httpx.Request], httpx.Response]] = {
    "refused": lambda _request: problem(422, "INVALID"),
    "broken": lambda _request: problem(500, "INTERNAL"),
    "no list": lambda _request: httpx.Response(200, json={}),
    "not changed": lambda _request: httpx.Response(304),
    "entries of another kind": lambda _request: httpx.Response(200, json=[7, {"psbt_id": "q-1"}]),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_f_a_whole_list_that_cannot_be_read_is_told_and_stops_nothing(prepared, platform, answer):
    platform.after = lambda request: ANSWERS[answer](request) if whole_list(request) else None
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == set()
        await until(lambda: any("is left out" in line for line in daemon.troubles.sentences()))
        await submits(daemon, "p-2")


async def test_s27_copies_of_the_proposal_itself_push_nothing_out_of_what_is_compared(
    prepared, platform, monkeypatch
):
    """They share its coins and hold nothing themselves: whatever their number, what others signed before is
    compared.
    """
    monkeypatch.setattr("signerd.journal.books.MOST_COMPARED", 3)
    for before in ("a", "z"):
        platform.proposals |= {
            f"{before}-{n}": replace(
                ASKED, psbt_id=f"{before}-{n}", status=ProposalStatus.SIGNED, collected=2
            )
            for n in range(5)
        }
    platform.proposals = dict(sorted(platform.proposals.items()))
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        assert await held(daemon) == {"signed-by-others"}
        await until(lambda: daemon.journal._row("SELECT 1 FROM unfollowed WHERE psbt_id = 'z-4'"))
        assert set((await daemon.proposal("p-2")).to_acknowledge) == {"signed-by-others"}
