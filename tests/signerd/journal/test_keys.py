"""Our own keys and pinned vaults in the journal: a device in the place of another, the platform's word
against the registered key, and a change of a vault, told once and standing until the person has looked (S16).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from signerd.core import events
from signerd.core.audit import Note
from signerd.core.events import JudgeAgain, Level, Notify
from signerd.core.keys import Revocation, RevocationReason
from signerd.core.states import State
from signerd.core.values import OwnKey, Work, todo
from signerd.journal import Journal
from tests.signerd.journal.test_journal import HONEST, NOW, open_one, prepared, to_signed
from tests.support.desk import CLAIM, make_pin, own_keys, reviewed
from tests.support.wallets import ALICE, BOB, MALLORY, make_vault


def replace_device(journal: Journal, key_id: str = "key-2") -> tuple[object, ...]:
    return journal.add_own_keys(own_keys(MALLORY), key_id, Note("registered", key_id))


def former(journal: Journal) -> tuple[OwnKey, ...]:
    return tuple(known.own for known in journal.former_keys())


def test_another_devices_keys_replace_those_before_them(journal: Journal) -> None:
    for signer, before in ((MALLORY, own_keys()), (ALICE, own_keys(MALLORY))):
        journal.add_own_keys(own_keys(signer), "key-2", Note("registered", "key-2"))
        assert journal.own_keys() == own_keys(signer)
        assert former(journal) == before
        assert {known.replaced for known in journal.former_keys()} == {NOW}
    assert journal.pins() == (make_pin(),)


def test_more_accounts_of_the_same_key_replace_nothing(journal: Journal) -> None:
    journal.poll(HONEST)
    more = own_keys(accounts=4)
    assert journal.add_own_keys(more[2:], "key-1", Note("registered", "key-1")) == ()
    assert journal.own_keys() == more
    assert former(journal) == ()
    assert journal.record("p-1").state is State.WAITING_PERSON


@pytest.mark.parametrize("key_id", ["key-1", "key-2"])
def test_an_approval_does_not_wait_for_a_device_that_was_replaced(journal: Journal, key_id: str) -> None:
    """Also where the platform gives the new device's key the id of the old one's."""
    journal.poll(HONEST)
    found = reviewed(journal, "p-1")
    journal.decide("p-1", events.Approved(found.digest, found.to_acknowledge))
    assert journal.record("p-1").state is State.WAITING_DEVICE
    replace_device(journal, key_id)
    assert journal.own_keys() == own_keys(MALLORY)
    assert journal.record("p-1").state is State.REFUSED
    assert journal.record("p-1").approval is None
    fingerprint = own_keys()[0].key.fingerprint
    assert f"your former key {fingerprint}, of a device of yours that was replaced on 2026-01-02" in (
        journal.record("p-1").reason
    )
    assert todo(journal.record("p-1")) is None


@pytest.mark.parametrize("ends", [replace_device, lambda journal: journal.revoke(revoked())])
def test_a_signature_of_a_device_that_was_replaced_or_whose_key_is_revoked_is_still_submitted(
    journal: Journal, ends: Callable[[Journal], object]
) -> None:
    """It exists, and may have arrived: the platform says whether it takes it."""
    to_signed(journal)
    ends(journal)
    assert journal.record("p-1").state is State.SIGNED
    assert todo(journal.record("p-1")) is Work.SUBMIT


# --- the platform's word against the registered key ---------------------------------------------------------


def revoked(key_id: str = "key-1") -> Revocation:
    return Revocation(key_id, str(own_keys()[0].key.fingerprint), RevocationReason.REPLACED, NOW, "deadbeef")


def test_it_is_told_once_and_survives_a_restart(tmp_path: Path) -> None:
    with prepared(tmp_path) as journal:
        journal.revoke(revoked())
        head = journal.head()
        assert journal.revoke(revoked()) == ()
        assert journal.head() == head
    with open_one(tmp_path) as journal:
        assert journal.revocation() == revoked()


def test_a_word_about_another_key_than_the_registered_one_is_none(journal: Journal) -> None:
    assert journal.revoke(revoked("key-9")) == ()
    assert journal.revocation() is None


FOREIGN = replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor)
WEAKER = replace(CLAIM, descriptor=make_vault(threshold=1).descriptor, threshold=1)


def kinds(journal: Journal) -> list[str]:
    return [entry.note.kind for entry in journal.audit()]


def test_s16_each_distinct_change_is_an_alarm_once(journal: Journal) -> None:
    for claim in (FOREIGN, WEAKER, FOREIGN, CLAIM, WEAKER, replace(WEAKER, name="Renamed")):
        journal.learn(claim)
    assert kinds(journal).count("vault-changed") == 2
    assert not journal.learn(replace(WEAKER, name="Renamed"))


def test_a_change_of_a_vault_that_is_not_pinned_is_news_and_no_alarm(journal: Journal) -> None:
    other = replace(FOREIGN, vault_id="vault-2")
    assert journal.learn(other)
    learnt = journal.learn(replace(other, descriptor=make_vault(threshold=1).descriptor))
    assert learnt == (
        Notify("vault-2", Level.INFO, "The platform shows another record of the vault."),
        JudgeAgain(),
    )
