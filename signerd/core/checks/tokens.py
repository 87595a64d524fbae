"""S12: does a token's transaction do what the proposal says it does, and nothing else?

What is called, by which function, how much and for whom, is in the transaction's own data. The platform's
words about it are compared with these bytes and never shown instead of them; the token's name and decimals
are proven or not shown.

A deployment commits to its first list of addresses by a hash, and no device shows any of it: what a person
sees of the list is what this module says of it.
"""

from dataclasses import dataclass
from itertools import islice

from multisig import RECEIVE, MultisigError, Sats
from multisig.tokens import (
    Bytecode,
    Call,
    Deploy,
    Function,
    Payload,
    check_deployment,
    listed_addresses,
    token_words,
)
from signerd.core.checks.case import Answer, InspectedCase, allow, hold, refuse, warn
from signerd.core.pinned_places import called_here
from signerd.core.text import amount, foreign, said
from signerd.core.tokens import HASHES, facts_of, hidden_parts, payload_of, screen_words
from signerd.core.values import ReviewContext

# What a platform says of the data, name by name; its sentence in words is not compared, and not shown.
SAID = frozenset(
    {
        *("function", "contract_id", "data_hex", "ticker", "decimals", "amount_raw", "amount", "address"),
        *("total_supply_raw", "total_supply", "max_supply_raw", "max_supply"),
        *("whitelist_enabled", "bytecode_hash", "whitelist_count", "whitelist_hash"),
    }
)
# What only the bytecode says, of a call and of a deployment.
OF_BYTECODE = frozenset({"ticker", "decimals", "amount"})
OF_LIST = frozenset({"whitelist_count", "whitelist_hash"})
GIVING = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})
# Without these it has not said what the call does.
REQUIRED = frozenset({"function", "contract_id", "amount_raw", "address"})


def token_of_case(case: InspectedCase) -> Payload:
    payload = payload_of(case.psbt)
    assert payload is not None, "a proposal about a token that carries none is refused before it is inspected"
    return payload


def token_of_payload(payload: Payload, known: Bytecode | None) -> Bytecode | None:
    """The token in whose decimals a payload may be told; None where it is not proven to be of this one."""
    if known is None or isinstance(payload, Call):
        return known
    try:
        check_deployment(payload, known)
    except MultisigError:
        return None
    return known


def gaining(case: InspectedCase) -> bytes | None:
    """The output script of the other party that gets tokens, or control of one, by this call."""
    payload = payload_of(case.psbt)
    if not isinstance(payload, Call) or payload.function not in GIVING:
        return None
    return None if payload.address == case.policy.script_pubkey(RECEIVE, 0) else payload.address


