"""Payments against the platform's record (S12), fees against the configured limits (S7), and the addresses of
change (S29).
"""

from collections import Counter
from collections.abc import Sequence

from custody.common.recipients import alike_words
from custody.common.text import amount, count, said
from multisig import RECEIVE, MultisigError, ProvenChange, Sats, Vault, decode_address
from signerd.core.addresses import receive_scripts
from signerd.core.checks.case import NO_FEE, InspectedCase, Verdict, allow, hold, refuse, warn
from signerd.core.families import payee
from signerd.core.places import GAP, NEW_POLICY, is_near, last_below, policy_code, with_coins
from signerd.core.text import as_argument, place_words


def proven(case: InspectedCase) -> Verdict:
    """Sums up the inspection; its findings follow under their own names."""
    if not case.inspection.ok:
        return refuse("The transaction's bytes do not prove what they claim.")
    whose = "the vault's" if isinstance(case.policy, Vault) else "your own profile's"
    return allow(f"Every input is {whose}, every amount is proven, and all change comes back to it.")


def transaction_id(case: InspectedCase) -> Verdict:
    """The transaction id must be the one that the platform names."""
    txid = case.psbt.tx.txid
    if txid != case.snapshot.txid_expected:
        return refuse(
            "The platform names another transaction id than the PSBT's.", said=case.snapshot.txid_expected
        )
    return allow("The transaction id is the one that the platform names.", txid=txid)


def payments_match(case: InspectedCase) -> Verdict:
    """Every payment goes to a recorded recipient, and every recipient is paid."""
    try:
        recorded = Counter(_recorded_scripts(case))
    except MultisigError as error:
        return refuse(f"A recorded recipient is not an address of this network: {said(error)}")
    paid = Counter(payment.script_pubkey for payment in case.inspection.payments)
    own = Counter(script for script, _amount in case.returning)
    if paid - recorded:
        return refuse("The transaction pays somebody whom the proposal does not name.")
    # A recipient may be the vault itself: its output is inspected as change, and counts as that payment.
    if (recorded - paid) - own:
        return refuse("A recipient whom the proposal names is not paid.")
    return allow("Exactly the recorded recipients are paid.", recipients=recorded.total())


def amounts_match(case: InspectedCase) -> Verdict:
    """Each recipient gets the recorded amount. Says nothing where ``recipients`` already refuses."""
    snapshot = case.snapshot
    if len(snapshot.amounts) != len(snapshot.recipients):
        return refuse("The proposal does not record one amount for each recipient.")
    try:
        recorded = Counter(zip(_recorded_scripts(case), snapshot.amounts, strict=True))
    except MultisigError:
        return refuse("The recorded amounts cannot be compared: a recipient is not an address.")
    paid = Counter((payment.script_pubkey, int(payment.amount)) for payment in case.inspection.payments)
    own = Counter(case.returning)
    if paid - recorded or (recorded - paid) - own:
        return refuse("An amount in the transaction differs from the one that the proposal records.")
    total = Sats(sum(snapshot.amounts))
    return allow(f"The amounts are the recorded ones, {amount(total)} in all.", total_sats=int(total))


def data_matches(case: InspectedCase) -> Verdict:
    """OP_RETURN data is what the proposal records, none where it records none (S10), and no token's (S12).

    The person acknowledges the data of an imported PSBT, which no record names. A token's call moves more
    than its coins: as a plain payment it would be judged by the coins alone.
    """
    return _recorded_data(case) if case.snapshot.imported is None else _imported_data(case)


def _recorded_data(case: InspectedCase) -> Verdict:
    recorded = case.snapshot.op_return
    carried = [output.data for output in case.inspection.op_returns]
    expected = [] if recorded is None else [_data_bytes(recorded)]
    if carried != expected:
        return refuse(
            "The data in the transaction is not the data that the proposal records.",
            carried=" ".join(data.hex() for data in carried) or "none",
        )
    if case.inspection.token_output is not None:
        return refuse("The data is a token's, and the proposal does not say that it is about a token.")
    if not carried:
        return allow("It carries no data.")
    return allow(f"It carries the recorded {count(len(carried[0]), 'byte', 'bytes')} of data.")


