"""The emergency kit's document: one HTML file without scripts or network requests, for printing.

It holds public keys only. A reader cannot spend, but can see every payment of the vault.
"""

import base64
import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from custody.common.pages.rendering import Templates
from custody.common.text import plain
from firmware_bridge import BridgeError
from firmware_bridge.airgap import Content, EnrolmentForm, bbqr, draw, enrolment_text
from multisig import CHANGE, RECEIVE, Network, Vault
from signerd.core.states import network_words
from signerd.core.values import Pin

FOLDER = Path(__file__).parent
TEMPLATES = Templates(FOLDER)
ADDRESSES = 5
# Few cameras read a denser printed code; a longer text becomes a series (BBQr).
MOST_IN_A_CODE = 600
# Imported within minutes; Core extends the range as addresses are used.
RANGE = 999
WALLET = "vault"
_FILE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class TextWithCode:
    """A text and its QR code as SVG."""

    text: str
    picture: Markup


def kit(pin: Pin, made_at: datetime) -> str:
    """The document of a pinned vault, as HTML."""
    vault, style = pin.vault, (FOLDER / "kit.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return TEMPLATES.render(
        "kit.html",
        # Our own file, whose hash is in the policy.
        style=Markup(style),  # noqa: S704
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        name=plain(pin.name),
        network=network_words(str(vault.network)),
        vault=vault,
        own=pin.own_key,
        made_at=f"{made_at:%Y-%m-%d}",
        codes=_codes(vault.descriptor),
        addresses=tuple(
            _address(vault, chain, index) for chain in (RECEIVE, CHANGE) for index in range(ADDRESSES)
        ),
        core=core_lines(vault),
        hwi_chain=chain_name(vault.network),
        coldcard=_enrolment(vault, pin.name),
    )


def chain_name(network: Network) -> str:
    """For bitcoin-cli -chain= and hwi --chain."""
    return "main" if network is Network.MAINNET else str(network)


def file_name(pin: Pin) -> str:
    """``kit-`` and the vault's name in a-z, 0-9 and dashes."""
    return f"kit-{_FILE.sub('-', pin.name.lower()).strip('-')[:40] or 'vault'}.html"


def _codes(text: str) -> tuple[TextWithCode, ...]:
    """One code, or a series where one would be too dense."""
    if len(text) <= MOST_IN_A_CODE:
        return (_coded(text, text),)
    parts = bbqr.split(text.encode(), Content.TEXT, max_characters=MOST_IN_A_CODE)
    return tuple(_coded(f"{number} of {len(parts)}", part) for number, part in enumerate(parts, start=1))


def _address(vault: Vault, chain: int, index: int) -> tuple[str, int, TextWithCode]:
    text = vault.address(chain, index)
    # Upper case makes a smaller code (alphanumeric mode) and is valid (BIP-173).
    return "receive" if chain == RECEIVE else "change", index, _coded(text, text.upper())


def _coded(text: str, content: str) -> TextWithCode:
    drawn = draw(content, scale=3).decode()
    # Without the XML declaration, for HTML. The library's output contains no text of others.
    return TextWithCode(text, Markup(drawn[drawn.index("<svg") :]))  # noqa: S704


def core_lines(vault: Vault) -> dict[str, str]:
    """The shell commands for a running Bitcoin Core, by step."""
    cli = f"bitcoin-cli -chain={chain_name(vault.network)}"
    wanted = [
        {
            "desc": vault.chain_descriptor(chain),
            "active": True,
            "internal": chain == CHANGE,
            "range": [0, RANGE],
            "timestamp": 0,
        }
        for chain in (RECEIVE, CHANGE)
    ]
    return {
        # disable_private_keys, blank, passphrase, avoid_reuse, descriptors.
        "create": f'{cli} createwallet {WALLET} true true "" false true',
        "import": f"{cli} -rpcwallet={WALLET} importdescriptors {shlex.quote(json.dumps(wanted))}",
        "check": (
            f"{cli} -rpcwallet={WALLET} deriveaddresses "
            f"{shlex.quote(vault.chain_descriptor(RECEIVE))} '[0,0]'"
        ),
        "balance": f"{cli} -rpcwallet={WALLET} getbalance",
        "draft": f"{cli} -rpcwallet={WALLET} sendall '[\"ADDRESS\"]' null unset RATE '{{\"psbt\":true}}'",
        "combine": f'{cli} combinepsbt \'["PSBT1","PSBT2"]\'',
        "finalise": f"{cli} finalizepsbt PSBT",
        "test": f"{cli} testmempoolaccept '[\"HEX\"]'",
        "send": f"{cli} sendrawtransaction HEX",
    }


def _enrolment(vault: Vault, name: str) -> str | None:
    """The text by which a Coldcard and most air-gapped devices register the vault; None where it cannot be
    made.
    """
    try:
        return enrolment_text(vault, name, EnrolmentForm.COLDCARD)
    except BridgeError:
        return None
