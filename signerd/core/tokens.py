"""Tokens as far as bytes prove them (docs/understand/tokens.md), and how much of a payload a device shows
(S28).

A contract's id is the txid of its deployment, which has the hash of the bytecode. Together they prove the
token's name, decimals, supplies and first owner, without the platform.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from custody.common.text import said
from multisig import InvalidTransaction, MultisigError, Network, Psbt, Transaction, encode_address
from multisig.tokens import (
    Bytecode,
    Deploy,
    Payload,
    TokenCall,
    bytecode_hash,
    check_deployment,
    encode_payload,
    format_units,
    parse_bytecode,
    payload_parts,
    token_of_script,
)

OP_RETURN = b"\x6a"


class NotProven(Exception):
    """The bytes do not prove the token. The message is a sentence that says why."""


Facts = Mapping[str, str]
"""By the names of the platform's ``decoded_call``, each as text."""


@dataclass(frozen=True)
class TokenClaim:
    """The platform's description of a proposal's data, by the names of ``Facts``. Stored: ``told`` is a
    frozen name.
    """

    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PublishedToken:
    """What the platform publishes of a token: the bytecode, and the deployment if there is one. Not
    trusted.
    """

    bytecode: bytes = field(repr=False)
    deployment: bytes | None = field(default=None, repr=False)


def payload_of(psbt: Psbt) -> Payload | None:
    """The first payload that a transaction carries; None where there is none, or it cannot be decoded."""
    for output in psbt.tx.outputs:
        try:
            payload = token_of_script(output.script_pubkey)
        except MultisigError:
            return None
        if payload is not None:
            return payload
    return None


def takes_back(psbt: Psbt) -> bool:
    """Whether it carries no data: such a replacement cancels a token's transaction."""
    return not any(output.script_pubkey.startswith(OP_RETURN) for output in psbt.tx.outputs)


def payload_of_bytes(psbt: bytes) -> Payload | None:
    """As ``payload_of``, from bytes that may be malformed."""
    try:
        return payload_of(Psbt.parse(psbt))
    except MultisigError:
        return None


def prove_blob(digest: bytes, blob: bytes) -> Bytecode:
    """The bytecode with this hash. Raises NotProven."""
    if bytecode_hash(blob) != digest:
        raise NotProven("its bytecode is not the one whose hash stands in the deployment.")
    try:
        return parse_bytecode(blob)
    except MultisigError as error:
        raise NotProven(said(error)) from error


def prove_token(contract_id: str, published: PublishedToken) -> Bytecode:
    """The token of this contract: its deployment has that txid and commits to the bytecode.

    The bytes do not prove that the deployment confirmed, nor who owns the token now. Raises NotProven.
    """
    if published.deployment is None:
        raise NotProven("its deployment is not shown.")
    deploy = _deployment(contract_id, published.deployment)
    bytecode = prove_blob(deploy.bytecode_hash, published.bytecode)
    try:
        check_deployment(deploy, bytecode)
    except MultisigError as error:
        raise NotProven(said(error)) from error
    return bytecode


def _deployment(contract_id: str, raw: bytes) -> Deploy:
    try:
        transaction = Transaction.parse(raw)
    except InvalidTransaction as error:
        raise NotProven(f"what is shown as its deployment cannot be read: {said(error)}") from error
    if transaction.txid != contract_id:
        raise NotProven("what is shown as its deployment is another transaction.")
    # As on chain: with another data output, or with an amount, a payload has no effect.
    carriers = [output for output in transaction.outputs if output.script_pubkey.startswith(OP_RETURN)]
    if len(carriers) != 1 or carriers[0].amount:
        raise NotProven("its deployment has no effect on chain.")
    try:
        payload = token_of_script(carriers[0].script_pubkey)
    except MultisigError as error:
        raise NotProven(said(error)) from error
    if not isinstance(payload, Deploy):
        raise NotProven("the transaction with its id deploys no token.")
    return payload


