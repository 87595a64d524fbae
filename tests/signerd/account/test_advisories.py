"""Signed advisories on the signer's machine: from a file or the platform, by the signature alone; what they
say of its keys and vaults.
"""

import json
import sqlite3
from contextlib import closing

import httpx
import pytest

from custody.advisories import Held
from custody.schemas.advisories import AdvisoryPublisher
from multisig.canonical_json import canonical_json
from signerd.account.advisories import SUBJECT, Advisories
from signerd.core.audit import Note, first_fault
from signerd.core.events import Level
from signerd.errors import AdvisoriesNotTaken
from signerd.feed import Feed, Troubles
from signerd.journal.storage import JOURNAL
from tests.signerd.journal.test_journal import NOW, open_one
from tests.signerd.journal.test_journal import prepared as prepared_journal
from tests.support.advisories import Publisher, affected, entry, secret
from tests.support.daemons import daemon_at, make_config, until
from tests.support.desk import own_keys

PUBLISHER = Publisher()
HANDED_OVER = Publisher([secret(1), secret(2)])
DEVICE = {"maker": "coldcard", "model": "Coldcard", "firmware": "5.5.0"}
LONG = {"expires": "9999-01-01T00:00:00Z"}


def advisories(journal, trusted=(PUBLISHER.root,)):
    return Advisories(journal, trusted, Troubles(Feed(0)))


def registered(journal, **device):
    facts = {"fingerprint": str(own_keys()[0].key.fingerprint), "device": device}
    journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1", facts))


def shown(told, publisher=PUBLISHER.root):
    return AdvisoryPublisher(
        publisher=publisher, epoch=1, serial=told.serial, issued=told.issued, expires=told.expires,
        is_over=False, taken_at=NOW, advisories=[], list=told.line.decode(),
    )  # fmt: skip


@pytest.fixture
def journal(tmp_path):
    with prepared_journal(tmp_path) as journal:
        yield journal


def test_it_names_the_device_and_its_vaults_once(journal):
    registered(journal, **DEVICE)
    mine = advisories(journal)
    (told,) = mine.add(PUBLISHER.list(1, entry(), entry("TREZOR-1", affected("trezor"))).line)
    assert (told.psbt_id, told.level) == (SUBJECT, Level.ALARM)
    for words in (
        "ADVISORY COLDCARD-2026-07 concerns",
        "Coldcard, in the vault 'Treasury'",
        "Move the money",
    ):
        assert words in told.sentence
    assert [*mine.notes()] == [told.sentence]
    assert [each.concern for each in mine.in_force()] == ["exposed", "not"]
    # The same once more, and a newer one that says the same, tell nothing.
    assert mine.add(PUBLISHER.list(1, entry(), entry("TREZOR-1", affected("trezor"))).line) == ()
    assert mine.add(PUBLISHER.list(2, entry()).line) == ()
    (drill,) = mine.add(PUBLISHER.list(3, entry("DRILL-1", drill=True)).line)
    assert drill.sentence.startswith("DRILL DRILL-1")
    assert [each.advisory.id for each in mine.in_force()] == ["DRILL-1"]
    assert first_fault(journal.audit()) is None


def test_a_key_of_whose_device_nothing_is_known_may_be_exposed(journal):
    (told,) = advisories(journal).add(PUBLISHER.list(1, entry()).line)
    assert "may concern your key" in told.sentence


def test_serials_and_keys_are_remembered_over_a_restart_and_by_the_journal_itself(tmp_path):
    with prepared_journal(tmp_path) as journal:
        advisories(journal).add(HANDED_OVER.list(5, entry()).line)
    with open_one(tmp_path) as journal:
        mine = advisories(journal)
        for old in (HANDED_OVER.list(4), HANDED_OVER.list(5), PUBLISHER.list(9), PUBLISHER.list(5, entry())):
            with pytest.raises(AdvisoriesNotTaken):
                mine.add(old.line)
        assert [held.serial for held in journal.advisories.held()] == [5]
        assert [*mine.notes()]
        # Nothing is shown of a publisher whom the person trusts no more.
        assert advisories(journal, ()).in_force() == ()
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as connection:
        for sql in ("UPDATE advisories SET serial = 5", "UPDATE advisories SET serial = 6, epoch = 1",
                    "DELETE FROM advisories"):  # fmt: skip
            with pytest.raises(sqlite3.IntegrityError, match="list of advisories"):
                connection.execute(sql)


def test_a_held_list_that_is_read_no_more_is_named_and_a_newer_one_taken(journal):
    mine, said = advisories(journal), json.loads(PUBLISHER.list(1).line)
    line = canonical_json(said | {"advisories": [entry() | {"more": 1}]})
    with journal.noted("advisories", Note("advisories-taken", PUBLISHER.root, {})):
        journal.advisories.write(Held(PUBLISHER.root, PUBLISHER.root, 1, 1, "00" * 32, line))
    assert mine.in_force() == ()
    assert "cannot be read any more" in next(mine.notes())
    mine.add(PUBLISHER.list(2, entry()).line)
    (note,) = mine.notes()
    assert note.startswith("ADVISORY")


def test_many_advisories_read_keys_and_vaults_once(journal, monkeypatch):
    mine, asked = advisories(journal), []
    mine.add(PUBLISHER.list(1, *(entry(f"A-{number}") for number in range(20))).line)
    monkeypatch.setattr(Advisories, "_places", lambda _self: asked.append(1) or {})
    assert len(mine.in_force()) == 20
    assert asked == [1]


@pytest.mark.anyio
async def test_what_the_platform_shows_is_judged_like_a_file(journal):
    mine = advisories(journal)
    forged = PUBLISHER.list(2, entry()).signed(secret(9), bytes(32))
    stranger = Publisher([secret(9)])
    assert mine.add_shown([shown(forged), shown(stranger.list(1, entry()), stranger.root)]) == ()
    assert sum("are refused" in sentence for sentence in mine.troubles.sentences()) == 2
    assert len(mine.add_shown([shown(PUBLISHER.list(2, entry()))])) == 1
    assert not [*mine.troubles.sentences()]
    assert mine.add_shown([shown(PUBLISHER.list(1))]) == ()
    assert "the serial 1" in next(iter(mine.troubles.sentences()))


@pytest.mark.anyio
async def test_the_daemon_reads_them_with_its_keys_and_tells_its_person(prepared, platform, bridge):
    told = PUBLISHER.list(1, entry(), **LONG)
    answer = [shown(told).model_dump(mode="json")]

    def answers(request):
        return httpx.Response(200, json=answer) if request.url.path == "/api/v1/advisories" else None

    platform.before = answers
    config = make_config(advisory_keys=[PUBLISHER.root])
    async with daemon_at(prepared, platform, bridge, config=config) as daemon:
        await until(lambda: any(line.kind == "alarm" for line in daemon.feed.since(0, SUBJECT)))
        assert any(note.startswith("ADVISORY COLDCARD-2026-07") for note in (await daemon.status()).notes)
        (found,) = await daemon.list_advisories()
        assert (found.concern, found.serial) == ("unknown", 1)
        (newer,) = await daemon.take_advisories(PUBLISHER.list(2, entry("B-1"), **LONG).line)
        assert newer.name == "B-1"
        with pytest.raises(AdvisoriesNotTaken):
            await daemon.take_advisories(told.line)
