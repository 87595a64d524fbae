"""What else is on the way: the same coins spent twice (S25), the same payment made twice (S6)."""

from signerd.core.checks.case import InspectedCase
from signerd.core.values import Neighbour
from signerd.core.verdicts import Verdict, allow, hold, warn


def conflicting(case: InspectedCase) -> Verdict:
    """S25: two proposals that spend the same coins are shown as conflicting before either is signed."""
    name = "conflict"
    rivals = [n for n in case.around.neighbours if _shares_coins(case, n)]
    signed = [n for n in rivals if n.may_confirm]
    if signed:
        return hold(
            name,
            f"You already signed {_names(signed)}, which spends some of the same coins. Only one of them can confirm.",
            proposals=_names(signed),
        )
    waiting = [n for n in rivals if n.is_open]
    if waiting:
        return warn(
            name,
            f"{_names(waiting)} would spend some of the same coins. Only one of them can confirm.",
            proposals=_names(waiting),
        )
    return allow(name, "No other proposal known here spends the same coins.")


def paid_twice(case: InspectedCase) -> Verdict:
    """S6: a second transaction that pays the same, and shares no coin with a signed one that may still confirm.

    Both could confirm: the payment would be made twice. It is held until the person has seen both and says so.
    """
    name = "paid-twice"
    same = [
        n
        for n in case.around.neighbours
        if n.may_confirm and n.payments & case.outgoing and not _shares_coins(case, n)
    ]
    if same:
        return hold(
            name,
            f"You already signed {_names(same)}, which pays the same amount to the same address and may still "
            "confirm. If both confirm, it is paid twice.",
            proposals=_names(same),
        )
    return allow(name, "No signed transaction that may still confirm makes the same payment.")


def _shares_coins(case: InspectedCase, other: Neighbour) -> bool:
    return any(inspected.outpoint in other.outpoints for inspected in case.inspection.inputs)


def _names(neighbours: list[Neighbour]) -> str:
    return ", ".join(sorted(neighbour.psbt_id for neighbour in neighbours))
