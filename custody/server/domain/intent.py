"""What a request asks to pay: addresses or BIP-21 links with amounts, and data for an OP_RETURN."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from custody.recipients import SCHEME
from custody.server.domain.errors import Invalid
from multisig.errors import MultisigError
from multisig.script import MAX_OP_RETURN_BYTES
from multisig.tokens import is_token_payload
from multisig.units import Sats, parse_btc


@dataclass(frozen=True)
class Recipient:
    """An address as text, not yet checked, and the amount of the link, if any."""

    address: str
    amount: Sats | None


def parse_recipient(text: str, pointer: str) -> Recipient:
    """An address, or a BIP-21 link. Raises Invalid for a link with an unknown ``req-`` parameter."""
    if not text.lower().startswith(SCHEME):
        return Recipient(text, None)
    address, _, query = text[len(SCHEME) :].partition("?")
    amount: Sats | None = None
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "amount":
            if amount is not None:
                raise Invalid.at(pointer, "The link names its amount twice.")
            amount = _amount(value, pointer)
        elif name.startswith("req-"):
            raise Invalid.at(
                pointer, f"The link requires {name!r}, which this platform does not know (BIP-21)."
            )
    return Recipient(unquote(address), amount)


def _amount(text: str, pointer: str) -> Sats:
    try:
        amount = parse_btc(text)
    except MultisigError as error:
        raise Invalid.at(pointer, f"The link's amount cannot be read: {error}") from error
    if amount == 0:
        raise Invalid.at(pointer, "The link asks for nothing: its amount is zero.")
    return amount


def merge_amount(recipient: Recipient, given: int | None, pointer: str) -> Sats:
    """The amount of a recipient: the link's or the request's. Where both give one, they must be equal."""
    if given is None and recipient.amount is None:
        sentence = (
            "Each recipient needs an amount: in amounts_sats, or in its BIP-21 link. "
            "Only the single recipient of a new send may have none: it is sent everything."
        )
        raise Invalid.at(pointer, sentence)
    if given is not None and recipient.amount is not None and given != recipient.amount:
        raise Invalid.at(pointer, "The link and amounts_sats name different amounts.")
    return Sats(given) if given is not None else recipient.amount or Sats(0)


def parse_op_return(text: str) -> bytes:
    """The payload: hex where prefixed ``0x``, else UTF-8.

    Raises Invalid for more than 80 bytes, for broken hex, and for data that poses as a token call.
    """
    payload = _hex(text[2:]) if text.startswith("0x") else text.encode()
    if not payload:
        raise Invalid.at("/op_return", "The data is empty.")
    if len(payload) > MAX_OP_RETURN_BYTES:
        raise Invalid.at(
            "/op_return", f"The data has {len(payload)} bytes; nodes relay {MAX_OP_RETURN_BYTES} at most."
        )
    if is_token_payload(payload):
        # Only the token endpoints may make one (P30).
        raise Invalid.at("/op_return", "Data that begins with CPT is a token call; use call-contract.")
    return payload


def _hex(text: str) -> bytes:
    if any(character not in "0123456789abcdefABCDEF" for character in text) or len(text) % 2:
        raise Invalid.at("/op_return", "After 0x comes an even number of hex digits.")
    return bytes.fromhex(text)
