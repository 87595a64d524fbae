"""A proposal's title: one line that says what it does, proven by its bytes and the pinned vault.

Names of addresses are from the person's address book (``[addresses]``). The platform's claims, such as memo
and proposer, are not part of a title; they are shown separately, as the platform's.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from custody.common import text
from custody.common.text import SHORT_ID, count, plain, short_address
from multisig import Inspection, Network
from multisig.inspection import ProofOfControl
from multisig.tokens import Bytecode, Deploy, Function, Payload, TokenCall, format_units
from signerd.core.addresses import PinnedPlace, address_on_screen, on_screen
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, payload_in
from signerd.core.text import bounded, person_of

Labels = Mapping[bytes, str]
"""The person's own names of addresses, by output script."""
Pinned = Mapping[bytes, PinnedPlace]
"""Addresses of vaults that are pinned here, by output script."""
NO_PINNED: Pinned = MappingProxyType({})

NOT_JUDGED = "Not judged: where its money goes is not known"
UNKNOWN_TOKEN = "tokens that this machine does not know"  # noqa: S105 - a token of value, not of access
# The platform's description, on one line of a list.
LONGEST_MEMO = 100

_CALLS = {
    Function.INIT: "Start {token}",
    Function.TRANSFER: "Send {amount} to {who}",
    Function.MINT: "Create {amount} for {who}",
    Function.BURN: "Destroy {amount} held by {who}",
    Function.PAUSE: "Stop all transfers of {token}",
    Function.UNPAUSE: "Allow transfers of {token} again",
    Function.TRANSFER_OWNERSHIP: "Hand control of {token} over to {who}",
    Function.ENABLE_WHITELIST: "Let only listed addresses receive {token}",
    Function.DISABLE_WHITELIST: "Let any address receive {token}",
    Function.ADD_TO_WHITELIST: "Let {who} receive {token}",
    Function.REMOVE_FROM_WHITELIST: "No longer let {who} receive {token}",
}


def title_of(review: ProposalReview, labels: Labels, pinned: Pinned = NO_PINNED) -> str:
    """``Pay 0.1234 BTC to Acme``. ``NOT_JUDGED`` where nothing was proven of it."""
    inspection = review.inspection
    if inspection is None:
        return NOT_JUDGED
    if inspection.proof is not None:
        return _proof(inspection.proof, inspection.network)
    proven = (
        v.figures for v in review.verdicts if v.name == "replacement" and "replaced_fee_sats" in v.figures
    )
    replaced = next((plain(str(figures["replaces"]))[:SHORT_ID] for figures in proven), None)
    if replaced is not None and not inspection.payments and not inspection.op_returns:
        return f"Take {replaced} back: {_back(inspection)} return"
    named = {
        script: f"your vault {place.called}{'' if place.fault is None else ': SEND NOTHING THERE'}"
        for script, place in pinned.items()
    }
    what = "; ".join(_what(review, inspection, {**named, **labels}))
    return what if replaced is None else f"{what}, at a higher fee than {replaced}"


def _proof(proof: ProofOfControl, network: Network) -> str:
    what = short_address(address_on_screen(proof.address, network))
    if proof.coins:
        what = f"{count(len(proof.coins), 'coin', 'coins')} with {btc(int(proof.total))}, and {what}"
    return f"Sign a message to prove control of {what}; it pays nobody"


def labels_paid(review: ProposalReview, labels: Labels) -> tuple[str, ...]:
    """The address book's names of its payees, or of a token call's address; each once."""
    if review.inspection is None:
        return ()
    payload = payload_in(review.inspection)
    holder = payload.address if isinstance(payload, TokenCall) else None
    scripts = [paid.script_pubkey for paid in review.inspection.payments]
    scripts += [] if holder is None else [holder]
    return tuple(dict.fromkeys(labels[script] for script in scripts if script in labels))


def _what(review: ProposalReview, inspection: Inspection, labels: Labels) -> Iterator[str]:
    payload = payload_in(inspection)
    if payload is not None:
        yield _token(payload, review.token, inspection.network, labels)
    if inspection.payments:
        yield _payment(review, inspection, labels)
    elif payload is None and inspection.op_returns:
        size = sum(len(output.data) for output in inspection.op_returns)
        yield f"Publish {count(size, 'byte', 'bytes')} of data, and pay nobody"
    elif payload is None:
        whose = "your own profile" if review.snapshot.is_of_profile else "the vault"
        yield f"Pay nobody: {_back(inspection)} stay in {whose}"


def _payment(review: ProposalReview, inspection: Inspection, labels: Labels) -> str:
    total = btc(sum(int(paid.amount) for paid in inspection.payments))
    into_vault = any(v.name == "forward-destination" and v.outcome is Outcome.ALLOW for v in review.verdicts)
    if into_vault and review.pin is not None:
        return f"Move {total} from your profile into '{bounded(review.pin.name)}'"
    sums: Counter[bytes] = Counter()
    for paid in inspection.payments:
        sums[paid.script_pubkey] += int(paid.amount)
    # The order of outputs is the proposer's choice: the payee with the largest sum is named.
    [(most, share)] = sums.most_common(1)
    who = _who(most, inspection.network, labels)
    if len(sums) == 1:
        return f"Pay {total} to {who}"
    return f"Pay {total} to {len(sums)} payees, {btc(share)} of it to {who}"


def _back(inspection: Inspection) -> str:
    return btc(sum(int(change.amount) for change in inspection.change))


def _token(payload: Payload, token: Bytecode | None, network: Network, labels: Labels) -> str:
    """A ticker may be "BTC", so the word "tokens" always follows it. Without the proven token amounts are raw
    units.
    """
    if isinstance(payload, Deploy):
        first = format_units(payload.total_supply, payload.decimals)
        return f"Make a new token: {first} {payload.ticker} tokens at first"
    name = UNKNOWN_TOKEN if token is None else f"{token.ticker} tokens"
    amount = ""
    if payload.amount is not None and token is not None:
        amount = f"{format_units(payload.amount, token.decimals)} {name}"
    elif payload.amount is not None:
        amount = f"{payload.amount} raw units of {name}"
    who = "" if payload.address is None else _who(payload.address, network, labels)
    return _CALLS[payload.function].format(token=name, amount=amount, who=who)


def _who(script: bytes, network: Network, labels: Labels) -> str:
    if script in labels:
        return labels[script]
    address = on_screen(script, network)
    return "a script that has no address" if address is None else short_address(address)


def btc(sats: int) -> str:
    """``0.1234 BTC``, without trailing zeros. The review has the exact amount in both units."""
    return text.btc(sats).rstrip("0").rstrip(".") + " BTC"


def memo_of(description: str) -> str:
    """The platform's description of a proposal as one line of a list."""
    return bounded(description, LONGEST_MEMO)


def proposer_of(name: str, number: str, *, imported: bool = False) -> str:
    """``imported``: ``number`` is the name of the importer."""
    return bounded(number) if imported else person_of(name, number)
