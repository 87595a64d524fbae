"""S26 over a real journal: the platform renames, splits, relists and reorders vaults, and the person unpins
and pins again.

A model beside it knows quorums by number and no id. Whatever ids mean, no payment that was signed is
forgotten, no limit begins anew, no rule of a vault is lost, and nothing is signed by another quorum's pin.
"""

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from custody.schemas.proposals import ProposalStatus
from multisig import CHANGE, ChangeTo, Psbt, Vault, build_psbt, sats
from signerd.core import events
from signerd.core.audit import Note, first_fault
from signerd.core.rules.reading import written_rules
from signerd.core.states import State
from signerd.core.values import OwnKey, Pin, VaultClaim
from tests.support.desk import NETWORK, judge_again, open_journal, own_keys, reviewed, signed_by, snapshot_of
from tests.support.examples import examples
from tests.support.wallets import ALICE, fund, make_vault, pay

NOW = datetime(2026, 1, 2, tzinfo=UTC)
# Two quorums of ours, by account, and a third with none of our keys: what an alarm shows.
QUORUMS = (make_vault(account=0), make_vault(account=1))
CODES = tuple(vault.verification_code for vault in QUORUMS)
WEAKER = tuple(replace(vault, threshold=1) for vault in QUORUMS)
IDS = ("v-a", "v-b", "v-c")
PAYEES = ("shop", "cafe")
AMOUNT, PER_DAY = 30_000, 50_000
# The first by an id under which it was pinned once, the second by its code.
RULES = f"""
[vaults.v-a.ask]
above_per_day = "{PER_DAY} sat"
[vaults.{CODES[1]}.ask]
above_per_day = "{PER_DAY} sat"
"""


def payment(quorum: int, payee: str, number: int) -> Psbt:
    """A coin of its own each time."""
    vault = QUORUMS[quorum]
    change = ChangeTo(sats(100_000 - AMOUNT - 1_000), CHANGE, 0)
    return build_psbt(vault, [fund(vault, 100_000, salt=number)], [pay(AMOUNT, payee), change], 0)


