"""The whole list after a restore: read to its end for every vault that is pinned, with nothing left out."""

from dataclasses import dataclass, replace

import pytest

from signerd.account.others import CAUGHT_UP, OthersProposals
from signerd.account.platform import PlatformPage
from signerd.account.wire import Listed, PlatformWorkspace, UnreadableEntry
from signerd.core.audit import Note
from signerd.core.events import Notify
from signerd.core.states import State
from signerd.core.values import Pin, Snapshot, VaultClaim
from tests.signerd.journal.test_journal import NOW, open_one, prepared
from tests.support.desk import NETWORK, signed_by
from tests.support.payments import SHOP, shop, spend_of
from tests.support.wallets import ALICE, make_vault

pytestmark = pytest.mark.anyio
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