def _imported_data(case: InspectedCase) -> Verdict:
    carried = case.inspection.op_returns
    if any(output.token is not None for output in carried):
        return refuse("The data is a token's, and what is imported may be about coins only.")
    if carried:
        size = sum(len(output.data) for output in carried)
        return hold(
            f"It carries {count(size, 'byte', 'bytes')} of data, which its record does not mention.",
            bytes=size,
        )
    return allow("It carries no data.")


def fee_matches(case: InspectedCase) -> Verdict:
    """The fee is what the proposal records."""
    fee = case.fee
    if fee is None:
        return NO_FEE
    if fee != case.snapshot.fee:
        return refuse(
            f"The transaction pays a fee of {amount(fee)}; the proposal records another.",
            fee_sats=int(fee),
            recorded_sats=case.snapshot.fee,
        )
    return allow(f"The fee is the recorded one, {amount(fee)}.", fee_sats=int(fee))


def _recorded_scripts(case: InspectedCase) -> list[bytes]:
    return [decode_address(text, case.context.network) for text in case.snapshot.recipients]


def _data_bytes(recorded: str) -> bytes:
    if recorded.startswith("0x"):
        try:
            return bytes.fromhex(recorded[2:])
        except ValueError:
            return b""
    return recorded.encode()


def total_fee_limit(case: InspectedCase) -> Verdict:
    fee, most = case.fee, case.context.limits.max_fee
    if fee is None:
        return NO_FEE
    figures = {"fee_sats": int(fee), "limit_sats": int(most)}
    if fee > most:
        return refuse(f"The fee of {amount(fee)} is above the limit of {amount(most)}.", **figures)
    return allow(f"The fee is within the limit of {amount(most)}.", **figures)


def fee_rate_limit(case: InspectedCase) -> Verdict:
    rate, most = case.inspection.fee_rate, case.context.limits.max_fee_rate
    if rate is None or case.fee is None:
        return NO_FEE
    figures = {"sat_per_kvb": rate.sat_per_kvb, "limit_sat_per_kvb": most.sat_per_kvb}
    if rate.sat_per_kvb > most.sat_per_kvb:
        return refuse(
            f"The fee rate of {rate.sat_per_vb} sat/vB is above the limit of {most.sat_per_vb}.", **figures
        )
    return allow(f"The fee rate is {rate.sat_per_vb} sat/vB.", **figures)


def fee_share_limit(case: InspectedCase) -> Verdict:
    """Its share of all outputs, as a Coldcard measures it; much change hides a fee above what is paid."""
    limits = case.context.limits
    fee, outputs, paid = case.fee, case.inspection.total_out, case.paid
    if fee is None:
        return NO_FEE
    share = f"{fee / outputs:.2%}" if outputs else "all"
    figures = {"fee_sats": int(fee), "outputs_sats": int(outputs), "limit_percent": limits.max_fee_percent}
    say = warn if fee * 100 >= outputs * limits.warn_fee_percent else allow
    say = refuse if fee * 100 >= outputs * limits.max_fee_percent else say
    if say is allow and 0 < paid < fee:
        return warn(f"The fee of {amount(fee)} is more than what is paid, {amount(Sats(paid))}.", **figures)
    return say(f"The fee is {share} of what the transaction moves.", **figures)


# How many are listed; the rest is counted.
SHOWN = 3


