"""The plan of an evacuation as text, for the member who requests it and for the one who confirms it."""

from typing import TYPE_CHECKING

from custody.cli.amounts import in_btc
from custody.text import count

if TYPE_CHECKING:
    from custody.schemas.evacuations import EvacuationPlan


def plan_lines(plan: "EvacuationPlan") -> list[str]:
    lines = [
        f"Plan {plan.plan_hash[:8]}: {count(len(plan.vaults), 'vault', 'vaults')}, fee {plan.fee_rate} sat/vB"
    ]
    if plan.new_keys:
        lines.append("New in quorums, ask each for the fingerprint by another way:")
        lines += [f"   {key.in_words()}" for key in plan.new_keys]
    for place, each in enumerate(plan.vaults, start=1):
        exposed = f"{each.exposed} of {each.n} keys exposed, {each.m} sign"
        lines.append(f"{place}. '{each.vault_name}' {each.vault_id}: {exposed}")
        if each.cannot is not None:
            lines.append(f"   cannot be moved: {each.cannot}")
            continue
        amounts = f"{in_btc(each.amount_sats)} BTC, fee {each.fee_sats} sats"
        lines.append(f"   to '{each.replacement_name}': {amounts}")
        lines += [f"   signer {signer.in_words()}" for signer in each.signers]
        lines += [f"   {note}" for note in each.notes]
    if plan.further_vaults:
        more = count(plan.further_vaults, "more vault is", "more vaults are")
        lines.append(f"{more} exposed: plan again after this.")
    return lines
