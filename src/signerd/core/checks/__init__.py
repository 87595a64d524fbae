"""The named checks, in the order in which they are shown.

``BEFORE_INSPECTION`` look at what is known of the vault; the transaction itself is judged only where none refuses,
for without a pinned vault there is nothing to judge it by. ``AFTER_INSPECTION`` look at the inspected transaction.
A check's name is stable: programs, the configuration and the tests cite it; ``table`` lists them all.
"""

from collections.abc import Callable

from signerd.core.checks.case import Case, InspectedCase
from signerd.core.checks.changes import change_looked_at, name_kept
from signerd.core.checks.forward import from_profile, into_vault
from signerd.core.checks.intent import (
    amounts_match,
    data_matches,
    fee_matches,
    payments_match,
    transaction_id,
)
from signerd.core.checks.locks import locktime
from signerd.core.checks.money import fee_rate_limit, fee_share_limit, total_fee_limit
from signerd.core.checks.neighbours import conflicting, paid_twice
from signerd.core.checks.replacement import replacement
from signerd.core.checks.vault import (
    key_stands,
    kind_known,
    network_agrees,
    own_key_inside,
    pinned,
    unchanged,
)
from signerd.core.verdicts import Verdict

BEFORE_INSPECTION: tuple[Callable[[Case], Verdict], ...] = (
    kind_known,
    pinned,
    unchanged,
    change_looked_at,
    name_kept,
    network_agrees,
    own_key_inside,
    key_stands,
)
AFTER_INSPECTION: tuple[Callable[[InspectedCase], Verdict], ...] = (
    transaction_id,
    payments_match,
    amounts_match,
    data_matches,
    fee_matches,
    total_fee_limit,
    fee_rate_limit,
    fee_share_limit,
    locktime,
    replacement,
    conflicting,
    paid_twice,
)
# What a forward is judged by beside all of these: it spends from the member's profile, and may only go into the vault.
FORWARD_BEFORE_INSPECTION: tuple[Callable[[Case], Verdict], ...] = (from_profile,)
FORWARD_AFTER_INSPECTION: tuple[Callable[[InspectedCase], Verdict], ...] = (into_vault,)

__all__ = [
    "AFTER_INSPECTION",
    "BEFORE_INSPECTION",
    "FORWARD_AFTER_INSPECTION",
    "FORWARD_BEFORE_INSPECTION",
    "Case",
    "InspectedCase",
]
