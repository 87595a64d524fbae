"""S7: what the miner gets, against limits that only this machine's configuration sets."""

from multisig import Sats
from signerd.core.checks.case import InspectedCase
from signerd.core.text import amount
from signerd.core.verdicts import Verdict, allow, refuse, warn


def total_fee_limit(case: InspectedCase) -> Verdict:
    name, fee, most = "fee-total", case.inspection.fee, case.around.limits.max_fee
    figures = {"fee_sats": int(fee), "limit_sats": int(most)}
    if fee > most:
        return refuse(name, f"The fee of {amount(fee)} is above the limit of {amount(most)}.", **figures)
    return allow(name, f"The fee is within the limit of {amount(most)}.", **figures)


def fee_rate_limit(case: InspectedCase) -> Verdict:
    name, rate, most = "fee-rate", case.inspection.fee_rate, case.around.limits.max_fee_rate
    figures = {"sat_per_kvb": rate.sat_per_kvb, "limit_sat_per_kvb": most.sat_per_kvb}
    if rate.sat_per_kvb > most.sat_per_kvb:
        return refuse(
            name,
            f"The fee rate of {rate.sat_per_vb} sat/vB is above the limit of {most.sat_per_vb}.",
            **figures,
        )
    return allow(name, f"The fee rate is {rate.sat_per_vb} sat/vB.", **figures)


def fee_share_limit(case: InspectedCase) -> Verdict:
    """The fee's share of all outputs, as a Coldcard measures it."""
    name, limits = "fee-share", case.around.limits
    fee, outputs = case.inspection.fee, case.inspection.total_out
    share = _share(fee, outputs)
    figures = {"fee_sats": int(fee), "outputs_sats": int(outputs), "limit_percent": limits.max_fee_percent}
    if fee * 100 >= outputs * limits.max_fee_percent:
        return refuse(name, f"The fee is {share} of what the transaction moves.", **figures)
    if fee * 100 >= outputs * limits.warn_fee_percent:
        return warn(name, f"The fee is {share} of what the transaction moves.", **figures)
    return allow(name, f"The fee is {share} of what the transaction moves.", **figures)


def _share(fee: Sats, outputs: Sats) -> str:
    return f"{fee / outputs:.2%}" if outputs else "all"
