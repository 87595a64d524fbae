"""Unmodified HWI on a device at any address, in this process, without pressing the buttons itself."""

import contextlib
import ctypes
import io
import socket
from collections.abc import Callable, Iterator
from typing import Any

import libusb_package
import usb1

usb1.loadLibrary(ctypes.CDLL(str(libusb_package.get_library_path())))

from hwilib.common import AddressType, Chain  # noqa: E402 - HWI finds libusb only once it is loaded
from hwilib.devices import coldcard, ledger, trezor  # noqa: E402
from hwilib.devices.ckcc.client import ColdcardDevice, UnixSimulatorPipe  # noqa: E402
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy  # noqa: E402
from hwilib.devices.trezorlib.transport.udp import UdpTransport  # noqa: E402
from hwilib.psbt import PSBT  # noqa: E402

from firmware_bridge.model import Endpoint, Family  # noqa: E402
from multisig import Vault  # noqa: E402

CHAIN = Chain.REGTEST


class _Pipe(UnixSimulatorPipe):  # type: ignore[misc]  # HWI is untyped
    """The simulator's socket, with a client name from the kernel: HWI's own is one for the whole process."""

    def __init__(self, path: str) -> None:
        self.pipe_name = ""
        self.pipe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.pipe.bind("")
        self.pipe.connect(path)


def _open_trezor(endpoint: Endpoint) -> Any:
    # HWI's constructor presses the emulator's buttons through the debug link;
    # with hardware it does as follows.
    client = trezor.TrezorClient.__new__(trezor.TrezorClient)
    super(trezor.TrezorClient, client).__init__(endpoint.address, "", expert=False, chain=CHAIN)
    client.simulator, client.type = False, "Trezor"
    client.client = trezor.Trezor(
        transport=UdpTransport(endpoint.place), ui=trezor.PassphraseUI(""), _init_device=False
    )
    return client


def _open_coldcard(endpoint: Endpoint) -> Any:
    client = coldcard.ColdcardClient.__new__(coldcard.ColdcardClient)
    super(coldcard.ColdcardClient, client).__init__(endpoint.place, None, expert=False, chain=CHAIN)
    client.device = ColdcardDevice(dev=_Pipe(endpoint.place))
    client._is_edge = False  # noqa: SLF001 - as hardware answers
    return client


def _open_ledger(endpoint: Endpoint) -> Any:
    return ledger.LedgerClient(endpoint.address, chain=CHAIN)


_OPENERS: dict[Family, Callable[[Endpoint], Any]] = {
    Family.TREZOR: _open_trezor,
    Family.COLDCARD: _open_coldcard,
    Family.LEDGER: _open_ledger,
}


def open_client(endpoint: Endpoint) -> Any:
    return _OPENERS[endpoint.family](endpoint)


@contextlib.contextmanager
def opened(endpoint: Endpoint) -> Iterator[Any]:
    """HWI's client of this device; its output is discarded."""
    client = open_client(endpoint)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield client
    finally:
        client.close()


def attach(endpoint: Endpoint) -> bytes:
    """Opens the device, reads its fingerprint, closes it."""
    with opened(endpoint) as client:
        fingerprint: bytes = client.get_master_fingerprint()
        return fingerprint


def sign(client: Any, text: str) -> str:
    """A PSBT as text, signed, as text: what `hwilib.commands.signtx` does."""
    return str(client.sign_tx(parse(text)).serialize())


def sign_registered(client: Any, text: str, wallet: WalletPolicy, proof: bytes) -> str:
    """The Ledger client that HWI bundles, at its best: one policy for all inputs, and the HMAC of its
    registration.
    """
    psbt, version_2 = parse(text), parse(text)
    version_2.convert_to_v2()
    for index, public_key, signature in client.client.sign_psbt(version_2, wallet, proof):
        psbt.inputs[index].partial_sigs[public_key] = signature
    return str(psbt.serialize())


def ledger_wallet(vault: Vault, name: str) -> WalletPolicy:
    """Its keys in the bridge's order, with the app's mark for hardened steps."""
    origins = [(str(key.origin).replace("h", "'"), key.xpub) for key in sorted(vault.cosigners, key=str)]
    keys = [f"[{origin}]{xpub}" for origin, xpub in origins]
    return MultisigWallet(name, AddressType.WIT, vault.threshold, keys)


def parse(text: str) -> PSBT:
    psbt = PSBT()
    psbt.deserialize(text)
    return psbt
