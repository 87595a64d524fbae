"""S11: whoever says that a proposal replaces another one may raise its fee, or take everything back, and nothing else."""

from signerd.core.checks.case import InspectedCase
from signerd.core.families import Figures, differences, outbids, rate_text
from signerd.core.text import amount, plain
from signerd.core.values import Neighbour
from signerd.core.verdicts import Figure, Verdict, allow, hold, refuse, warn

# Of a declaration, no more than this is repeated: it is a proposal's id.
_LONGEST_ID = 64


def replacement(case: InspectedCase) -> Verdict:
    """The platform names what is replaced; whether it is, is read from both transactions."""
    name, said = "replacement", case.snapshot.replaces
    if said is None:
        return allow(name, "It does not say that it replaces another proposal.")
    said = plain(said)[:_LONGEST_ID]
    first = case.named()
    known = None if first is None else case.figures_of(first)
    if first is None or known is None:
        return hold(
            name,
            f"It says that it replaces {said}, which this machine cannot compare it with: nothing shows that only one "
            "of them can confirm.",
            replaces=said,
        )
    return _cancel(case, said, known) if case.figures.takes_all_back else _bump(case, said, known)


def _bump(case: InspectedCase, said: str, first: Figures) -> Verdict:
    name, this = "replacement", case.figures
    found = differences(first, this, case.around.network)
    if found:
        return refuse(
            name,
            f"It says that it replaces {said}, but it does not only raise the fee. {' '.join(found)}",
            replaces=said,
            differences=len(found),
        )
    figures: dict[str, Figure] = {"replaces": said, "fee_sats": this.fee, "replaced_fee_sats": first.fee}
    sentence = (
        f"It replaces {said}: only the fee changes, from {rate_text(first)} to {rate_text(this)} "
        f"({amount(first.fee)} to {amount(this.fee)})."
    )
    if not outbids(this, first):
        return warn(name, f"{sentence} So small a rise not every node passes on.", **figures)
    return allow(name, sentence, **figures)


def _cancel(case: InspectedCase, said: str, first: Figures) -> Verdict:
    name, this = "replacement", case.figures
    figures: dict[str, Figure] = {"replaces": said, "fee_sats": this.fee, "replaced_fee_sats": first.fee}
    if this.outpoints.isdisjoint(first.outpoints):
        return refuse(
            name,
            f"It says that it replaces {said}, but it spends no coin of it and stops nothing.",
            replaces=said,
        )
    sentence = f"It takes {said} back: whichever confirms first, this one pays nobody."
    if not outbids(this, first):
        return warn(
            name, f"{sentence} Its fee is too low to take the other's place with every node.", **figures
        )
    return allow(name, sentence, **figures)


def raises_only_the_fee(case: InspectedCase, other: Neighbour) -> bool:
    """It is a declared fee bump that holds what it says, and raises only the fee of this one too: of one family.

    The declared one need not be ``other``: a bump of a bump is one of the first as well, or it is not let through.
    """
    first = case.named()
    if first is None or case.figures.takes_all_back:
        return False
    return all(_is_bump(case, one) for one in {first.psbt_id: first, other.psbt_id: other}.values())


def _is_bump(case: InspectedCase, other: Neighbour) -> bool:
    known = case.figures_of(other)
    return known is not None and not differences(known, case.figures, case.around.network)
