"""The named checks, in the order in which they are shown.

``BEFORE_INSPECTION`` look at what is known of the vault; the transaction itself is judged only where none refuses,
for without a pinned vault there is nothing to judge it by. ``AFTER_INSPECTION`` look at the inspected transaction.
A check's name is stable: programs, the configuration and the tests cite it; ``table`` lists them all.
"""

from collections.abc import Callable

from custody.schemas.proposals import TxType
from multisig import Psbt
from signerd.core.checks.case import Case, InspectedCase
from signerd.core.checks.changes import change_looked_at, name_kept
from signerd.core.checks.forward import from_profile, into_vault
from signerd.core.checks.imported import brought, data_named, in_time, one_network, own_coins
from signerd.core.checks.intent import (
    amounts_match,
    data_matches,
    fee_matches,
    payments_match,
    transaction_id,
)
from signerd.core.checks.listed import token_listed
from signerd.core.checks.locks import locktime
from signerd.core.checks.money import fee_rate_limit, fee_share_limit, total_fee_limit
from signerd.core.checks.neighbours import conflicting, paid_twice, signed_by_others
from signerd.core.checks.replacement import replacement
from signerd.core.checks.returning import change_index
from signerd.core.checks.tokens import (
    token_call,
    token_effect,
    token_known,
    token_on_screen,
    token_shape,
    token_twice,
)
from signerd.core.checks.vault import (
    key_stands,
    kind_known,
    network_agrees,
    own_key_inside,
    pinned,
    unchanged,
)
from signerd.core.tokens import takes_back
from signerd.core.values import Snapshot
from signerd.core.verdicts import Verdict

Before = tuple[Callable[[Case], Verdict], ...]
After = tuple[Callable[[InspectedCase], Verdict], ...]

BEFORE_INSPECTION: Before = (
    kind_known,
    pinned,
    unchanged,
    change_looked_at,
    name_kept,
    network_agrees,
    own_key_inside,
    key_stands,
)
AFTER_INSPECTION: After = (
    transaction_id,
    payments_match,
    amounts_match,
    data_matches,
    fee_matches,
    total_fee_limit,
    fee_rate_limit,
    fee_share_limit,
    locktime,
    change_index,
    replacement,
    conflicting,
    paid_twice,
    signed_by_others,
)
# A token's transaction pays nobody: its data is what is compared, and the recipients that are recorded change nothing.
TOKEN_AFTER_INSPECTION: After = (
    transaction_id,
    token_known,
    token_call,
    token_shape,
    token_effect,
    token_listed,
    token_on_screen,
    fee_matches,
    total_fee_limit,
    fee_rate_limit,
    fee_share_limit,
    locktime,
    replacement,
    conflicting,
    token_twice,
    signed_by_others,
)
# What a forward is judged by beside all of these: it spends from the member's profile, and may only go into the vault.
FORWARD_BEFORE_INSPECTION: Before = (from_profile,)
FORWARD_AFTER_INSPECTION: After = (into_vault,)
# What was brought is judged by these: of a vault, and of the person's own profile. There is no record to compare it with.
BROUGHT_OF_VAULT: Before = (
    brought,
    in_time,
    pinned,
    unchanged,
    change_looked_at,
    name_kept,
    one_network,
    own_key_inside,
    key_stands,
)
BROUGHT_OF_PROFILE: Before = (brought, in_time, own_coins, one_network, key_stands)
BROUGHT_AFTER_INSPECTION: After = (
    data_named,
    total_fee_limit,
    fee_rate_limit,
    fee_share_limit,
    locktime,
    change_index,
    conflicting,
    paid_twice,
    signed_by_others,
)


def checks_of(snapshot: Snapshot, psbt: Psbt) -> tuple[Before, After]:
    """What it is judged by before and after the transaction itself is."""
    if snapshot.brought is not None:
        before = BROUGHT_OF_PROFILE if snapshot.is_of_profile else BROUGHT_OF_VAULT
        return before, BROUGHT_AFTER_INSPECTION
    if snapshot.kind is TxType.FORWARD:
        before = (*BEFORE_INSPECTION, *FORWARD_BEFORE_INSPECTION)
        return before, (*AFTER_INSPECTION, *FORWARD_AFTER_INSPECTION)
    # The version that takes a token's transaction back is a payment to nobody.
    if snapshot.is_of_token and not takes_back(psbt):
        return BEFORE_INSPECTION, TOKEN_AFTER_INSPECTION
    return BEFORE_INSPECTION, AFTER_INSPECTION


__all__ = [
    "AFTER_INSPECTION",
    "BEFORE_INSPECTION",
    "BROUGHT_AFTER_INSPECTION",
    "BROUGHT_OF_PROFILE",
    "BROUGHT_OF_VAULT",
    "FORWARD_AFTER_INSPECTION",
    "FORWARD_BEFORE_INSPECTION",
    "TOKEN_AFTER_INSPECTION",
    "Case",
    "InspectedCase",
    "checks_of",
]
