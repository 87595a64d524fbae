"""Texts of QR codes as a camera reads them, one a line, up to an imported answer."""

from collections.abc import Iterator
from itertools import islice

from firmware_bridge import BridgeError
from firmware_bridge.airgap import Scanner, Transfer, bbqr, ur
from firmware_bridge.airgap.handoff import take_signed
from firmware_bridge.airgap.transfer import MAX_BYTES, Content
from fuzz.target import Target, require
from multisig import Psbt
from tests.support.ur_keys import account_of, animated, hdkey, whole
from tests.support.wallets import ALICE, BOB, make_spend, make_vault

VAULT = make_vault()
SPEND = make_spend(VAULT, n_inputs=1)
_MANY = 64


def check(data: bytes) -> None:
    """Only outcomes are raised; a refused text changes nothing, and a complete transfer stays."""
    scanner, held = Scanner(), None
    for text in data.decode("utf-8", "replace").split("\n")[:_MANY]:
        try:
            received = scanner.add(text)
        except BridgeError as error:
            require(bool(str(error)) and bool(error.hint), "an outcome says nothing")
        else:
            require(0 < received.seen <= received.wanted, "it counts wrongly")
            require(received.complete == (scanner.result is not None), "complete, and nothing there")
        require(held is None or scanner.result == held, "what was complete has changed")
        held = scanner.result
    if held is not None:
        _take(held)


def _take(transfer: Transfer) -> None:
    require(len(transfer.data) <= MAX_BYTES, "more than there may be")
    try:
        taken = take_signed(transfer, SPEND, VAULT, ALICE.fingerprint)
    except BridgeError:
        return
    require(taken.without_signatures() == SPEND, "it took more than signatures")


def seeds() -> Iterator[bytes]:
    for psbt in (SPEND, ALICE.sign(SPEND), BOB.sign(SPEND)):
        yield from _series(psbt)
    yield "\n".join(bbqr.split(b"hello " * 30, Content.TEXT, max_characters=40)).encode()
    for content in (Content.JSON, Content.BINARY, Content.TRANSACTION):
        yield "\n".join(bbqr.split(b"{}", content)).encode()
    yield next(iter(ur.split(b"hello", Content.BINARY))).encode()
    yield from (one.encode() for one in key_texts())


def key_texts() -> Iterator[str]:
    """A key and an account of Alice in UR 2, whole and in parts."""
    yield whole("crypto-hdkey", hdkey(ALICE.vault_key()))
    yield whole("crypto-account", account_of(ALICE))
    yield "\n".join(animated("crypto-account", account_of(ALICE), frames=12))


def _series(psbt: Psbt) -> Iterator[bytes]:
    data = psbt.to_bytes()
    yield psbt.to_base64().encode()
    yield data.hex().encode()
    for encoding in bbqr.BbqrEncoding:
        yield "\n".join(bbqr.split(data, Content.PSBT, encoding=encoding, max_characters=400)).encode()
    yield "\n".join(islice(ur.split(data, max_fragment=200), 8)).encode()
    yield "\n".join(islice(ur.split(data, max_fragment=90, first=20), 16)).encode()
    yield next(iter(ur.split(data, max_fragment=len(data) + 8))).encode()


TARGET = Target("codes", check, seeds)