def facts_of(payload: Payload, network: Network, token: Bytecode | None) -> Facts:
    """The fields of a payload, and of its token if proven, to compare with the platform's claim."""
    common = {"data_hex": encode_payload(payload).hex()}
    if isinstance(payload, Deploy):
        # The payload has only a hash of these.
        listed = (
            {}
            if token is None
            else {"whitelist_count": str(len(token.whitelist)), "whitelist_hash": token.whitelist_hash.hex()}
        )
        return {
            **common,
            **listed,
            "function": "deploy",
            "ticker": payload.ticker,
            "decimals": str(payload.decimals),
            "total_supply_raw": str(payload.total_supply),
            "total_supply": format_units(payload.total_supply, payload.decimals),
            "max_supply_raw": str(payload.max_supply),
            "max_supply": format_units(payload.max_supply, payload.decimals),
            "whitelist_enabled": flag(payload.whitelist_enabled),
            "bytecode_hash": payload.bytecode_hash.hex(),
        }
    facts = {**common, "function": payload.function.wire_name, "contract_id": payload.contract_id}
    if payload.amount is not None:
        facts["amount_raw"] = str(payload.amount)
    if payload.address is not None:
        facts["address"] = encode_address(payload.address, network) or ""
    if token is not None:
        facts |= {"ticker": token.ticker, "decimals": str(token.decimals)}
        if payload.amount is not None:
            facts["amount"] = format_units(payload.amount, token.decimals)
    return facts


def flag(value: bool) -> str:
    return "yes" if value else "no"


def subject_of(payload: Payload) -> str:
    """The key by which a payload's token is looked up: the contract id, or the deployed bytecode's hash."""
    return payload.contract_id if isinstance(payload, TokenCall) else payload.bytecode_hash.hex()


# Parts that are hashes: the known screens show at least 27 bytes, which identify a token.
HASHES = frozenset({"contract", "bytecode hash"})


@dataclass(frozen=True)
class ModelScreen:
    """``name``: the model, as the person knows it. ``whole``: data of up to so many bytes is shown whole;
    None: not known.

    ``first``: how many bytes of longer data are shown. ``no_proof``, ``no_funds``: why it cannot sign a
    message (BIP-322), or one with coins; empty if it can.
    """

    name: str
    whole: int | None
    first: int = 0
    no_proof: str = ""
    no_funds: str = ""

    def shown(self, size: int) -> int:
        """How many of ``size`` bytes the screen shows; 0 if unknown."""
        if self.whole is None:
            return 0
        return size if size <= self.whole else self.first

    def why_no_message(self, coins: int) -> str:
        return self.no_funds if coins else self.no_proof


def hidden_parts(payload: Payload, screen: ModelScreen | None) -> tuple[str, ...]:
    """The parts of a payload that the screen does not show in full, in order; all of them if unknown."""
    parts = payload_parts(payload)
    size = sum(len(data) for _name, data in parts)
    shown, end, hidden = 0 if screen is None else screen.shown(size), 0, []
    for name, data in parts:
        end += len(data)
        if end > shown:
            hidden.append(name)
    return tuple(hidden)


def screen_words(payload: Payload, screen: ModelScreen | None) -> str:
    """A sentence about what the person will see on the device."""
    size, hidden = sum(len(data) for _name, data in payload_parts(payload)), hidden_parts(payload, screen)
    if screen is None:
        return (
            "This machine has not seen your device yet, so that it does not know how much of this data the "
            "screen shows."
        )
    if screen.whole is None:
        return f"It is not known how much of this data your {screen.name} shows: take nothing of it as shown."
    if not hidden:
        return (
            f"Your {screen.name} cannot read a token's data: it shows all {size} bytes as hex. "
            "Compare them digit for digit."
        )
    return (
        f"Your {screen.name} shows the first {screen.shown(size)} of the {size} bytes as hex, then dots. Not "
        "on its screen: "
        f"{_listed(hidden)}. It signs them all the same."
    )


def _listed(parts: tuple[str, ...]) -> str:
    *before, last = (f"the {part}" for part in parts)
    return f"{', '.join(before)} and {last}" if before else last
