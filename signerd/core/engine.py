"""(record, event) → new record, effects to perform, notes for the audit chain.

Pure: the journal calls it inside the transaction that stores its answer; the runner performs the effects after that.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from signerd.core import delivery, device, events, following, imported, person
from signerd.core.audit import Note
from signerd.core.following import ended, receive
from signerd.core.states import TABLE, Move, State, advance
from signerd.core.step import Step, due_effects, go_on
from signerd.core.values import Record, ReviewContext

__all__ = ["HANDLERS", "Step", "decide", "due_effects", "receive"]


def decide(record: Record, event: events.Event, around: ReviewContext) -> Step:
    """Apply one event.

    Raises:
        IllegalEvent, StaleApproval, RefusedByChecks, NeedsAcknowledgement: nothing has changed.
    """
    return HANDLERS[type(event)](record, event, around)


def restarted(record: Record, _event: events.Restarted, _around: ReviewContext) -> Step:
    if (record.state, Move.RESTARTED) not in TABLE:
        return Step(record)
    state = advance(record.state, Move.RESTARTED)
    facts = {"from": record.state.value, "to": state.value}
    anew = replace(record, state=state)
    if state is State.INTERRUPTED:
        anew = replace(anew, approval=None, reason="signerd stopped while your device was being asked.")
    return go_on(Step(anew, notes=(Note("restarted", record.psbt_id, facts),)), ended)


HANDLERS: Mapping[type, Callable[[Record, Any, ReviewContext], Step]] = MappingProxyType(
    {
        events.Polled: following.polled,
        events.Reconsidered: following.reconsidered,
        events.Approved: person.approved,
        events.Refused: person.refused,
        events.DeviceFound: device.device_found,
        events.DeviceReturned: device.device_returned,
        events.DeviceFailed: device.device_failed,
        events.SubmitStarted: delivery.submit_started,
        events.SubmitAccepted: delivery.submit_accepted,
        events.SubmitUndelivered: delivery.submit_undelivered,
        events.SubmitTurnedDown: delivery.submit_turned_down,
        events.DeclineDelivered: delivery.decline_delivered,
        events.Restarted: restarted,
        events.TakenBack: imported.taken_back,
        events.Lapsed: imported.lapsed,
    }
)
