"""S12: whether a token's transaction does what the proposal says, and nothing else.

The function, the amount and the recipient are in the transaction's data. The platform's description is
compared with these bytes and never shown instead of them. The token's name and decimals are proven, or not
shown.

A deployment commits to its initial whitelist by a hash, of which no device shows the addresses: the person
sees them only here.
"""

from dataclasses import dataclass
from itertools import islice

from custody.common.text import amount, foreign, said
from multisig import RECEIVE, MultisigError, Sats
from multisig.tokens import (
    Bytecode,
    Deploy,
    Function,
    Payload,
    TokenCall,
    check_deployment,
    listed_addresses,
    token_words,
)
from signerd.core.addresses import called_here
from signerd.core.checks.case import InspectedCase, Verdict, allow, hold, refuse, warn
from signerd.core.checks.neighbours import unread
from signerd.core.tokens import HASHES, facts_of, hidden_parts, payload_of, screen_words
from signerd.core.values import ReviewContext

# The platform's fields that are compared with the data. Its sentence is neither compared nor shown.
SAID = frozenset(
    {
        *("function", "contract_id", "data_hex", "ticker", "decimals", "amount_raw", "amount", "address"),
        *("total_supply_raw", "total_supply", "max_supply_raw", "max_supply"),
        *("whitelist_enabled", "bytecode_hash", "whitelist_count", "whitelist_hash"),
    }
)
# Fields that need the bytecode: of a call, and of a deployment.
OF_BYTECODE = frozenset({"ticker", "decimals", "amount"})
OF_LIST = frozenset({"whitelist_count", "whitelist_hash"})
GIVING = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})
# Fields that the platform must state.
REQUIRED = frozenset({"function", "contract_id", "amount_raw", "address"})


def token_of_case(case: InspectedCase) -> Payload:
    payload = payload_of(case.psbt)
    assert payload is not None, "a proposal about a token that carries none is refused before it is inspected"
    return payload


def token_of_payload(payload: Payload, known: Bytecode | None) -> Bytecode | None:
    """The token in whose decimals a payload may be shown; None where it is not proven to be this one."""
    if known is None or isinstance(payload, TokenCall):
        return known
    try:
        check_deployment(payload, known)
    except MultisigError:
        return None
    return known


def gaining(case: InspectedCase) -> bytes | None:
    """The output script of another party that receives tokens or ownership by this call."""
    payload = payload_of(case.psbt)
    if not isinstance(payload, TokenCall) or payload.function not in GIVING:
        return None
    return None if payload.address == case.policy.script_pubkey(RECEIVE, 0) else payload.address


def token_known(case: InspectedCase) -> Verdict:
    """S12, S13: the decimals of an unproven token would be the platform's claim."""
    payload, known = token_of_case(case), case.context.token
    if known is None:
        return refuse(
            "This machine could not prove which token it is about: the platform has not shown the bytecode "
            "to which its deployment commits. Without it the amounts mean nothing."
        )
    if isinstance(payload, Deploy):
        try:
            check_deployment(payload, known)
        except MultisigError as error:
            return refuse(said(error))
    return allow(
        f"The token '{foreign(known.name)}' ({known.ticker}) is proven by the bytes of its deployment: "
        f"{known.decimals} decimals, first supply {known.total_supply}, never more than {known.max_supply} "
        "raw units.",
        ticker=known.ticker,
        decimals=known.decimals,
    )


def token_call(case: InspectedCase) -> Verdict:
    """S12: the platform's description of the data, field by field."""
    payload = token_of_case(case)
    recorded, carried = case.snapshot.op_return, [output.data.hex() for output in case.inspection.op_returns]
    if [(recorded or "").removeprefix("0x")] != carried:
        return refuse("The data in the transaction is not the data that the proposal records.")
    token = token_of_payload(payload, case.context.token)
    differing = _differing(case, payload, token)
    if differing:
        what = ", ".join(differing)
        return refuse(
            f"The transaction's data differs from what the proposal says of it: {what}.", differs=what
        )
    sentence = token_words(payload, case.context.network, token).sentence
    return allow(f"It does what the proposal says. {sentence}")


