"""No sequence of events and crashes comes to *signing* without an allow and the person's yes to it, over a
real journal.

Two judges that know nothing of the engine: what the journal holds is compared with what was ever true here,
and the chain of decisions must tell of every question to a device that it was judged, allowed and approved
first.
"""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from custody.schemas.proposals import ProposalStatus
from multisig import ChangeTo, Psbt, build_psbt, sats
from signerd.core import events
from signerd.core.audit import Entry, Note, first_fault
from signerd.core.keys import Revocation, RevocationReason
from signerd.core.states import State
from signerd.core.todo import Work, todo
from signerd.core.values import Record, SigningLimits, Snapshot
from signerd.errors import DecisionError
from signerd.journal import Journal
from tests.support.desk import (
    CLAIM,
    NETWORK,
    VAULT,
    VAULT_ID,
    judge_again,
    make_pin,
    own_keys,
    resumed,
    signed_by,
    snapshot_of,
)
from tests.support.examples import examples
from tests.support.wallets import ALICE, BOB, MALLORY, fund, make_vault, pay

NOW = datetime(2026, 1, 2, tzinfo=UTC)
IDS = tuple(f"p-{number}" for number in range(1, 5))


def payment(psbt_id: str) -> Psbt:
    """Neither a coin nor a payment in common with another one."""
    salt = IDS.index(psbt_id)
    change = ChangeTo(sats(89_000 - salt), 1, 0)
    return build_psbt(VAULT, [fund(VAULT, 100_000, salt=salt)], [pay(10_000 + salt), change], 0)


HONEST = {psbt_id: snapshot_of(payment(psbt_id), psbt_id) for psbt_id in IDS}
LIES: tuple[Callable[[Snapshot], Snapshot], ...] = (
    lambda s: replace(s, amounts=(1,)),
    lambda s: replace(s, fee=s.fee + 1),
    lambda s: replace(s, txid_expected="ab" * 32),
    lambda s: replace(s, workspace_network="mainnet"),
)
# Under an id that is known these put the proposal aside for good.
ALTERED: tuple[Callable[[Snapshot], Snapshot], ...] = (
    lambda s: replace(s, psbt=b"garbage"),
    lambda s: replace(s, psbt=payment("p-1" if s.psbt_id != "p-1" else "p-2").to_bytes()),
    lambda s: replace(s, vault_id="vault-9"),
)
CLAIMS = (CLAIM, CLAIM, CLAIM, replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor))
SIMPLE = (
    events.Reconsidered(),
    events.PersonDeclined("no"),
    events.NoSignature("locked", "Locked.", asked=False),
    events.NoSignature("disconnected", "Gone.", asked=True),
    events.SubmitStarted(),
    events.SubmitAccepted(1, 2),
    events.SubmitUndelivered("no answer"),
    events.SubmitTurnedDown("KEY_REVOKED", "no"),
    events.DeclineDelivered(),
    events.Recalled(),
)


class Killed(BaseException):
    """The process ends here: nothing that is not on the disk is left."""


