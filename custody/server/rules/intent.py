"""What a request asks to pay: addresses or payment links with amounts, and data for an OP_RETURN."""

from custody.common.payment_links import Recipient, read_recipient
from custody.server.errors import Invalid
from multisig import Network
from multisig.errors import MultisigError
from multisig.script import MAX_OP_RETURN_BYTES
from multisig.tokens import is_token_payload
from multisig.units import Sats


def parse_recipient(text: str, network: Network, pointer: str) -> Recipient:
    """Raises Invalid for a link that cannot be paid."""
    try:
        return read_recipient(text, network)
    except MultisigError as error:
        raise Invalid.at(pointer, str(error)) from error


def merge_amount(recipient: Recipient, given: int | None, pointer: str) -> Sats:
    """The amount of a recipient: the link's or the request's. Where both give one, they must be equal."""
    if given is None and recipient.amount is None:
        sentence = (
            "This recipient has no amount: give it in amounts_sats, or in a payment link (BIP-321), or send "
            "everything with sweep: true."
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
