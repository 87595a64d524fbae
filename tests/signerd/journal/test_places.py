"""S29: which addresses are known to be used outlives a restart, and a signature that was not stored leaves nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from multisig import CHANGE, ChangeTo, build_psbt, sats
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.places import policy_code
from signerd.core.values import Limits, Snapshot
from signerd.errors import JournalUnwritable
from signerd.journal import Journal
from tests.support.desk import CLAIM, NETWORK, VAULT, VAULT_ID, make_pin, own_keys, signed_by, snapshot_of
from tests.support.wallets import ALICE, fund, pay


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder, self.fails = folder, False
        self.journal = self._open()
        self.journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        self.journal.learn(CLAIM)
        self.journal.add_pin(make_pin(), Note("pinned", VAULT_ID))

    def _open(self) -> Journal:
        return Journal(self.folder, network=NETWORK, limits=Limits(), fault=self._fault)

    def _fault(self, point: str) -> None:
        if self.fails and point == "journal:before:DeviceReturned":
            raise OSError("no space")

    def restart(self) -> None:
        self.journal.close()
        self.journal = self._open()

    def offer(self, index: int) -> Snapshot:
        outputs = [pay(50_000, f"shop {index}"), ChangeTo(sats(39_000), CHANGE, index)]
        snapshot = snapshot_of(build_psbt(VAULT, [fund(VAULT, 90_000, salt=index)], outputs, 0), f"p-{index}")
        self.journal.poll(snapshot)
        return snapshot

    def held(self, snapshot: Snapshot) -> bool:
        return "change-index" in self.journal.review(snapshot.psbt_id).to_acknowledge

    def sign(self, snapshot: Snapshot) -> None:
        found = self.journal.review(snapshot.psbt_id)
        self.journal.decide(snapshot.psbt_id, events.Approved(found.digest, found.to_acknowledge))
        self.journal.decide(snapshot.psbt_id, events.DeviceFound("d"))
        self.journal.decide(snapshot.psbt_id, events.DeviceReturned(signed_by(ALICE, snapshot)))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.journal.close()


def test_s29_a_signed_place_is_known_after_a_restart_and_an_offered_one_is_not(desk: Desk) -> None:
    far, further = desk.offer(1_500), desk.offer(2_400)
    assert desk.held(far)
    assert desk.held(further)
    desk.sign(far)
    assert not desk.held(further)
    desk.restart()
    assert not desk.held(further)
    assert desk.held(desk.offer(2_501))
    # A platform that relists the quorum under another id finds the same places.
    assert desk.journal.review_context(further).places.keys() == {policy_code(VAULT)}


def test_s29_a_signature_that_could_not_be_stored_makes_no_place_known(desk: Desk) -> None:
    far, further = desk.offer(1_500), desk.offer(2_400)
    desk.fails = True
    with pytest.raises((OSError, JournalUnwritable)):
        desk.sign(far)
    desk.fails = False
    assert desk.held(further)
