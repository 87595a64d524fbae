"""S37: what was signed here, or has a name here, is compared with each payee, however much there is of it."""

from pathlib import Path

from multisig import CHANGE, RECEIVE, ChangeTo, TxOut, build_psbt, encode_address, sats
from signerd.core.events import Exported
from signerd.core.values import Snapshot
from signerd.journal import Journal
from tests.signerd.journal.test_journal import NOW, open_one, prepared
from tests.support.backups import approve, sign
from tests.support.desk import NETWORK, VAULT, reviewed, snapshot_of
from tests.support.look_alikes import forged, look_alikes
from tests.support.wallets import fund

KNOWN, OTHER = look_alikes("rent", NETWORK)


def paying(script: bytes, coin: int) -> Snapshot:
    outputs = [TxOut(sats(40_000 + coin), script), ChangeTo(sats(58_000 - coin), CHANGE, 7)]
    return snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000, salt=coin)], outputs, 0), f"p-{coin}")


def held(journal: Journal, snapshot: Snapshot) -> bool:
    journal.poll(snapshot)
    return "look-alike" in reviewed(journal, snapshot.psbt_id).to_acknowledge


def test_s37_what_was_signed_or_exported_is_known_and_a_restore_forgets_nothing(tmp_path: Path) -> None:
    with prepared(tmp_path) as journal:
        approve(journal, paying(KNOWN, 1))
        assert not held(journal, paying(OTHER, 2)), "approved, and not signed"
        journal.decide("p-1", Exported())
        assert held(journal, paying(OTHER, 3))
        assert not held(journal, paying(KNOWN, 4))
        journal.restore(NOW)
        assert held(journal, paying(OTHER, 5))
        journal.caught_up(1, [VAULT.verification_code])
        # Named, and so signed: from then on it is one of those paid before, in other proposals.
        sign(journal, paying(OTHER, 6))
        assert not held(journal, paying(OTHER, 7))
        assert held(journal, journal.record("p-6").snapshot)


def test_s37_the_address_book_is_known_too(tmp_path: Path) -> None:
    named = [encode_address(script, NETWORK) or "" for script in (KNOWN, OTHER)]
    prepared(tmp_path).close()
    with open_one(tmp_path, book=named[:1]) as journal:
        assert (held(journal, paying(OTHER, 1)), held(journal, paying(KNOWN, 2))) == (True, False)
        journal.book = named
        assert not held(journal, paying(OTHER, 3))
        sign(journal, paying(KNOWN, 4))
        assert held(journal, paying(OTHER, 5)), "a name makes none the address that was paid"


def test_s37_the_first_address_of_a_pinned_vault_is_known_too(tmp_path: Path) -> None:
    own = VAULT.script_pubkey(RECEIVE, 0)
    with prepared(tmp_path) as journal:
        assert (held(journal, paying(forged(own, NETWORK), 1)), held(journal, paying(own, 2))) == (
            True,
            False,
        )


def test_s37_a_hundred_thousand_payees_cost_no_more_than_a_few(
    journal: Journal,
) -> None:
    sign(journal, paying(KNOWN, 1))
    journal.poll(paying(OTHER, 2))
    snapshot, steps = journal.record("p-2").snapshot, list[int]()

    def cost() -> int:
        steps.clear()
        journal._db.set_progress_handler(lambda: steps.append(1), 1)
        assert journal.review_context(snapshot).resembled
        journal._db.set_progress_handler(None, 1)
        return len(steps)

    before, more = cost(), ((f"{number:08}", f"address {number}", "p-1") for number in range(100_000))
    journal._db.executemany("INSERT INTO payees VALUES (?,?,?)", more)
    assert cost() < before + 20