class Life(RuleBasedStateMachine):
    """A few proposals, a vault, a key and a person; the process may be killed at any write."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.dies: str | None = None
        self.yes_to: set[str] = set()
        self.signatures: dict[str, set[bytes]] = {psbt_id: set() for psbt_id in IDS}

    def teardown(self) -> None:
        self.journal.close()
        self.place.cleanup()

    @initialize()
    def prepare(self) -> None:
        self.journal = self._open()
        self.journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        self.journal.learn(CLAIM)
        self.journal.add_pin(make_pin(), Note("pinned", VAULT_ID))

    def _open(self) -> Journal:
        journal = Journal(
            Path(self.place.name), network=NETWORK, limits=SigningLimits(), now=lambda: NOW, fault=self._fault
        )
        # Whether a commit outlives the power is another test's: here a process dies, and the system's memory
        # stays.
        journal._db.execute("PRAGMA synchronous = OFF")
        return journal

    def _fault(self, point: str) -> None:
        if self.dies is not None and point.startswith(f"journal:{self.dies}:"):
            self.dies = None
            raise Killed

    def attempt(self, what: Callable[[], object]) -> None:
        """Do it; where it is killed in the middle, begin again as a daemon does."""
        try:
            with suppress(DecisionError):
                what()
        except Killed:
            self.start_again()

    @rule()
    def start_again(self) -> None:
        self.dies = None
        self.journal.close()
        self.journal = self._open()
        resumed(self.journal)
        judge_again(self.journal)

    @rule(side=st.sampled_from(("before", "after")))
    def the_next_write_kills(self, side: str) -> None:
        self.dies = side

    # --- the platform ---------------------------------------------------------------------------------------

    @rule(psbt_id=st.sampled_from(IDS))
    def proposes_honestly(self, psbt_id: str) -> None:
        self.attempt(lambda: self.journal.poll(HONEST[psbt_id]))

    @rule(psbt_id=st.sampled_from(IDS), lie=st.sampled_from(LIES))
    def lies(self, psbt_id: str, lie: Callable[[Snapshot], Snapshot]) -> None:
        self.attempt(lambda: self.journal.poll(lie(HONEST[psbt_id])))

    @rule(psbt_id=st.sampled_from(IDS[-2:]), lie=st.sampled_from(ALTERED))
    def shows_another_one_under_its_id(self, psbt_id: str, lie: Callable[[Snapshot], Snapshot]) -> None:
        self.attempt(lambda: self.journal.poll(lie(HONEST[psbt_id])))

    # Ends are rare, for else hardly a run would come as far as a signature.
    @rule(
        psbt_id=st.sampled_from(IDS),
        status=st.sampled_from([*[ProposalStatus.PENDING] * 20, *ProposalStatus]),
    )
    def speaks_of_the_end(self, psbt_id: str, status: ProposalStatus) -> None:
        self.attempt(lambda: self.journal.poll(replace(HONEST[psbt_id], status=status)))

    @rule(claim=st.sampled_from(CLAIMS))
    def shows_the_vault(self, claim: object) -> None:
        self.attempt(lambda: self.journal.learn(claim))

    @rule()
    def says_that_the_key_is_revoked(self) -> None:
        key_id = self.journal.keys.platform_key_id() or ""
        self.attempt(
            lambda: self.journal.revoke(Revocation(key_id, "73c5da0a", RevocationReason.REVOKED, NOW))
        )

    # --- the person -----------------------------------------------------------------------------------------

    @rule(psbt_id=st.sampled_from(IDS))
    def approves_what_is_shown(self, psbt_id: str) -> None:
        if self.known(psbt_id) is not None:
            found = self.journal.review(psbt_id)
            self.yes_to.add(found.digest)
            yes = events.Approved(found.digest, found.to_acknowledge)
            self.attempt(lambda: self.journal.decide(psbt_id, yes))

    @rule(psbt_id=st.sampled_from(IDS), data=st.data())
    def approves_what_was_shown_once(self, psbt_id: str, data: st.DataObject) -> None:
        if self.known(psbt_id) is not None and self.yes_to:
            digest = data.draw(st.sampled_from(sorted(self.yes_to)))
            self.attempt(lambda: self.journal.decide(psbt_id, events.Approved(digest)))

    @rule(psbt_id=st.sampled_from(IDS))
    def comes_to_wait_for_the_device(self, psbt_id: str) -> None:
        self.puts_all_in_order()
        self.proposes_honestly(psbt_id)
        self.approves_what_is_shown(psbt_id)

    @rule(psbt_id=st.sampled_from(IDS))
    def goes_the_whole_way(self, psbt_id: str) -> None:
        self.comes_to_wait_for_the_device(psbt_id)
        self.finds_the_device(psbt_id)
        self.returns_signatures(psbt_id, ALICE)

    @rule()
    def puts_all_in_order(self) -> None:
        """The person looked at what was wrong: our key is registered, and the vault pinned as the platform
        shows it.
        """
        self.attempt(lambda: self.journal.learn(CLAIM))
        self.registers((ALICE, "key-1"))
        if self.journal.vault_changes(VAULT_ID):
            self.unpins()
        self.pins()
        self.attempt(lambda: judge_again(self.journal))

    @rule()
    def pins(self) -> None:
        if self.journal.pin(VAULT_ID) is None and own_keys()[0] in self.journal.own_keys():
            self.attempt(lambda: self.journal.add_pin(make_pin(), Note("pinned", VAULT_ID)))

    @rule()
    def unpins(self) -> None:
        if self.journal.pin(VAULT_ID) is not None:
            self.attempt(lambda: self.journal.unpin(VAULT_ID, Note("unpinned", VAULT_ID)))

    @rule(device=st.sampled_from(((ALICE, "key-1"), (MALLORY, "key-2"), (ALICE, "key-3"))))
    def registers(self, device: tuple[object, str]) -> None:
        signer, key_id = device
        self.attempt(lambda: self.journal.add_own_keys(own_keys(signer), key_id, Note("registered", key_id)))

    # --- the device, and all else ---------------------------------------------------------------------------

    @rule(psbt_id=st.sampled_from(IDS))
    def finds_the_device(self, psbt_id: str) -> None:
        before = self.known(psbt_id)
        if before is None:
            return
        sound = self.is_sound(before.snapshot)
        self.attempt(lambda: self.journal.decide(psbt_id, events.DeviceFound("d")))
        now = self.journal.record(psbt_id)
        if now.state is State.SIGNING and before.state is not State.SIGNING:
            assert before.state is State.WAITING_DEVICE
            assert now.snapshot.psbt == HONEST[psbt_id].psbt
            assert sound

    @rule(psbt_id=st.sampled_from(IDS), data=st.data())
    def something_comes_between_the_yes_and_the_device(self, psbt_id: str, data: st.DataObject) -> None:
        self.comes_to_wait_for_the_device(psbt_id)
        lie, claim = data.draw(st.sampled_from(LIES)), data.draw(st.sampled_from(CLAIMS))
        between = (
            lambda: self.lies(psbt_id, lie),
            lambda: self.shows_the_vault(claim),
            self.says_that_the_key_is_revoked,
            lambda: self.registers((MALLORY, "key-2")),
            self.unpins,
            self.start_again,
            lambda: self.something_happens(psbt_id, events.PersonDeclined("no")),
        )
        data.draw(st.sampled_from(between))()
        self.finds_the_device(psbt_id)

    @rule(psbt_id=st.sampled_from(IDS), signer=st.sampled_from((ALICE, ALICE, BOB)))
    def returns_signatures(self, psbt_id: str, signer: object) -> None:
        if self.known(psbt_id) is not None:
            returned = events.DeviceReturned(signed_by(signer, HONEST[psbt_id]))
            self.attempt(lambda: self.journal.decide(psbt_id, returned))

    @rule(psbt_id=st.sampled_from(IDS), event=st.sampled_from(SIMPLE))
    def something_happens(self, psbt_id: str, event: events.ProposalEvent) -> None:
        if self.known(psbt_id) is not None:
            self.attempt(lambda: self.journal.decide(psbt_id, event))

    def known(self, psbt_id: str) -> Record | None:
        return next((record for record in self.journal.records() if record.psbt_id == psbt_id), None)

    # --- what must hold -------------------------------------------------------------------------------------

    def is_sound(self, shown: Snapshot) -> bool:
        """By what is stored, and no judgement of it: an honest story of the pinned vault, and a key that is
        ours.
        """
        claim = self.journal.claim(VAULT_ID)
        return (
            replace(shown, status=ProposalStatus.PENDING) == HONEST[shown.psbt_id]
            and self.journal.pin(VAULT_ID) == make_pin()
            and claim == CLAIM
            and not self.journal.vault_changes(VAULT_ID)
            and own_keys()[0] in self.journal.own_keys()
            and self.journal.keys.revocation() is None
        )

    @invariant()
    def the_chain_tells_of_an_allow_and_a_yes_before_every_question_to_a_device(self) -> None:
        if hasattr(self, "journal"):
            entries = tuple(self.journal.audit())
            assert first_fault(entries) is None
            require_allowed_first(entries, self.yes_to)

    @invariant()
    def a_proposal_at_the_device_has_its_yes(self) -> None:
        if hasattr(self, "journal"):
            for record in self.journal.records((State.WAITING_DEVICE, State.SIGNING)):
                assert record.approval is not None
                assert record.approval.digest in self.yes_to
                assert record.signature is None

    @invariant()
    def one_signature_of_each_is_submitted(self) -> None:
        for record in self.journal.records() if hasattr(self, "journal") else ():
            if todo(record) is Work.SUBMIT and record.signature is not None:
                self.signatures[record.psbt_id].add(record.signature.psbt)
                assert len(self.signatures[record.psbt_id]) == 1


TAKES_THE_YES_AWAY = frozenset(
    {"judged", "approval-lapsed", "interrupted", "restarted", "verify-failed", "declined", "altered"}
)


def require_allowed_first(entries: Iterable[Entry], yes_to: Iterable[str]) -> None:
    """Read by the chain's own words: judged without a refusal, then approved, then asked, with one digest."""
    allowed: dict[str, bool] = {}
    approved: dict[str, str] = {}
    for entry in entries:
        subject, facts, kind = entry.note.subject, entry.note.facts, entry.note.kind
        if kind in TAKES_THE_YES_AWAY:
            approved.pop(subject, None)
        if kind == "judged":
            allowed[subject] = not facts["refusals"]
        elif kind == "approved":
            assert allowed[subject], entry
            assert facts["digest"] in yes_to, entry
            approved[subject] = facts["digest"]
        elif kind == "device-asked":
            assert approved[subject] == facts["digest"], entry


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=examples(15),
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow],
)