def _differing(case: InspectedCase, payload: Payload, token: Bytecode | None) -> tuple[str, ...]:
    """The names of fields that differ, and of required ones that are missing."""
    claimed = {} if case.snapshot.call is None else dict(case.snapshot.call.details)
    facts = facts_of(payload, case.context.network, token)
    # The contract of a deployment is the transaction itself, so its id is not in the data.
    if isinstance(payload, Deploy):
        facts = {**facts, "contract_id": case.psbt.tx.txid}
    # Not comparable without the bytecode; ``token-known`` refuses then.
    unknown = OF_LIST if isinstance(payload, Deploy) else OF_BYTECODE
    compared = SAID if token is not None else SAID - unknown
    otherwise = {name for name, value in claimed.items() if name in compared and facts.get(name) != value}
    return tuple(sorted(otherwise | (REQUIRED & facts.keys()) - claimed.keys()))


def token_shape(case: InspectedCase) -> Verdict:
    """The vault's first address is the caller and receives all change; there is no payment.

    The script of the first input is the caller: another address of the vault owns and holds no tokens.
    """
    home = (RECEIVE, 0)
    first = case.inspection.inputs[0]
    if (first.chain, first.address_index) != home:
        return refuse("Its first coin does not lie at the vault's address, which owns and holds its tokens.")
    if case.inspection.payments:
        return refuse(
            f"It pays {amount(case.paid)} to somebody; a token's transaction pays nobody.",
            paid_sats=case.paid,
        )
    if len(case.inspection.change) != 1 or any((c.chain, c.index) != home for c in case.inspection.change):
        return refuse("What comes back does not go to the vault's address, as one coin.")
    (back,) = case.inspection.change
    return allow(
        f"The vault's address calls, {amount(back.amount)} come back to it, and nobody is paid.",
        back_sats=int(Sats(back.amount)),
    )


def token_effect(case: InspectedCase) -> Verdict:
    """The person acknowledges an effect that no later call can revert."""
    payload, token = token_of_case(case), case.context.token
    if isinstance(payload, Deploy):
        owner = case.policy.script_pubkey(RECEIVE, 0)
        if token is not None and token.owner_script != owner:
            return refuse(
                "The token's first owner would not be this vault: on chain the deployment has no effect."
            )
        return hold(
            f"It makes a new token, {payload.ticker}, for good: its supply, decimals and name never change "
            "again."
        )
    if payload.function is Function.TRANSFER_OWNERSHIP:
        return hold(
            "It hands control of the token over: afterwards this vault can neither mint, burn nor stop it."
        )
    if payload.function is Function.MINT and token is not None:
        return allow(
            f"It makes new tokens; there may never be more than {token.max_supply} raw units in all."
        )
    return allow("It gives no control of the token away.")


def token_twice(case: InspectedCase) -> Verdict:
    """S6: the same deployment, or the same amount to the same holder, once more from other coins.

    A second deployment makes a second token. Other calls without an amount have no further effect.
    """
    payload = token_of_case(case)
    # A payload has one encoding, so equal calls have equal scripts.
    scripts = {case.psbt.outputs[output.output_index].script_pubkey for output in case.inspection.op_returns}
    same = [
        other
        for other in case.context.neighbours
        if other.may_confirm
        and not case.shares_coins(other)
        and not scripts.isdisjoint(script for script, _sats in other.payments)
    ]
    listed, more = ", ".join(sorted(other.psbt_id for other in same)), case.context.uncompared.payments
    counts = isinstance(payload, Deploy) or (isinstance(payload, TokenCall) and payload.amount is not None)
    if more and counts and not same:
        return hold(unread(more, "be the same call or deployment"))
    if same and isinstance(payload, Deploy):
        who = "You signed a deployment" if all(other.signed for other in same) else "There is a deployment"
        return hold(f"{who} of the very same token already ({listed}): both would exist.", proposals=listed)
    if same and isinstance(payload, TokenCall) and payload.amount is not None:
        return hold(
            f"The very same call is signed already, from other coins ({listed}): both would count. "
            "Sign it only if that is to happen once more.",
            proposals=listed,
        )
    what = "deploys the same token" if isinstance(payload, Deploy) else "makes the same call"
    return allow(f"No signed transaction {what} from other coins.")


