"""Comparing with other proposals: the same coins spent twice (S25), the same payment made twice (S6, S27),
and replacements (S11).

Two transactions that both confirm share no coin. So each pair is compared, never a chain of replacements: if
a bump of a bump shares a coin only with the bump, the first transaction and the last can both confirm.
"""

from collections.abc import Iterable, Sequence

from custody.common.text import amount, count, foreign
from multisig.tokens import TokenCall
from signerd.core.checks.case import NO_FEE, Figure, InspectedCase, Verdict, allow, hold, refuse, warn
from signerd.core.families import FamilyFigures, differences, outbids, payee, pays_less, rate_text
from signerd.core.states import State
from signerd.core.values import Neighbour, Unfollowed

# How many proposals are listed, and how many payments of each; the rest is counted.
SHOWN = 3
PAYMENTS_SHOWN = 2


def conflicting(case: InspectedCase) -> Verdict:
    """S25, S6: two proposals that spend the same coins are shown as conflicting before either is signed.

    A declared fee bump and a cancel of a signed transaction are allowed; else the person is shown both. An
    imported PSBT cannot declare either: it is held where it conflicts with a signed payment.
    """
    rivals = [n for n in case.context.neighbours if case.shares_coins(n)]
    out, left = [n for n in rivals if n.may_confirm], case.context.uncompared
    cancels = case.takes_all_back and case.snapshot.imported is None
    others = [n for n in out if not (cancels or raises_only_the_fee(case, n))]
    if others:
        what = "spends coins that are signed away already: only one of them can confirm"
        if not left.rivals and all(_is_same(case, n) for n in others):
            what = "is the same transaction once more: it can confirm only once, and pays nothing more"
        return hold(f"It {what}. {_listed(case, others, left.rivals)}", proposals=_names(others, left.rivals))
    if left.rivals and not cancels:
        more = count(left.rivals, "more proposal", "more proposals")
        return hold(f"{more} may confirm and spend coins of it: too many are known here to compare them all.")
    waiting = [n for n in rivals if n.is_open]
    if waiting:
        names = _names(waiting, left.open)
        is_same = not left.open and all(_is_same(case, n) for n in waiting)
        same = f"It is the same transaction as {names}: it can confirm only once."
        other = f"{names} would spend some of the same coins. Only one of them can confirm."
        return warn(same if is_same else other, proposals=names)
    if out:
        how = "It pays nobody" if cancels else "It raises the fee"
        return allow(f"{how}: of it and {_names(out)} only one can confirm.", proposals=_names(out))
    return allow("No other proposal known here spends the same coins.")


def _is_same(case: InspectedCase, other: Neighbour) -> bool:
    return other.txid == case.psbt.tx.txid


def paid_twice(case: InspectedCase) -> Verdict:
    """S6: a second transaction that pays the same, and shares no coin with one that is signed.

    Both could confirm, and the payment would be made twice. It is held until the person acknowledges it.
    """
    same = [
        n
        for n in case.context.neighbours
        if n.may_confirm and n.payments & case.outgoing and not case.shares_coins(n)
    ]
    more = case.context.uncompared.payments
    if same:
        again = case.outgoing & frozenset().union(*(n.payments for n in same))
        return hold(
            f"It pays {_payments(case, again)} again, from other coins: both can be paid. Sign it only if "
            f"that is to be paid once more. {_listed(case, same, more)}",
            proposals=_names(same, more),
        )
    if more:
        return hold(unread(more))
    return allow("No signed transaction makes the same payment from other coins.")


def unread(more: int, what: str = "make the same payment") -> str:
    """Of more proposals than are compared. ``what``: one of them may do."""
    return (
        f"{count(more, 'more proposal', 'more proposals')} may be paid and have an output of this one: too "
        f"many are known here to compare them all, and one may {what}."
    )


def signed_by_others(case: InspectedCase) -> Verdict:
    """S27: the same payment from other coins, signed by others and not by this machine.

    Two disjoint quorums can both pay, and no machine sees both. So this compares with all signatures that the
    platform has shown, also for proposals that never awaited this machine, and also where the platform says
    that they ended.
    """
    counted = _counted(case)
    followed = (n for n in case.context.neighbours if n.collected and not n.may_confirm)
    others: tuple[Neighbour | Unfollowed, ...] = (*followed, *case.context.unfollowed)
    same = [other for other in others if other.payments & counted and not case.shares_coins(other)]
    more = case.context.uncompared.others
    if not same and more:
        return hold(unread(more))
    if not same:
        return allow("No other proposal known here makes the same payment with signatures of others.")
    listed = sorted(same, key=lambda n: n.psbt_id)
    shown = ", ".join(
        f"{other.psbt_id} ({other.collected} of {other.required} signatures, {_standing(other)})"
        for other in listed[:SHOWN]
    )
    return hold(
        f"Others have signed the same payment in another proposal of this vault, from other coins: {shown}"
        f"{_more(len(listed) + more - SHOWN)}. Both could be paid. Ask the other signers which one counts.",
        proposals=_names(same, more),
    )


def _standing(other: Neighbour | Unfollowed) -> str:
    if isinstance(other, Neighbour):
        return f"{other.state} here"
    return f"{other.status.lower()} there, and never shown here"


