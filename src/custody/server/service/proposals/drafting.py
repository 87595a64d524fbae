"""From an intent to the coins, the change, the fee and the unsigned PSBT."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.server.domain.errors import Fault, InsufficientFunds, Invalid, LockedFunds
from custody.server.domain.fees import MAX_FEE
from custody.server.domain.ports import Clock
from custody.server.domain.selection import Candidate, Plan, RandomSource, Selection, select_coins
from custody.server.domain.timing import SEQUENCE, choose_locktime
from custody.server.service.network.market import Quote
from custody.server.service.proposals.coins import Purse, coins_to_spend, purse_of
from custody.server.service.proposals.payments import Intent
from custody.server.service.vaults.descriptors import policy_of
from custody.server.store.models import Vault
from multisig import (
    CHANGE,
    ChangeTo,
    FeeRate,
    Psbt,
    PsbtTooLarge,
    Sats,
    TxOut,
    build_psbt,
    dust_threshold,
    estimate_vsize,
)
from multisig import Vault as Policy


@dataclass(frozen=True)
class Draft:
    """A transaction that is ready to be proposed."""

    psbt: Psbt
    selection: Selection
    purse: Purse
    vsize: int


class Drafter:
    def __init__(self, clock: Clock, rng: RandomSource) -> None:
        self._clock = clock
        self._rng = rng

    def draft(self, db: Session, vault: Vault, intent: Intent, rate: FeeRate, quote: Quote) -> Draft:
        """The change, if any, goes to the vault's next change index.

        Raises LockedFunds where the coins are there but held by other proposals, InsufficientFunds where not even
        those would do, Invalid where the fee is above the cap or the PSBT larger than devices take.
        """
        policy = policy_of(vault)
        change_script = policy.script_pubkey(CHANGE, vault.next_change_index)
        plan = _plan(policy, intent, rate, change_script)
        purse = purse_of(db, vault, quote.tip.height)
        selection = self._select(purse, plan)
        if selection.fee > MAX_FEE:
            sentence = f"The fee of {selection.fee} sat is above the cap of {MAX_FEE} sat."
            raise Invalid(sentence, faults=(Fault("/fee_rate", sentence, "fee-too-high"),))
        coins = coins_to_spend(db, vault, purse, selection.coins)
        outputs = self._outputs(intent.outputs, selection, vault.next_change_index)
        locktime = choose_locktime(quote.tip.height, self._clock().timestamp() - quote.tip.time, self._rng)
        try:
            psbt = build_psbt(policy, coins, outputs, locktime, SEQUENCE)
        except PsbtTooLarge as error:
            # Whoever pays the vault chooses how large the previous transactions are that the devices must see.
            sentence = f"{len(coins)} coins and the transactions that made them are more than a device takes: {error}"
            raise Invalid(sentence, faults=(Fault("/amounts_sats", sentence, error.code),)) from error
        return Draft(psbt, selection, purse, plan.vsize(len(selection.coins), selection.change > 0))

    def _select(self, purse: Purse, plan: Plan) -> Selection:
        selection = select_coins(purse.free, plan, self._rng)
        if selection is not None:
            return selection
        if purse.locked and select_coins((*purse.free, *purse.locked), plan, self._rng) is not None:
            raise LockedFunds(f"The coins for {plan.target} sat are held by other proposals.")
        available = sum(candidate.amount for candidate in purse.free if _may_be_spent(candidate))
        raise InsufficientFunds(
            f"{plan.target} sat and the fee are more than the {available} sat that can be spent; unconfirmed "
            "deposits cannot."
        )

    def _outputs(
        self, outputs: Sequence[TxOut], selection: Selection, change_index: int
    ) -> list[TxOut | ChangeTo]:
        """The change stands anywhere among the others, so that its place tells nothing."""
        placed: list[TxOut | ChangeTo] = list(outputs)
        if selection.change:
            place = self._rng.randrange(len(placed) + 1)
            placed.insert(place, ChangeTo(selection.change, CHANGE, change_index))
        return placed


def _may_be_spent(candidate: Candidate) -> bool:
    return candidate.confirmations > 0 or candidate.own_change


def _plan(policy: Policy, intent: Intent, rate: FeeRate, change_script: bytes) -> Plan:
    scripts = [output.script_pubkey for output in intent.outputs]

    def vsize(inputs: int, with_change: bool) -> int:
        return estimate_vsize(policy, inputs, [*scripts, change_script] if with_change else scripts)

    cost_of_spending = rate.fee_for(vsize(2, False) - vsize(1, False))  # noqa: FBT003 - the shape Plan asks for
    return Plan(
        target=intent.total,
        rate=rate,
        vsize=vsize,
        minimum_change=Sats(max(dust_threshold(change_script), cost_of_spending)),
    )
