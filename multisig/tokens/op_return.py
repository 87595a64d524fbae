"""Between a payload and the output that carries it."""

from multisig.script import op_return_script, parse_op_return
from multisig.tokens.payload import Payload, decode_payload, encode_payload, is_token_payload


def token_of(data: bytes) -> Payload | None:
    """The payload in the data of an OP_RETURN output, such as an inspection shows; None where it is other data.

    Raises InvalidToken where it claims to be of a token and cannot be decoded: that is never just other data.
    """
    return decode_payload(data) if is_token_payload(data) else None


def token_of_script(script_pubkey: bytes) -> Payload | None:
    """The same from an output script; None where it does not carry data in the one standard form. Raises InvalidToken."""
    data = parse_op_return(script_pubkey)
    return None if data is None else token_of(data)


def token_script(payload: Payload) -> bytes:
    """The output script that carries a payload; its output has the value 0."""
    return op_return_script(encode_payload(payload))
