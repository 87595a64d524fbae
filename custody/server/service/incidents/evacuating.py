"""The job that evacuates one vault: it creates the replacement, then proposes sweeps of the coins.

Each step and the row's new state are one transaction: after a crash another process continues. Signers
approve each sweep on their devices, like any proposal.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.common import ApiNetwork, Priority
from custody.schemas.proposals import CancelPsbtRequest
from custody.schemas.vaults import CreateWalletRequest
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import (
    ChainUnavailable,
    CustodyError,
    DatabaseUnavailable,
    Dust,
    InsufficientFunds,
    LockedFunds,
    OutcomeUnknown,
    PolicyUnavailable,
    StateConflict,
)
from custody.server.domain.evacuation import Event, State, next_state
from custody.server.domain.limits import in_btc
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.backends import Market
from custody.server.service.incidents.evacuation_preview import OpenProposals, open_in
from custody.server.service.jobs.outbox import Done, Finish, Task
from custody.server.service.keys.quorums import AdvisoriesInForce
from custody.server.service.limits.limits import PolicyStore
from custody.server.service.proposals.bounds import require_fit, vault_to_spend
from custody.server.service.proposals.coins import lock_coins
from custody.server.service.proposals.drafting import Drafter
from custody.server.service.proposals.ending import MANAGERS, Cancelling
from custody.server.service.proposals.payments import Intent, Payment
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import Changes
from custody.server.service.stored_vaults import address_script, place_of
from custody.server.service.vaults import Vaults
from custody.server.store import Store
from custody.server.store.models import EvacuatedVault, Evacuation, Membership, Proposal, User, Vault
from multisig import Sats, TxOut

# The job is tried again after these: they are temporary.
PASSING: Final = (ChainUnavailable, DatabaseUnavailable, OutcomeUnknown, PolicyUnavailable)


class Evacuating:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        changes: Changes,
        market: Market,
        drafter: Drafter,
        vaults: Vaults,
        policies: PolicyStore,
        cancelling: Cancelling,
        in_force: AdvisoriesInForce,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._changes = changes
        self._market = market
        self._drafter = drafter
        self._vaults = vaults
        self._policies = policies
        self._cancelling = cancelling
        self._in_force = in_force
        self._steps: Mapping[State, Callable[[Session, Caller, WorkspaceAccess, EvacuatedVault], Event]] = {
            State.PLANNED: self._replace,
            State.REPLACED: self._sweep,
        }

    def __call__(self, task: Task) -> Finish:
        """Raises the errors of PASSING, for another try."""
        evacuation_id, _, vault_id = task.subject.partition(":")
        key = evacuation_id, vault_id
        try:
            while self._step(key, task.trace_id or ""):
                pass
        except PASSING:
            raise
        except CustodyError as error:
            self._leave(key, task.trace_id or "", error)
        return lambda _db: Done()

    def _step(self, key: tuple[str, str], trace_id: str) -> bool:
        """False where there is nothing to do."""
        with self._store.write() as db:
            row = db.get_one(EvacuatedVault, key, with_for_update=True)
            step = self._steps.get(State(row.state))
            if step is None:
                return False
            caller, access = _maker(db, row, trace_id)
            _require_member(db, row, access)
            row.state = next_state(State(row.state), step(db, caller, access, row)).value
            db.flush()
            self._changes.moved(db, access.workspace_id)
            return True

    def _leave(self, key: tuple[str, str], trace_id: str, error: CustodyError) -> None:
        """Stores why the vault was left. The failed step was rolled back."""
        with self._store.write() as db:
            row = db.get_one(EvacuatedVault, key, with_for_update=True)
            if State(row.state) not in self._steps:
                return
            row.state, row.reason = next_state(State(row.state), Event.REFUSED).value, error.detail
            db.flush()
            caller, access = _maker(db, row, trace_id)
            what = f"evacuation {row.evacuation_id}, vault {row.vault_id}: {error.code}"
            self._audit.record(db, caller, Category.VAULTS, "EVACUATION_LEFT", what, access=access)
            self._changes.moved(db, access.workspace_id)

    def _replace(self, db: Session, caller: Caller, access: WorkspaceAccess, row: EvacuatedVault) -> Event:
        """Creates a vault with the same threshold, limits and controls. Raises StateConflict (another key
        than planned).
        """
        old = db.get_one(Vault, row.vault_id)
        policy = self._policies.of_vaults(db, [old.id])[old.id]
        request = CreateWalletRequest(
            workspace_id=access.workspace_id,
            name=row.name,
            network=cast("ApiNetwork", old.network),
            m=old.m,
            signers=row.signers,
            transaction_limit=in_btc(policy.limit),
            cycle_period=policy.cycle.period,
            cycle_day=policy.cycle.day,
        )
        made = self._vaults.create(db, caller, access, request)
        if [signer.key_id for signer in made.signers] != row.key_ids:
            raise StateConflict("A signer of the replacement has another key by now: make a new plan.")
        replacement = db.get_one(Vault, made.id)
        replacement.only_address_book = old.only_address_book
        replacement.maker_may_approve = old.maker_may_approve
        self._policies.replace_of_vault(db, made.id, policy)
        row.replacement_id, row.replaced_at = made.id, self._clock()
        return Event.REPLACEMENT_MADE

    def _sweep(self, db: Session, caller: Caller, access: WorkspaceAccess, row: EvacuatedVault) -> Event:
        """Proposes as much as one transaction takes, to the replacement's first address, which its signers
        saw on their devices when they pinned it. No limit applies: two people confirmed exactly this move.

        Raises VaultFrozen (either vault), LockedFunds, InsufficientFunds, Dust, Invalid, ChainUnavailable;
        ReplacementUnfit (it is exposed by now, or its signers could not spend from it).
        """
        old = vault_to_spend(db, access, row.vault_id)
        replacement = db.get_one(Vault, row.replacement_id)
        require_fit(db, replacement, self._in_force)
        evacuation = db.get_one(Evacuation, row.evacuation_id)
        self._cancel_unsigned(db, caller, access, row)
        quote = self._market.quote(old.chain)
        payment = Payment(replacement.address, TxOut(Sats(0), address_script(replacement)))
        rate, now = quote.rates[cast("Priority", evacuation.priority)], self._clock()
        try:
            intent, draft = self._drafter.sweep(
                db, old, Intent((payment,), sweeps=True), rate, quote, distinct=True
            )
        except (InsufficientFunds, LockedFunds, Dust):
            if not _has_sweep(db, row):
                raise
            row.proposed_at = row.proposed_at or now
            return Event.NOTHING_MORE
        proposal_id = new_id(self._random)
        lock_coins(db, old.chain, [utxo.outpoint for utxo in draft.utxos], proposal_id)
        terms = Terms(
            proposal_id,
            proposal_id,
            caller.user_id,
            f"Evacuation: what {old.name} holds free goes to {replacement.name}. Pin that vault first.",
            Sats(intent.total + draft.selection.fee),
            now,
            recipients=(replacement.address,),
            amounts=(int(intent.total),),
            counts_for_role=False,
            sweeps=True,
            evacuation_id=row.evacuation_id,
        )
        proposal = store_proposal(db, old, draft, terms, self._in_force)
        what = f"{terms.movement} sat with the fee, evacuation {row.evacuation_id}, tx {draft.txid}"
        record_proposal(db, self._audit, self._changes, caller, access, proposal, what)
        return Event.SWEEP_MADE

    def _cancel_unsigned(
        self, db: Session, caller: Caller, access: WorkspaceAccess, row: EvacuatedVault
    ) -> None:
        """Cancels proposals that lock coins and have no signatures, and former evacuations' sweeps to a
        replacement that is unfit now; not this evacuation's own.
        """
        for psbt_id in open_in(db, [row.vault_id], self._in_force).get(row.vault_id, OpenProposals()).cancels:
            swept_by = db.get_one(Proposal, psbt_id).evacuation_id
            if swept_by != row.evacuation_id:
                request = CancelPsbtRequest(
                    psbt_id=psbt_id,
                    workspace_id=access.workspace_id,
                    reason="The vault is evacuated.",
                    release_coins=swept_by is not None,
                )
                self._cancelling.cancel(db, caller, access, request)


def _maker(db: Session, row: EvacuatedVault, trace_id: str) -> tuple[Caller, WorkspaceAccess]:
    """The caller in whose name the job acts, with only the permission that the two people's decision
    gives.
    """
    evacuation = db.get_one(Evacuation, row.evacuation_id)
    caller = Caller(row.asked_by, 0, db.get_one(User, row.asked_by).email, trace_id)
    return caller, replace(place_of(db, evacuation.workspace_id), permissions=MANAGERS)


def _require_member(db: Session, row: EvacuatedVault, access: WorkspaceAccess) -> None:
    """Raises StateConflict."""
    here = Membership.user_id == row.asked_by, Membership.workspace_id == access.workspace_id
    if db.scalar(select(Membership.id).where(*here)) is None:
        how = "make a new plan for it" if row.replacement_id is None else "another member has to sweep again"
        raise StateConflict(f"The member who asked for it has left the workspace: {how}.")


def _has_sweep(db: Session, row: EvacuatedVault) -> bool:
    ours = Proposal.vault_id == row.vault_id, Proposal.evacuation_id == row.evacuation_id
    return bool(db.scalar(select(func.count()).select_from(Proposal).where(*ours)))
