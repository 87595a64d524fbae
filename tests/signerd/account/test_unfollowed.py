"""What others signed before this machine looked, or without its being asked: heard, compared, and nothing
else (S27). After a restore the whole list is read to its end for every vault that is pinned.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from custody.schemas.proposals import ProposalStatus
from signerd.account.others import CAUGHT_UP, OthersProposals
from signerd.account.platform import PlatformPage
from signerd.account.wire import Listed, PlatformWorkspace, UnreadableEntry
from signerd.core.audit import Note
from signerd.core.events import Notify
from signerd.core.states import State
from signerd.core.values import Pin, Snapshot, VaultClaim
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import NeedsAcknowledgement
from signerd.journal import quota
from tests.signerd.journal.test_journal import NOW, open_one, prepared
from tests.support.daemons import approve, daemon_at, submits, until, until_state
from tests.support.desk import NETWORK, VAULT, VAULT_ID, reviewed, signed_by
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, is_whole_list, problem
from tests.support.payments import SHOP, shop, spend_of
from tests.support.wallets import ALICE, make_vault

pytestmark = pytest.mark.anyio
ASKED = shop((2,), psbt_id="p-2")
PAID = shop(status=ProposalStatus.CONFIRMED, collected=2)


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    """The others paid the shop with p-1 before this machine ran; p-2 pays it once more."""
    return FakePlatform(tmp_path, {"p-1": PAID, "p-2": ASKED})


def watched(platform: FakePlatform) -> list[str | None]:
    """From where on the whole list is asked for, each time."""
    asked: list[str | None] = []

    def hook(request: httpx.Request) -> httpx.Response | None:
        if is_whole_list(request) and "authorization" in request.headers:
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
            await until(lambda daemon=daemon: daemon.follower.rounds > 2)
            assert await held(daemon) == {"signed-by-others"}
            assert "p-1" in told(daemon)


async def test_the_list_is_read_once_and_again_where_a_vault_was_pinned_since(prepared, platform):
    platform.proposals = {f"p-{n}": shop((n,), psbt_id=f"p-{n}", collected=2, status=ProposalStatus.CONFIRMED)
                          for n in range(1, 8)}  # fmt: skip
    for before, first in ((None, None), ("p-7", "p-7")):
        asked = watched(platform)
        async with daemon_at(prepared, platform, FakeBridge()) as daemon:
            await until(lambda asked=asked: len(asked) > 0)
            await until(lambda daemon=daemon: daemon.follower.rounds > 1)
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
        if not is_whole_list(request):
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
    platform.after = lambda request: ANSWERS[answer](request) if is_whole_list(request) else None
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


SECOND = make_vault(threshold=1)
BAD = UnreadableEntry("p-2", "field 'fee' must be a whole number")
WORKSPACE = PlatformWorkspace(1, "Desk", "testnet")


@pytest.fixture
def journal(tmp_path):
    with prepared(tmp_path) as made:
        made.restore(NOW)
    with open_one(tmp_path) as restored:
        yield restored


@dataclass
class Pages:
    """The platform's list, page by page; ``between`` is called before each."""

    pages: list[Listed]
    between: object = None

    async def everyones(self, _workspace, after):
        place = 0 if after is None else int(after)
        if self.between is not None:
            self.between(place)
        more = place + 1 < len(self.pages)
        return PlatformPage(self.pages[place], str(place + 1) if more else None, 1, 1)


@dataclass
class Told:
    lines: list[str]

    def announce(self, news):
        self.lines.extend(f"{e.level}: {e.sentence}" for e in news if isinstance(e, Notify))


def others(journal, *pages, between=None, told=None):
    told = Told([] if told is None else told)
    return OthersProposals(journal, Pages(list(pages), between), lambda _e: None, told)


def listed(*items: Snapshot, unreadable: tuple[UnreadableEntry, ...] = ()) -> Listed:
    return Listed(items, unreadable)


def pin_second(journal):
    own = ALICE.vault_key(NETWORK, 0)
    journal.learn(VaultClaim("vault-2", 1, "Second", SECOND.descriptor, 1, 3, SECOND.address(0, 0)))
    journal.add_pin(Pin("vault-2", 1, "Second", SECOND, own), Note("pinned", "vault-2"))


def signed_in_second():
    base = replace(shop((2,), psbt_id="p-2"), vault_id="vault-2")
    base = replace(base, psbt=spend_of((2,), SHOP, policy=SECOND).to_bytes())
    return replace(base, psbt=signed_by(ALICE, base), collected=1)


async def test_a_vault_that_is_pinned_after_the_list_was_read_is_caught_up_too(journal):
    look = others(journal, listed(signed_in_second()))
    await look.read(WORKSPACE)
    assert journal.behind() == frozenset()
    pin_second(journal)
    assert journal.behind() == {1}
    await look.read(WORKSPACE)
    assert journal.behind() == frozenset()
    assert journal.record("p-2").state is State.SUBMITTED


async def test_a_vault_that_is_pinned_between_two_pages_is_not_covered(journal):
    def pin(place):
        if place == 1 and journal.pin("vault-2") is None:
            pin_second(journal)

    told = []
    look = others(journal, listed(signed_in_second()), listed(), between=pin, told=told)
    await look.read(WORKSPACE)
    assert (journal.behind(), told) == ({1}, [])
    await look.read(WORKSPACE)
    assert journal.behind() == frozenset()
    # Nothing else says that approving is possible again.
    assert told[1:] == [f"info: {CAUGHT_UP}"]
    assert journal.record("p-2").state is State.SUBMITTED


async def test_what_cannot_be_read_ends_no_catching_up(journal):
    first, second = listed(shop((3,), psbt_id="p-3"), unreadable=(BAD,)), listed(shop((4,), psbt_id="p-4"))
    assert (await others(journal, first, second).read(WORKSPACE)).left_out == (BAD,)
    assert journal.behind() == {1}
    # After a restart the place of the last look is not known: the list is not read on behind the bad entry.
    assert (await others(journal, first, second).read(WORKSPACE)).left_out == (BAD,)
    assert journal.behind() == {1}
    await others(journal, listed(shop((3,), psbt_id="p-3")), second).read(WORKSPACE)
    assert journal.behind() == frozenset()
