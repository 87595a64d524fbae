"""What a token's payload says, as it is shown: in the token's own decimals only where bytes have proven them."""

from collections.abc import Sequence
from typing import Any

from multisig import RECEIVE, Inspection, Network, decode_address, encode_address
from multisig.tokens import Bytecode, Call, Payload, format_units, token_words
from signerd.core.listed import ListedAddress
from signerd.core.screens import Screen, hidden_parts, screen_words
from signerd.core.text import amount, plain
from signerd.shapes import ListedView, TokenView


def token_view(
    payload: Payload,
    inspection: Inspection,
    token: Bytecode | None,
    listed: Sequence[ListedAddress] = (),
    screen: Screen | None = None,
) -> TokenView:
    """Without ``token`` amounts are raw units, and nobody's decimals make a small figure of a large one.

    ``listed``: of a deployment that ``token`` proves, whom it lists from the start. ``screen``: the signer's device's.
    """
    words = token_words(payload, inspection.network, token)
    details = tuple((plain(label), plain(value)) for label, value in words.details)
    return TokenView(
        sentence=plain(words.sentence),
        details=details,
        hex=words.hex,
        on_screen=_on_screen(words.hex, screen),
        not_on_screen=hidden_parts(payload, screen),
        notes=(screen_words(payload, screen), *_return_notes(inspection)),
        listed=tuple(ListedView(address=one.address, name=one.name or None) for one in listed),
        listed_hash=token.whitelist_hash.hex() if token is not None and listed else None,
        **({} if token is None else _proven(token)),
    )


def token_in_short(inspection: Inspection, token: Bytecode) -> str:
    """For a line of a list: "token GOLD: transfer 12.50". ``token``: what bytes have proven of the first payload."""
    output = inspection.token_output
    assert output is not None, "bytes have proven the token of a payload"
    payload = output.token
    what = payload.function.wire_name.replace("_", " ") if isinstance(payload, Call) else "a new one"
    if isinstance(payload, Call) and payload.amount is not None:
        what = f"{what} {format_units(payload.amount, token.decimals)}"
    return f"token {token.ticker}: {what}"


def _on_screen(payload: str, screen: Screen | None) -> str | None:
    if screen is None or screen.whole is None:
        return None
    return payload[: 2 * screen.shown(len(payload) // 2)]


def _proven(token: Bytecode) -> dict[str, Any]:
    return {
        "proven": True,
        "name": plain(token.name),
        "ticker": token.ticker,
        "decimals": token.decimals,
        "first_supply": format_units(token.total_supply, token.decimals),
        "max_supply": format_units(token.max_supply, token.decimals),
    }


def _return_notes(inspection: Inspection) -> tuple[str, ...]:
    """Devices know change by its chain; what returns to a receive address looks to them like a payment."""
    return tuple(
        f"Your device may show {amount(back.amount)} as a payment to {_as_devices_write(back.address, inspection.network)}: "
        "it is the vault's own address, to which what is left returns."
        for back in inspection.change
        if back.chain == RECEIVE
    )


def _as_devices_write(address: str, network: Network) -> str:
    """No device knows regtest's own form."""
    if network is not Network.REGTEST:
        return address
    return encode_address(decode_address(address, network), Network.TESTNET4) or address
