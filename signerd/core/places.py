"""Which of a policy's addresses are known to be used, and which lie too far from them to be found again
(S29).

A wallet that restores a policy derives addresses in order and stops after a gap of unused ones. Money that
comes back beyond the gap belongs to the quorum, which does not find it; the platform, which knows the index,
can ask for a ransom.

Known are the addresses to which transactions signed on this machine paid, and the coins that the transaction
itself spends. A coin counts only where it lies within the gap itself: who knows the descriptor can pay dust
to any address of the vault.
"""

from collections.abc import Iterable

from multisig import CHANGE, RECEIVE, Inspection, Policy, Vault

# A wallet with this gap limit finds every coin of the policy. Forwards are held to the same; the platform's
# watcher has 20.
GAP = 1_000

Span = tuple[int, int]
"""The first and the last of known addresses that lie no further apart than the gap."""
Spans = tuple[Span, ...]
"""In order. Several, and not one highest index: an address far away, once approved, vouches for no address
below it.
"""
Places = tuple[Spans, Spans]
"""Of the receive chain (0) and the change chain (1)."""

# As if the address before the first one were used: a new policy reaches from 0 to GAP - 1.
NEW_CHAIN: Spans = ((-1, -1),)
NEW_POLICY: Places = (NEW_CHAIN, NEW_CHAIN)
CHAINS = (RECEIVE, CHANGE)


def merged(spans: Iterable[Span]) -> Spans:
    """In order; those that lie no further apart than the gap as one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + GAP:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def joined(known: Places, more: Places) -> Places:
    return merged((*known[RECEIVE], *more[RECEIVE])), merged((*known[CHANGE], *more[CHANGE]))


def is_near(spans: Spans, index: int) -> bool:
    return any(first - GAP <= index <= last + GAP for first, last in spans)


def last_below(spans: Spans, index: int) -> int | None:
    """The highest known address below ``index``; None where there is none."""
    return max((last for _first, last in spans if 0 <= last < index), default=None)


def with_coins(known: Places, inspection: Inspection) -> Places:
    """With the coins that are spent, as far as a wallet finds them from what is known."""
    receive, change = (_reaching(known[chain], _spent_from(inspection, chain)) for chain in CHAINS)
    return receive, change


def _spent_from(inspection: Inspection, chain: int) -> list[int]:
    coins = ((coin.chain, coin.address_index) for coin in inspection.inputs)
    return sorted(index for where, index in coins if where == chain and index is not None)


def _reaching(spans: Spans, indexes: Iterable[int]) -> Spans:
    for index in indexes:
        if is_near(spans, index):
            spans = merged((*spans, (index, index)))
    return spans


def used_by(inspection: Inspection, known: Places) -> Places:
    """What is known once this transaction is signed, beside ``known``.

    What only its coins reach is not: a coin whose transaction was never sent proves no address used, and
    makes no transaction that is mined, but what is known from it would stay. A held address is, for the
    person approved it.
    """
    near = with_coins(known, inspection)
    receive, change = (
        merged(
            (index, index)
            for index in (
                *(index for index in _spent_from(inspection, chain) if is_near(known[chain], index)),
                *(
                    index
                    for index in _back_to(inspection, chain)
                    if _counts(index, known[chain], near[chain])
                ),
            )
        )
        for chain in CHAINS
    )
    return receive, change


def _back_to(inspection: Inspection, chain: int) -> list[int]:
    return [back.index for back in inspection.change if back.chain == chain]


def _counts(index: int, known: Spans, near: Spans) -> bool:
    return is_near(known, index) or not is_near(near, index)


def policy_code(policy: Policy) -> str:
    """What a policy's places are kept under: a quorum has one code, whatever a platform calls the vault."""
    return policy.verification_code if isinstance(policy, Vault) else str(policy.key)