def _counted(case: InspectedCase) -> frozenset[tuple[bytes, int]]:
    """The outputs that must not be paid twice; for a token, its deployment or the amount that it moves."""
    output = case.inspection.token_output
    if output is None:
        return case.outgoing
    payload = output.token
    if isinstance(payload, TokenCall) and payload.amount is None:
        return frozenset()
    data = case.psbt.outputs[output.output_index]
    return frozenset({(data.script_pubkey, int(data.amount))})


_ENDED = {
    State.CONFIRMED: "has confirmed",
    State.EXPIRED: "has expired",
    State.SUPERSEDED: "was replaced",
    State.WITHDRAWN: "was rejected or cancelled, which takes no signature back",
}


def _listed(case: InspectedCase, neighbours: Sequence[Neighbour], uncompared: int = 0) -> str:
    """The proposals, when they were signed, and what they pay; first what was signed here."""
    newest = sorted(neighbours, key=lambda n: (n.signed_at is not None, n.signed_at, n.psbt_id), reverse=True)
    return f"{'. '.join(_one(case, n) for n in newest[:SHOWN])}{_more(len(newest) + uncompared - SHOWN)}."


def _one(case: InspectedCase, other: Neighbour) -> str:
    """With its proven payments, or else those that are paid here too."""
    figures = case.figures_of(other) if case.shares_coins(other) else None
    paid = other.payments & case.outgoing if figures is None else figures.payments
    pays = "the same" if paid == case.outgoing else _payments(case, paid)
    ended = f"; by the platform's word it {_ENDED[other.state]}" if other.state in _ENDED else ""
    return f"{_how(other)} {other.psbt_id}{f', which pays {pays}' if paid else ''}{ended}"


def _how(other: Neighbour) -> str:
    done = "exported, to be signed without a cable," if other.exported and not other.signed else "signed"
    if other.signed_at is not None:
        return f"On {other.signed_at:%Y-%m-%d at %H:%M} UTC you {done}"
    if other.signed or other.exported:
        return f"You {done}"
    return "Your device is asked to sign" if other.state is State.SIGNING else "The others completed"


def _payments(case: InspectedCase, payments: Iterable[tuple[bytes, int]]) -> str:
    network = case.context.network
    paid = [f"{amount(sats)} to {payee(script, network)}" for script, sats in sorted(payments)]
    return f"{', '.join(paid[:PAYMENTS_SHOWN])}{_more(len(paid) - PAYMENTS_SHOWN)}"


def _more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _names(neighbours: Iterable[Neighbour | Unfollowed], uncompared: int = 0) -> str:
    return ", ".join(sorted(neighbour.psbt_id for neighbour in neighbours)) + _more(uncompared)


# The longest id of a declared replacement that is shown.
_LONGEST_ID = 64


def replacement(case: InspectedCase) -> Verdict:
    """The platform names the replaced proposal; both transactions must prove it."""
    said = case.snapshot.replaces
    if said is None:
        return allow("It does not say that it replaces another proposal.")
    said = foreign(said)[:_LONGEST_ID]
    first, this = case.named(), case.figures
    if this is None:
        return NO_FEE
    known = None if first is None else case.figures_of(first)
    if first is None or known is None:
        return hold(
            f"It says that it replaces {said}, which this machine cannot compare it with: nothing shows "
            "that only one of them can confirm.",
            replaces=said,
        )
    figures: dict[str, Figure] = {"replaces": said, "fee_sats": this.fee, "replaced_fee_sats": known.fee}
    if case.takes_all_back:
        return _cancel(said, known, this, figures)
    changed = differences(known, this, case.context.network)
    if changed:
        return refuse(
            f"It says that it replaces {said}, but it does not only raise the fee. {' '.join(changed)}",
            replaces=said,
            differences=len(changed),
        )
    return _bump(said, known, this, figures)


def _bump(said: str, first: FamilyFigures, this: FamilyFigures, figures: dict[str, Figure]) -> Verdict:
    rise = f"from {rate_text(first)} to {rate_text(this)} ({amount(first.fee)} to {amount(this.fee)})"
    if pays_less(first, this):
        left = sum(sats for _, sats in this.payments)
        return warn(
            f"It replaces {said}, which leaves no change: the fee rises {rise} out of the payment, of which "
            f"{amount(left)} are left.",
            **figures,
        )
    sentence = f"It replaces {said}: only the fee changes, {rise}."
    if not outbids(this, first):
        return warn(f"{sentence} So small a rise not every node passes on.", **figures)
    return allow(sentence, **figures)


def _cancel(said: str, first: FamilyFigures, this: FamilyFigures, figures: dict[str, Figure]) -> Verdict:
    if this.outpoints.isdisjoint(first.outpoints):
        return refuse(
            f"It says that it replaces {said}, but it spends no coin of it and stops nothing.", replaces=said
        )
    sentence = f"It takes {said} back: whichever confirms first, this one pays nobody."
    if not outbids(this, first):
        return warn(f"{sentence} Its fee is too low to take the other's place with every node.", **figures)
    return allow(sentence, **figures)


def raises_only_the_fee(case: InspectedCase, other: Neighbour) -> bool:
    """Whether it is a proven fee bump of the proposal that it declares, and of ``other`` as well.

    The declared one need not be ``other``: a bump of a bump also has to be a bump of the first.
    """
    first = case.named()
    if first is None or case.takes_all_back:
        return False
    both = (case.figures_of(one) for one in {first.psbt_id: first, other.psbt_id: other}.values())
    this, network = case.figures, case.context.network
    return all(known and this and not differences(known, this, network) for known in both)
