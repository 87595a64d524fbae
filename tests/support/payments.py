"""Payments of the pinned vault, their bumps and cancels, and forwards into it, for the ledger of signed
payments.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from custody.schemas.proposals import TxType
from multisig import (
    CHANGE,
    RECEIVE,
    ChangeTo,
    Policy,
    Profile,
    Psbt,
    TxOut,
    build_psbt,
    encode_address,
    inspect,
    op_return_script,
    sats,
)
from signerd.core.states import State
from signerd.core.values import Neighbour, ReviewContext, Snapshot
from tests.support.desk import (
    NETWORK,
    PROFILE,
    PROFILE_KEY,
    VAULT,
    neighbour,
    own_keys,
    review_context,
    snapshot_of,
)
from tests.support.wallets import ALICE, fund, pay

COIN = 100_000
SIGNED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def spend_of(
    coins: Sequence[int],
    payments: Sequence[tuple[str, int]],
    fee: int = 1_000,
    *,
    data: bytes | None = None,
    policy: Policy = VAULT,
) -> Psbt:
    """Spends coins of 100,000 sat, by number; ``payments``: receiver and amount; the rest is change."""
    outputs: list[TxOut | ChangeTo] = [pay(amount, to) for to, amount in payments]
    if data is not None:
        outputs.append(TxOut(sats(0), op_return_script(data)))
    back = COIN * len(coins) - sum(amount for _to, amount in payments) - fee
    if back:
        outputs.append(ChangeTo(sats(back), CHANGE, 7))
    return build_psbt(policy, [fund(policy, COIN, salt=coin) for coin in coins], outputs, 0)


SHOP = (("shop", 50_000),)


def shop(coins: Sequence[int] = (1,), fee: int = 1_000, psbt_id: str = "p-1", **changes: object) -> Snapshot:
    """50,000 sat to the shop."""
    return snapshot_of(spend_of(coins, SHOP, fee), psbt_id, **changes)


def neighbour_of(
    snapshot: Snapshot,
    state: State = State.SUBMITTED,
    *,
    signed: bool = True,
    at: datetime | None = SIGNED_AT,
) -> Neighbour:
    """The proposal as the journal knows it when it reviews another one."""
    psbt = Psbt.parse(snapshot.psbt)
    known = {"psbt": ALICE.sign(psbt).to_bytes(), "signed_at": at} if signed else {}
    return neighbour(psbt, snapshot.psbt_id, state, signed=signed, **known)


# --- forwards -----------------------------------------------------------------------------------------------


def with_profile(**changes: object) -> ReviewContext:
    """Alice's desk with a registered profile."""
    return replace(review_context(own_keys=(*own_keys(), PROFILE_KEY)), **changes)


def forward_psbt(
    amount: int | None = 60_000,
    fee: int = 1_000,
    *,
    coins: Sequence[int] = (1,),
    to: bytes | None = None,
    profile: Profile = PROFILE,
    extra: Sequence[TxOut | ChangeTo] = (),
) -> Psbt:
    """A payment from the profile into the vault. ``amount``: None sweeps; otherwise the rest is change."""
    total = COIN * len(coins) - fee - sum(int(item.amount) for item in extra)
    sent = total if amount is None else amount
    script = VAULT.script_pubkey(RECEIVE, 0) if to is None else to
    outputs: list[TxOut | ChangeTo] = [TxOut(sats(sent), script), *extra]
    if sent < total:
        outputs.append(ChangeTo(sats(total - sent), CHANGE, 3))
    return build_psbt(profile, [fund(profile, COIN, salt=coin) for coin in coins], outputs, 0)


def forward_of(psbt: Psbt, psbt_id: str = "f-1", profile: Profile = PROFILE, **changes: object) -> Snapshot:
    """What an honest platform says about a forward."""
    seen = inspect(psbt, profile, network=NETWORK)
    said = {
        "kind": TxType.FORWARD,
        "recipients": tuple(encode_address(p.script_pubkey, NETWORK) or "" for p in seen.payments),
        "amounts": tuple(int(p.amount) for p in seen.payments),
        "op_return": "0x" + seen.op_returns[0].data.hex() if seen.op_returns else None,
        "fee": int(seen.fee),
        "txid_expected": seen.txid,
        "required": 1,
    }
    return snapshot_of(psbt, psbt_id, **{**said, **changes})