def token_known(case: InspectedCase) -> Answer:
    """S12, S13: amounts in the decimals of an unproven token would rest on the platform's word."""
    payload, known = token_of_case(case), case.around.token
    if known is None:
        return refuse(
            "This machine could not prove which token it is about: the platform has not shown the bytecode "
            "to which "
            "its deployment commits. Without it the amounts mean nothing.",
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


def token_call(case: InspectedCase) -> Answer:
    """S12: what the platform says that the data says, word by word."""
    payload = token_of_case(case)
    recorded, carried = case.snapshot.op_return, [output.data.hex() for output in case.inspection.op_returns]
    if [(recorded or "").removeprefix("0x")] != carried:
        return refuse("The data in the transaction is not the data that the proposal records.")
    token = token_of_payload(payload, case.around.token)
    differing = _differing(case, payload, token)
    if differing:
        what = ", ".join(differing)
        return refuse(
            f"The transaction's data differs from what the proposal says of it: {what}.", differs=what
        )
    sentence = token_words(payload, case.around.network, token).sentence
    return allow(f"It does what the proposal says. {sentence}")


def _differing(case: InspectedCase, payload: Payload, token: Bytecode | None) -> tuple[str, ...]:
    """The names of what is said otherwise, and of what must be said and is not."""
    told = {} if case.snapshot.call is None else dict(case.snapshot.call.told)
    facts = facts_of(payload, case.around.network, token)
    # Of a deployment everything stands in its data, and of its contract nothing can: the id is that of the
    # transaction itself.
    if isinstance(payload, Deploy):
        facts = {**facts, "contract_id": case.psbt.tx.txid}
    # What only the bytecode says cannot be compared without it; ``token-known`` refuses then.
    unknown = OF_LIST if isinstance(payload, Deploy) else OF_BYTECODE
    compared = SAID if token is not None else SAID - unknown
    otherwise = {name for name, value in told.items() if name in compared and facts.get(name) != value}
    return tuple(sorted(otherwise | (REQUIRED & facts.keys()) - told.keys()))


def token_shape(case: InspectedCase) -> Answer:
    """The vault's address is the caller and gets all the change; the transaction makes no other payment.

    The first input says who calls: with another coin of the vault the caller would be an address that owns
    and holds nothing.
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


def token_effect(case: InspectedCase) -> Answer:
    """What no later call takes back is named by the person."""
    payload, token = token_of_case(case), case.around.token
    if isinstance(payload, Deploy):
        owner = case.policy.script_pubkey(RECEIVE, 0)
        if token is not None and token.owner_script != owner:
            return refuse(
                "The token's first owner would not be this vault: on chain the deployment has no effect.",
            )
        return hold(
            f"It makes a new token, {payload.ticker}, for good: its supply, decimals and name never change "
            "again.",
        )
    if payload.function is Function.TRANSFER_OWNERSHIP:
        return hold(
            "It hands control of the token over: afterwards this vault can neither mint, burn nor stop it.",
        )
    if payload.function is Function.MINT and token is not None:
        return allow(
            f"It makes new tokens; there may never be more than {token.max_supply} raw units in all."
        )
    return allow("It gives no control of the token away.")


def token_twice(case: InspectedCase) -> Answer:
    """S6: the same deployment, or the same amount to the same holder, once more from other coins.

    The second deployment is a token beside the first. What else moves no amount does no more the second time.
    """
    payload = token_of_case(case)
    # A payload has one encoding, and a deployment of other terms than its bytecode's is never signed: a hash
    # has one script.
    scripts = {case.psbt.outputs[output.output_index].script_pubkey for output in case.inspection.op_returns}
    same = [
        other
        for other in case.around.neighbours
        if other.may_confirm
        and not case.shares_coins(other)
        and not scripts.isdisjoint(script for script, _sats in other.payments)
    ]
    listed = ", ".join(sorted(other.psbt_id for other in same))
    if same and isinstance(payload, Deploy):
        who = "You signed a deployment" if all(other.signed for other in same) else "There is a deployment"
        return hold(f"{who} of the very same token already ({listed}): both would exist.", proposals=listed)
    if same and isinstance(payload, Call) and payload.amount is not None:
        return hold(
            f"The very same call is signed already, from other coins ({listed}): both would count. "
            "Sign it only if that is to happen once more.",
            proposals=listed,
        )
    what = "deploys the same token" if isinstance(payload, Deploy) else "makes the same call"
    return allow(f"No signed transaction {what} from other coins.")


def token_on_screen(case: InspectedCase) -> Answer:
    """S28: two calls that differ in what the device cuts off look the same on it; who approves one must know
    that.

    A hash without its last bytes still tells tokens apart. An amount or a recipient that is cut off is not
    confirmed by the person.
    """
    payload, screen = token_of_case(case), case.around.screen
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


# The whole list stands beside the token's data; a sentence that is longer than a text may be would be cut
# within an address.
MOST_NAMED = 4


def token_listed(case: InspectedCase) -> Answer:
    """The person decides about the addresses themselves, and about a token that only listed ones
    may receive.
    """
    payload = token_of_case(case)
    if not isinstance(payload, Deploy):
        return allow("It makes no token, and brings no list of addresses.")
    token = token_of_payload(payload, case.around.token)
    if token is None:
        return hold("Whom it lists from the start is not known here: its bytecode is not proven.")
    count = len(token.whitelist)
    if not count:
        if not token.whitelist_enabled:
            return allow("Any address may receive it, and none is listed.", listed=0)
        return hold(
            "Only listed addresses may receive it, and none is listed: at first its owner alone.",
            listed=0,
        )
    first = listed_at_first(token, case.around, MOST_NAMED)
    named = ", ".join(listed.words for listed in first)
    more = (
        f", and {count - len(first)} more of {count}, all beside the token's data"
        if count > len(first)
        else ""
    )
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


# A name is a label beside an address, and never pushes it out of sight.


@dataclass(frozen=True)
class ListedAddress:
    """``name``: what this machine knows it as, in words; empty where it does not."""

    address: str
    name: str

    @property
    def words(self) -> str:
        return f"{self.address} ({self.name})" if self.name else self.address


def listed_at_first(
    token: Bytecode, around: ReviewContext, most: int | None = None
) -> tuple[ListedAddress, ...]:
    """In the order of the bytecode, which is one for each list; ``most``: only the first so many."""
    names = _names(around)
    addresses = listed_addresses(token, around.network)
    pairs = zip(token.whitelist, addresses, strict=True)
    return tuple(ListedAddress(address, names.get(script, "")) for script, address in islice(pairs, most))


def _names(around: ReviewContext) -> dict[bytes, str]:
    """By output script: of each pinned vault the address that owns and holds its tokens. Names that the
    platform gives are not used.
    """
    called = called_here(around.pins)
    names = {
        pin.vault.script_pubkey(RECEIVE, 0): f"your pinned vault {called[pin.vault.verification_code]}"
        for pin in around.pins
    }
    if around.pin is not None:
        names[around.pin.vault.script_pubkey(RECEIVE, 0)] = "this vault itself"
    return names