def change_index(case: InspectedCase) -> Verdict:
    """Holds change to an address beyond the gap limit from every address that is known to be used.

    Other outputs of this transaction do not count as used.
    """
    known = with_coins(case.context.places.get(policy_code(case.policy), NEW_POLICY), case.inspection)
    far = [back for back in case.inspection.change if not is_near(known[back.chain], back.index)]
    if not far:
        return allow(f"What comes back goes to addresses that a wallet with a gap limit of {GAP:,} finds.")
    furthest = max(far, key=lambda back: back.index)
    below = last_below(known[furthest.chain], furthest.index)
    seen = "none of that chain" if below is None else f"{below:,}"
    return hold(
        f"It sends {_listed(far)}. The highest address below that this machine knows to be used is {seen}: "
        f"a wallet that restores the keys looks {GAP:,} addresses further and would not find this money. "
        "Approve it only if you know why it goes there, and write the index down.",
        chain=furthest.chain,
        address_index=furthest.index,
        outputs=", ".join(str(back.output_index) for back in far),
    )


def _listed(far: Sequence[ProvenChange]) -> str:
    listed = [f"{amount(back.amount)} to {place_words(back.chain, back.index)}" for back in far[:SHOWN]]
    more = f", and {len(far) - SHOWN} more" if len(far) > SHOWN else ""
    return f"{', '.join(listed)}{more}"


def into_pinned(case: InspectedCase) -> Verdict:
    """S16: where the platform says that the vault is replaced, its money goes to vaults that are pinned here.
    Else it is held: the platform alone has shown the new vault. A sweep pays its first address.
    """
    claim = case.context.claim
    if claim is None or claim.replaced_by is None:
        return allow("The platform does not say that another vault replaces this one.")
    known = {script for pin in case.context.pins for script in receive_scripts(pin.vault, 0)}
    unknown = [payment for payment in case.to_others if payment.script_pubkey not in known]
    if not unknown:
        return allow("The platform says that the vault is replaced. It pays no one but vaults pinned here.")
    total = Sats(sum(payment.amount for payment in unknown))
    return hold(
        f"The platform says that another vault replaces this one. {amount(total)} go to no vault that is "
        f"pinned here. Pin the new one first: `signerd pin {as_argument(claim.replaced_by)}`. If you do not "
        "sign for it, compare the address with two of those who do.",
        replaced_by=claim.replaced_by,
        total_sats=int(total),
    )


def look_alike(case: InspectedCase) -> Verdict:
    """S37: a payee has the ends of an address that this machine signed a payment to, pinned as a vault's
    first, or has a name for, and is another one.
    """
    network, resembled = case.context.network, case.context.resembled
    paid = (payee(payment.script_pubkey, network) for payment in case.inspection.payments)
    alike = [address for address in paid if address in resembled]
    if not alike:
        return allow("No payee only resembles an address that was paid, pinned or named here before.")
    known, more = resembled[alike[0]], len(set(alike)) - 1
    return hold(
        alike_words(alike[0], known) + (f" So it is with {more} more of its payees." if more else ""),
        address=alike[0],
        resembles=known,
    )


# A forward goes to the vault's next unused address, which only the chain and the platform know. Addresses up
# to the gap limit are accepted: a wallet that restores the vault finds them (S9). Deriving them all takes
# half a second, once, for a vault with the most keys.
RECEIVE_ADDRESSES = GAP


def into_vault(case: InspectedCase) -> Verdict:
    """S12: the only payment goes to an address derived from the pinned vault; the rest is change."""
    payments = case.inspection.payments
    if case.inspection.op_returns:
        return refuse("A forward carries no data, and this one does.")
    if len(payments) != 1:
        return refuse(
            f"A forward pays the vault and nobody else; this one has {len(payments)} payments.",
            payments=len(payments),
        )
    pin = case.context.pin
    assert pin is not None, "a forward whose vault is not pinned is not inspected"
    (paid,) = payments
    script, vault = paid.script_pubkey, pin.vault
    index = next((at for at in range(RECEIVE_ADDRESSES) if vault.script_pubkey(RECEIVE, at) == script), None)
    if index is None:
        to = payee(script, case.context.network)
        return refuse(f"It pays {to}, which is no receive address of the pinned vault.")
    return allow(
        f"All of {amount(paid.amount)} goes into the pinned vault, to its address {index}.",
        address_index=index,
    )