class Relisting(RuleBasedStateMachine):
    """``shown``: which vault each id is of today; ``signed``: (quorum, payee) of all that this machine
    signed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.shown: dict[str, Vault] = {}
        self.signed: list[tuple[int, str]] = []
        self.of: dict[str, tuple[int, str]] = {}
        # Every quorum that was ever pinned under the id that the first section names.
        self.named: set[str] = set()

    def teardown(self) -> None:
        self.journal.close()
        self.place.cleanup()

    @initialize()
    def prepare(self) -> None:
        self.journal = open_journal(Path(self.place.name), now=lambda: NOW)
        self.journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        self.lists("v-a", QUORUMS[0])
        self.pins("v-a")
        self.journal.rules = written_rules(RULES, NETWORK).resolved(self.journal.pinned_codes())

    # --- the platform ---------------------------------------------------------------------------------------

    @rule(
        vault_id=st.sampled_from(IDS),
        vault=st.sampled_from((*QUORUMS, *QUORUMS, *WEAKER)),
        turned=st.booleans(),
    )
    def lists(self, vault_id: str, vault: Vault, turned: bool = False) -> None:
        """Under an id that is new or was another's: a rename, a split, an alarm; the keys in another order
        mean nothing.
        """
        keys = tuple(reversed(vault.cosigners)) if turned else vault.cosigners
        shown = replace(vault, cosigners=keys)
        self.shown[vault_id] = vault
        self.journal.learn(VaultClaim(vault_id, 1, f"Name of {vault_id}", shown.descriptor))
        judge_again(self.journal)

    @rule(
        quorum=st.integers(0, 1),
        payee=st.sampled_from(PAYEES),
        vault_id=st.sampled_from(IDS),
        status=st.sampled_from([ProposalStatus.PENDING] * 3 + [ProposalStatus.CANCELLED]),
        device=st.sampled_from([True, True, False]),
    )
    def is_asked_to_sign(
        self, quorum: int, payee: str, vault_id: str, status: ProposalStatus, device: bool
    ) -> None:
        """The whole way, where anything lets it, or until a ``device`` is there: what must be named first,
        the model says too.
        """
        psbt_id = f"p-{len(self.of)}"
        psbt = payment(quorum, payee, len(self.of))
        self.of[psbt_id] = quorum, payee
        shown = snapshot_of(psbt, psbt_id, vault_id=vault_id)
        self.journal.poll(replace(shown, recipients=(_address(psbt),), amounts=(AMOUNT,), fee=1_000))
        found = reviewed(self.journal, psbt_id)
        assert found.allowed is self.is_sound(vault_id, quorum)
        if not found.allowed:
            return
        assert self.shown[vault_id] == QUORUMS[quorum], "judged by a vault whose id means another one"
        again = (quorum, payee) in self.signed
        assert ("paid-twice" in found.to_acknowledge) is again
        spent = sum(AMOUNT for of, _payee in self.signed if of == quorum) + AMOUNT
        limited = quorum == 1 or CODES[quorum] in self.named
        assert ("rule-vault-ask-per-day" in found.to_acknowledge) is (limited and spent > PER_DAY)
        self.journal.decide(psbt_id, events.Approved(found.digest, found.to_acknowledge))
        if not device:
            return
        self.journal.decide(psbt_id, events.DeviceFound("d"))
        returned = events.DeviceReturned(signed_by(ALICE, self.journal.record(psbt_id).snapshot))
        assert self.journal.decide(psbt_id, returned).record.state is State.SIGNED
        self.signed.append((quorum, payee))
        self.journal.poll(replace(self.journal.record(psbt_id).snapshot, status=status))

    @rule(
        quorum=st.integers(0, 1),
        payee=st.sampled_from(PAYEES),
        vault_id=st.sampled_from(IDS),
        device=st.booleans(),
    )
    def is_asked_to_sign_under_an_id_of_the_moment(
        self, quorum: int, payee: str, vault_id: str, device: bool
    ) -> None:
        """Most ids mean nothing that is pinned: left to chance, few payments would come to be signed."""
        self.lists(vault_id, QUORUMS[quorum])
        self.is_asked_to_sign(quorum, payee, vault_id, ProposalStatus.PENDING, device)

    @rule(number=st.integers(0, 30), confirmations=st.integers(0, 9))
    def speaks_again_of_what_was_signed(self, number: int, confirmations: int) -> None:
        """Ids may mean another vault by then."""
        signed = [record for record in self.journal.records() if record.signature is not None]
        if signed:
            known = signed[number % len(signed)].snapshot
            self.journal.poll(replace(known, status=ProposalStatus.CONFIRMED, confirmations=confirmations))

    def is_sound(self, vault_id: str, quorum: int) -> bool:
        """Pinned under whatever id, without an alarm, and what the platform shows under this one today."""
        pins = {pin.vault_id: pin for pin in self.journal.pins()}
        pinned = next((pin for pin in pins.values() if pin.vault == QUORUMS[quorum]), None)
        if pinned is None or self.shown.get(vault_id) != QUORUMS[quorum]:
            return False
        return pins.get(vault_id, pinned) == pinned and not self.journal.changes_of(pinned)

    # --- the person -----------------------------------------------------------------------------------------

    @rule(vault_id=st.sampled_from(IDS))
    def pins(self, vault_id: str) -> None:
        """What is shown under the id, where it is whole and ours and nothing like it is pinned."""
        vault = self.shown.get(vault_id)
        if vault not in QUORUMS or self.journal.pin(vault_id) is not None:
            return
        code = vault.verification_code
        if any(
            pin.vault.verification_code == code or pin.vault_id == vault_id for pin in self.journal.pins()
        ):
            return
        own: OwnKey = own_keys()[QUORUMS.index(vault)]
        self.journal.add_pin(Pin(vault_id, 1, "Treasury", vault, own.key), Note("pinned", vault_id))
        self.named |= {code} if vault_id == "v-a" else set()
        judge_again(self.journal)

    @rule(vault_id=st.sampled_from(IDS))
    def unpins(self, vault_id: str) -> None:
        if self.journal.pin(vault_id) is not None:
            self.journal.unpin(vault_id, Note("unpinned", vault_id))

    @rule(vault_id=st.sampled_from(IDS), quorum=st.integers(0, 1))
    def has_an_alarm_and_pins_again_under_another_id(self, vault_id: str, quorum: int) -> None:
        for pin in self.journal.pins():
            if pin.vault == QUORUMS[quorum] or pin.vault_id == vault_id:
                self.lists(pin.vault_id, WEAKER[quorum])
                self.unpins(pin.vault_id)
        self.lists(vault_id, QUORUMS[quorum])
        self.pins(vault_id)

    @rule()
    def starts_again(self) -> None:
        """The rules are read anew, against what the journal knows."""
        self.journal.close()
        self.journal = open_journal(Path(self.place.name), now=lambda: NOW)
        self.journal.rules = written_rules(RULES, NETWORK).resolved(self.journal.pinned_codes())
        self.journal.restart()

    # --- what must hold -------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_forgotten(self) -> None:
        if hasattr(self, "journal"):
            kept = self.journal._db.execute(
                "SELECT psbt_id, quorum FROM proposals JOIN signatures USING (psbt_id)"
            )
            held = sorted((CODES.index(row["quorum"]), self.of[row["psbt_id"]][1]) for row in kept)
            assert held == sorted(self.signed)
            assert self.journal.rules.sections() == {
                "v-a": frozenset(self.named),
                CODES[1]: frozenset({CODES[1]}),
            }
            assert first_fault(self.journal.audit()) is None

    @invariant()
    def no_yes_outlives_an_alarm_or_its_pin(self) -> None:
        """A yes that once was waiting for a device then has no way back but another yes."""
        if hasattr(self, "journal"):
            pins = {pin.vault: pin.vault_id for pin in self.journal.pins()}
            for record in self.journal.records([State.WAITING_DEVICE]):
                quorum, _payee = self.of[record.psbt_id]
                assert QUORUMS[quorum] in pins
                assert not self.journal.changes_of(self.journal.pin(pins[QUORUMS[quorum]]))


def _address(psbt: Psbt) -> str:
    return snapshot_of(psbt).recipients[0]


SETTINGS = settings(
    max_examples=examples(12), stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
)


def test_s26_whatever_ids_mean_no_payment_limit_or_rule_of_a_quorum_is_forgotten() -> None:
    run_state_machine_as_test(Relisting, settings=SETTINGS)
