"""Which other proposals the journal brings before the checks, and what it knows of them (S6, S11, S25)."""

from dataclasses import replace

from custody.schemas.proposals import ProposalStatus
from multisig import Psbt
from signerd.core import events
from signerd.core.states import State
from signerd.core.values import Neighbour
from signerd.journal import Journal
from tests.signerd.journal.test_journal import NOW, to_signed
from tests.support.desk import reviewed, snapshot_of
from tests.support.payments import shop, spend_of


def neighbours(journal: Journal, psbt_id: str) -> dict[str, Neighbour]:
    context = journal.review_context(journal.record(psbt_id).snapshot)
    return {neighbour.psbt_id: neighbour for neighbour in context.neighbours}


def held(journal: Journal, psbt_id: str) -> frozenset[str]:
    return reviewed(journal, psbt_id).to_acknowledge


def test_s6_what_was_signed_is_known_as_it_was_signed_and_when(journal: Journal) -> None:
    to_signed(journal, shop())
    # The platform shows another PSBT of the same transaction since, without a word about its coins.
    bare = Psbt.parse(shop().psbt)
    bare = replace(bare, inputs=tuple(replace(item, non_witness_utxo=None) for item in bare.inputs))
    journal.poll(replace(shop(), psbt=bare.to_bytes()))
    journal.poll(shop((1,), 3_000, "p-2", replaces="p-1"))
    first = neighbours(journal, "p-2")["p-1"]
    record = journal.record("p-1")
    assert record.signature is not None
    assert (first.signed, first.signed_at, first.psbt) == (True, NOW, record.signature.psbt)
    assert not held(journal, "p-2")
    assert reviewed(journal, "p-2").allowed


def test_s11_what_is_said_to_be_replaced_is_looked_up_whatever_it_spends_and_pays(journal: Journal) -> None:
    journal.poll(shop())
    journal.poll(snapshot_of(spend_of((2,), (("cafe", 20_000),)), "p-2"))
    assert neighbours(journal, "p-2") == {}
    journal.poll(replace(journal.record("p-2").snapshot, replaces="p-1"))
    assert set(neighbours(journal, "p-2")) == {"p-1"}
    assert "replacement" in {verdict.name for verdict in reviewed(journal, "p-2").refusals}
    assert journal.record("p-2").state is State.REFUSED


def test_s25_a_coin_is_the_same_coin_under_another_vaults_name(journal: Journal) -> None:
    journal.poll(shop(vault_id="vault-2", status=ProposalStatus.BROADCASTING))
    journal.poll(shop((1,), 3_000, "p-2"))
    assert set(neighbours(journal, "p-2")) == {"p-1"}


def test_s27_what_others_signed_and_this_machine_did_not_is_shown_before_a_yes(journal: Journal) -> None:
    journal.poll(shop(collected=1))
    journal.poll(shop((2,), psbt_id="p-2"))
    (told,) = [v for v in reviewed(journal, "p-2").verdicts if v.name == "signed-by-others"]
    assert told.acknowledge
    assert "p-1 (1 of 2 signatures, waiting-for-person here)" in told.sentence
    # No word of the platform's about its end takes a signature back.
    journal.poll(shop(collected=1, status=ProposalStatus.EXPIRED))
    assert held(journal, "p-2") == {"signed-by-others"}
    # Nor does a lower count, for which the first would be forgotten when room is made.
    journal.poll(shop(collected=0, status=ProposalStatus.EXPIRED))
    assert held(journal, "p-2") == {"signed-by-others"}
    assert journal._quota._forget() == 0
    # What spends the same coins cannot be paid beside it.
    journal.poll(shop((1,), 3_000, "p-3"))
    assert "signed-by-others" not in held(journal, "p-3")


def test_s27_a_yes_that_was_given_before_the_others_signed_is_asked_for_again(journal: Journal) -> None:
    journal.poll(shop())
    journal.poll(shop((2,), psbt_id="p-2"))
    journal.decide("p-2", events.Approved(reviewed(journal, "p-2").digest))
    journal.poll(shop(collected=2**70))
    assert journal.decide("p-2", events.DeviceFound("d")).record.state is State.WAITING_PERSON
    assert held(journal, "p-2") == {"signed-by-others"}