def token_on_screen(case: InspectedCase) -> Verdict:
    """S28: what the device cuts off is not confirmed on it, and the person must know that.

    A hash without its last bytes still identifies a token. A cut amount or recipient holds the proposal.
    """
    payload, screen = token_of_case(case), case.context.screen
    hidden, sentence = hidden_parts(payload, screen), screen_words(payload, screen)
    if not hidden:
        return allow(sentence)
    if not HASHES.issuperset(hidden):
        return hold(
            f"{sentence} Compare these words with another signer's machine, or approve with a device that "
            "shows all of it.",
            hidden=", ".join(hidden),
        )
    return warn(sentence, hidden=", ".join(hidden))


# The whole list is shown with the token's data; a longer sentence could be cut within an address.
MOST_NAMED = 4


def token_listed(case: InspectedCase) -> Verdict:
    """The person acknowledges the initial whitelist, and a token that only listed addresses may receive."""
    payload = token_of_case(case)
    if not isinstance(payload, Deploy):
        return allow("It makes no token, and brings no list of addresses.")
    token = token_of_payload(payload, case.context.token)
    if token is None:
        return hold("Whom it lists from the start is not known here: its bytecode is not proven.")
    count = len(token.whitelist)
    if not count:
        if not token.whitelist_enabled:
            return allow("Any address may receive it, and none is listed.", listed=0)
        return hold(
            "Only listed addresses may receive it, and none is listed: at first its owner alone.", listed=0
        )
    first = listed_at_first(token, case.context, MOST_NAMED)
    named = ", ".join(listed.words for listed in first)
    rest = count - len(first)
    more = f", and {rest} more of {count}, all beside the token's data" if rest else ""
    digest = token.whitelist_hash.hex()
    who = (
        "Only listed addresses may receive it"
        if token.whitelist_enabled
        else "Any address may receive it until only listed ones may"
    )
    what = "is one address" if count == 1 else f"are {count} addresses"
    return hold(
        f"{who}. Listed from the start {what}: {named}{more}. The list's SHA-256 is {digest}.",
        listed=count,
        list_hash=digest,
    )


@dataclass(frozen=True)
class KnownAddress:
    """``name``: what this machine knows it as; empty if unknown."""

    address: str
    name: str

    @property
    def words(self) -> str:
        return f"{self.address} ({self.name})" if self.name else self.address


def listed_at_first(
    token: Bytecode, context: ReviewContext, most: int | None = None
) -> tuple[KnownAddress, ...]:
    """In the order of the bytecode; ``most``: only the first ones."""
    names = _names(context)
    addresses = listed_addresses(token, context.network)
    pairs = zip(token.whitelist, addresses, strict=True)
    return tuple(KnownAddress(address, names.get(script, "")) for script, address in islice(pairs, most))


def _names(context: ReviewContext) -> dict[bytes, str]:
    """Names by output script, for each pinned vault's token address. The platform's names are not used."""
    called = called_here(context.pins)
    names = {
        pin.vault.script_pubkey(RECEIVE, 0): f"your pinned vault {called[pin.vault.verification_code]}"
        for pin in context.pins
    }
    if context.pin is not None:
        names[context.pin.vault.script_pubkey(RECEIVE, 0)] = "this vault itself"
    return names
