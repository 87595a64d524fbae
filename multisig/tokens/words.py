"""What a payload says, in words for a person, beside the hex that the device shows.

The sentence has only our words, ASCII tickers, figures and addresses. A token's name may be in any script and
could reorder the figures beside it, so it is a detail of its own. A ticker may be "BTC", so the word "tokens"
always follows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from multisig.hashes import sha256
from multisig.network import Network
from multisig.script import encode_address
from multisig.tokens.bytecode import Bytecode, check_deployment
from multisig.tokens.payload import Deploy, Function, Payload, TokenCall, encode_payload
from multisig.tokens.values import TokenAmount, format_units

# Of an icon's text no more is repeated; the longest has 512 characters.
LONGEST_ICON = 120


@dataclass(frozen=True, slots=True)
class TokenWords:
    """`sentence` is what happens; `details` are label and value; `hex` is the whole data, as a device shows
    it.
    """

    sentence: str
    details: tuple[tuple[str, str], ...]
    hex: str


_SENTENCES = {
    Function.INIT: "Start {token}: its first supply{first} goes to the owner.",
    Function.TRANSFER: "Send {amount} to {address}.",
    Function.MINT: "Create {amount} for {address}.",
    Function.BURN: "Destroy {amount} held by {address}.",
    Function.PAUSE: "Stop all transfers of {token}.",
    Function.UNPAUSE: "Allow transfers of {token} again.",
    Function.TRANSFER_OWNERSHIP: (
        "Hand control of {token} over to {address}. Only the new owner could ever give it back."
    ),
    Function.ENABLE_WHITELIST: "From now on, only listed addresses may receive {token}.",
    Function.DISABLE_WHITELIST: "From now on, any address may receive {token}.",
    Function.ADD_TO_WHITELIST: "Let {address} receive {token}.",
    Function.REMOVE_FROM_WHITELIST: "No longer let {address} receive {token}.",
}


def token_words(payload: Payload, network: Network, bytecode: Bytecode | None = None) -> TokenWords:
    """A payload in words; `bytecode` is that of its token where this machine knows it.

    The caller looks the bytecode up by the call's contract: nothing in a call's bytes proves it. A
    deployment's is compared. Raises InvalidToken for a deployment that is not of this bytecode.
    """
    if isinstance(payload, Deploy):
        sentence, details = _deploy(payload, network, bytecode)
    else:
        sentence, details = _call(payload, network, bytecode)
    return TokenWords(sentence, details, encode_payload(payload).hex())


def _deploy(
    deploy: Deploy, network: Network, bytecode: Bytecode | None
) -> tuple[str, tuple[tuple[str, str], ...]]:
    if bytecode is not None:
        check_deployment(deploy, bytecode)
    total = format_units(deploy.total_supply, deploy.decimals)
    most = format_units(deploy.max_supply, deploy.decimals)
    who = "Only listed addresses" if deploy.whitelist_enabled else "Any address"
    sentence = (
        f"Create {deploy.ticker} tokens: {total} at first, never more than {most}. {who} may receive them."
    )
    details = (
        ("function", "deploy"),
        ("decimals", str(deploy.decimals)),
        ("raw total supply", str(deploy.total_supply)),
        ("raw maximum supply", str(deploy.max_supply)),
        ("bytecode hash", deploy.bytecode_hash.hex()),
    )
    return sentence, details + (() if bytecode is None else _known(bytecode, network))


def listed_addresses(bytecode: Bytecode, network: Network) -> Iterator[str]:
    """The addresses of the initial whitelist, in the order of the bytecode: up to a thousand."""
    return (_address(script, network) for script in bytecode.whitelist)


def _known(bytecode: Bytecode, network: Network) -> tuple[tuple[str, str], ...]:
    """The details of a known bytecode. Of the list only length and hash: callers show `listed_addresses` as
    well.
    """
    return (
        ("name", bytecode.name),
        ("first owner", _address(bytecode.owner_script, network)),
        ("icon", _icon(bytecode.icon)),
        ("addresses listed at first", str(len(bytecode.whitelist))),
        *((("SHA-256 of that list", bytecode.whitelist_hash.hex()),) if bytecode.whitelist else ()),
    )


def _icon(text: str) -> str:
    """The icon as plain text, never as a link or a picture; this machine never fetches it."""
    if len(text) <= LONGEST_ICON:
        return text or "none"
    digest = sha256(text.encode()).hex()
    return f"{text[:LONGEST_ICON]}… (cut: {len(text)} characters in all, SHA-256 {digest})"


def _call(
    call: TokenCall, network: Network, bytecode: Bytecode | None
) -> tuple[str, tuple[tuple[str, str], ...]]:
    address = None if call.address is None else _address(call.address, network)
    sentence = _SENTENCES[call.function].format(
        token="tokens that this machine does not know" if bytecode is None else f"{bytecode.ticker} tokens",
        amount=None if call.amount is None else _amount(call.amount, bytecode),
        address=address,
        first="" if bytecode is None else f", {_amount(bytecode.total_supply, bytecode)},",
    )
    details = (
        ("function", call.function.wire_name),
        ("contract", call.contract_id),
        *(() if call.amount is None else (("raw amount", str(call.amount)),)),
        *(() if address is None else (("address", address),)),
        *(() if bytecode is None else (("name", bytecode.name), ("decimals", str(bytecode.decimals)))),
    )
    return sentence, details


def _amount(amount: TokenAmount, bytecode: Bytecode | None) -> str:
    if bytecode is None:
        # Without the decimals a figure in whole tokens would be a guess.
        units = "raw unit" if amount == 1 else "raw units"
        return f"{amount} {units} of tokens that this machine does not know"
    return f"{format_units(amount, bytecode.decimals)} {bytecode.ticker} tokens"


def _address(script: bytes, network: Network) -> str:
    address = encode_address(script, network)
    assert address is not None, "a payload holds only scripts that have an address"
    return address
