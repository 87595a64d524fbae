"""BitBox02 through HWI: unlocked and paired only when a person asks for it, and a vault registered before it
is signed for.

HWI keeps the keys of a pairing in the settings of the maker's app, or not at all. Here they are the session
that `unlock` returns and that the next worker gets; nothing is written to disk.
"""

import base64
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

import hid
from hwilib.common import AddressType
from hwilib.devices.bitbox02 import Bitbox02Client
from hwilib.devices.bitbox02_lib.bitbox02 import BitBox02, btc
from hwilib.devices.bitbox02_lib.communication.bitbox_api_protocol import (
    BitBox02Edition,
    BitBoxNoiseConfig,
    HwwRequestCode,
    HwwResponseCode,
    Platform,
)
from hwilib.devices.bitbox02_lib.communication.devices import parse_device_version
from hwilib.devices.bitbox02_lib.communication.u2fhid import U2FHid
from hwilib.hwwclient import HardwareWalletClient

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, Busy, Locked, NotEnrolled, Uninitialised, Unsupported
from firmware_bridge.hwi_client import hwi
from firmware_bridge.hwi_client.base import obstructed
from firmware_bridge.hwi_client.hwi import HwiDevice, chain_of
from firmware_bridge.makers.bitbox02 import MAKER
from firmware_bridge.makers.maker import NOT_KNOWN_TO_HWI
from firmware_bridge.makers.versions import FirmwareVersion
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence.endpoints import host_and_port
from firmware_bridge.protocol import DriverHost, Question, WorkerCall, receive_exactly
from multisig import Network

_FAMILY_NAME: Final = "BitBox02"
_MODELS: Final = {Platform.BITBOX02: "BitBox02", Platform.BITBOX02PLUS: "BitBox02 Nova"}
# What HWI's copy of the maker's library supports.
_FIRMWARE: Final = 9
# A dishonest device could just claim to be older (S20).
_PROVES: Final = FirmwareVersion.of(MAKER.proves_nonces)
_TOO_OLD: Final = f"Its firmware is too old to prove its nonces: update it to {MAKER.proves_nonces} or later."
_REPORT: Final = 64
_KEY: Final = 32
# HWI asks a busy device again every second, for ever. A device whose host was killed is free again sooner
# than this.
_MAX_BUSY: Final = 3
_LOCKED: Final = "Its password is entered on the device, when this program unlocks it."
_UNPAIRED: Final = "It is not paired with this program: unlock it, and compare the code that both show."


class _Tcp:
    """The simulator's socket. HWI's takes any bytes for a whole report, even none."""

    def __init__(self, place: str) -> None:
        self._socket = socket.create_connection(host_and_port(place))

    def write(self, data: bytes) -> None:
        """Without the report number, which is for USB only."""
        self._socket.sendall(data[1:])

    def read(self, _size: int, _timeout_ms: int) -> bytes:
        return receive_exactly(self._socket, _REPORT)

    def close(self) -> None:
        self._socket.close()


class _Transport(U2FHid):  # type: ignore[misc]  # HWI is untyped
    """HWI's framing, with a limit for a busy device, and with a cancel."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._busy = 0
        self.give_up = threading.Event()

    def query(self, data: bytes, endpoint: int, cid: int) -> bytes:
        if data == HwwRequestCode.REQ_RETRY and self.give_up.is_set():
            data = HwwRequestCode.REQ_CANCEL
        response = bytes(super().query(data, endpoint, cid))
        self._count(busy=data[:1] == HwwRequestCode.REQ_NEW and response[:1] == HwwResponseCode.RSP_BUSY)
        return response

    def _count(self, *, busy: bool) -> None:
        self._busy = self._busy + 1 if busy else 0
        if self._busy >= _MAX_BUSY:
            raise Busy(detail="It works for another program, or shows a question.")


class _Pairing(BitBoxNoiseConfig):  # type: ignore[misc]  # HWI is untyped
    """The pairing's keys: ours, and the device's after the person has compared the code."""

    def __init__(self, session: str | None, caller: DriverHost) -> None:
        keys = b"" if session is None else base64.b64decode(session)
        self._own: bytes | None = keys[:_KEY] or None
        self._device: bytes | None = keys[_KEY:] or None
        self._caller = caller
        self.asked_for = False

    @property
    def known(self) -> bool:
        return self._device is not None

    @property
    def session(self) -> str:
        return base64.b64encode((self._own or b"") + (self._device or b"")).decode("ascii")

    def show_pairing(self, code: str, device_response: Callable[[], bool]) -> bool:
        """The person confirms in both places: an attacker may be in between (S21)."""
        if not self.asked_for:
            raise Locked(detail=_UNPAIRED)
        words = " ".join(code.split())
        self._caller.tell(
            "compare-pairing", f"Confirm on the device if it shows this code, and only then: {words}"
        )
        if not device_response():
            return False
        return self._caller.ask(Question.PAIRING) is not None

    def attestation_check(self, result: bool) -> None:
        """Only reported, as in HWI: a simulator never passes."""
        if not result and self.asked_for:
            self._caller.tell("not-attested", "The device could not prove that it is genuine")

    def contains_device_static_pubkey(self, pubkey: bytes) -> bool:
        return pubkey == self._device

    def add_device_static_pubkey(self, pubkey: bytes) -> None:
        self._device = pubkey

    def get_app_static_privkey(self) -> bytes | None:
        return self._own

    def set_app_static_privkey(self, privkey: bytes) -> None:
        self._own = privkey


class _Hwi(Bitbox02Client):  # type: ignore[misc]  # HWI is untyped
    """HWI's client on our transport. HWI's own registers a vault in the middle of a signing."""

    def __init__(self, transport: _Transport, network: Network, pairing: _Pairing) -> None:
        HardwareWalletClient.__init__(self, "", None, expert=False, chain=chain_of(network))
        self.simulator = None
        self.device_path = ""
        self.transport = transport
        self.noise_config = pairing
        self.bb02: Any = None

    def init(self, expect_initialized: bool | None = True) -> Any:
        """Check the version that the library has read itself.

        :raises BridgeError: it would sign without anti-exfil.
        """
        opened = super().init(expect_initialized)
        if not _proves(opened.version):
            self.bb02 = None
            raise Unsupported(detail=_TOO_OLD)
        return opened

    def knows(self, script_config: Any, keypath: Any) -> bool:
        """Whether the vault is registered on the device."""
        registered = self.init().btc_is_script_config_registered(self._get_coin(), script_config, keypath)
        return bool(registered)

    def quorum(self, policy: operations.PolicyText) -> Any:
        """The vault as the device expects it."""
        origins = {key.extkey.serialize(): key.origin for key in hwi.keys(policy)}
        kind = btc.BTCScriptConfig.Multisig.P2WSH
        _own, config = self._multisig_scriptconfig(policy.threshold, origins, kind)
        return config

    def register(self, config: Any, name: str) -> None:
        self.init().btc_register_script_config(
            coin=self._get_coin(),
            script_config=config.script_config,
            keypath=config.keypath,
            name=name,
            xpub_type=btc.BTCRegisterScriptConfigRequest.AUTO_XPUB_TPUB,
        )

    def vault_address(self, config: Any, chain: int, index: int) -> str:
        """Shown on the screen. HWI's own fails in every vault after 3.2.0 (unhashable type: 'list')."""
        self._maybe_register_script_config(config.script_config, config.keypath)
        address = self.init().btc_address(
            [*config.keypath, chain, index],
            coin=self._get_coin(),
            script_config=config.script_config,
            display=True,
        )
        return str(address)

    def _maybe_register_script_config(self, script_config: Any, keypath: Any) -> None:
        if not self.knows(script_config, keypath):
            raise NotEnrolled


class BitBox02Device(HwiDevice):
    family = Family.BITBOX02

    def __init__(
        self, transport: _Transport, network: Network, caller: DriverHost, session: str | None
    ) -> None:
        self._transport = self._link = transport
        self._pairing = _Pairing(session, caller)
        self._hwi = _Hwi(transport, network, self._pairing)
        self._caller = caller

    def begin(self, op: str) -> None:  # noqa: ARG002 - the same for each
        self._transport.give_up.clear()

    def cancel(self) -> None:
        """Sent instead of the next poll, a few times a second."""
        self._transport.give_up.set()

    def probe(self) -> operations.Probed:
        """Without anything on the screen: no password entry, no pairing code."""
        try:
            version, platform, edition, unlocked, initialized = BitBox02.get_info(self._transport)
        except KeyError:
            return obstructed(_FAMILY_NAME, Unsupported(detail=NOT_KNOWN_TO_HWI))
        model, firmware = _model(platform, edition), version.removeprefix("v")
        obstacle = _obstacle(version, initialized=initialized) or self._lock(unlocked=unlocked)
        if obstacle is not None:
            return obstructed(model, obstacle, firmware)
        label = self._hwi.init().device_info()["name"]
        fingerprint = self._hwi.get_master_fingerprint().hex()
        return operations.Probed(model, label=label, fingerprint=fingerprint, firmware=firmware)

    def _lock(self, *, unlocked: bool) -> Locked | None:
        if not unlocked:
            return Locked(detail=_LOCKED)
        return None if self._pairing.known else Locked(detail=_UNPAIRED)

    def wake(self) -> None:
        """:raises BridgeError: the device would ask for its password, or show a pairing code."""
        if self._hwi.bb02 is not None:
            return
        if (obstacle := self._lock(unlocked=self._usable())) is not None:
            raise obstacle
        self._hwi.init()

    def _usable(self) -> bool:
        """Whether it is unlocked. Raises what keeps it from working at all."""
        version, _platform, _edition, unlocked, initialized = BitBox02.get_info(self._transport)
        if (obstacle := _obstacle(version, initialized=initialized)) is not None:
            raise obstacle
        return bool(unlocked)

    def unlock(self) -> operations.Unlocked:
        if not self._usable():
            self._caller.tell("enter-password", "Enter the password on the device")
        self._pairing.asked_for = True
        self._hwi.init()
        return operations.Unlocked(self._hwi.get_master_fingerprint().hex(), self._pairing.session)

    def enrol(self, request: operations.Enrol) -> None:
        self.wake()
        policy = request.policy
        config = self._hwi.quorum(policy)
        if self._hwi.knows(config.script_config, config.keypath) and not request.again:
            return
        self._caller.tell(*operations.CONFIRM_ENROLMENT)
        self._hwi.register(config, policy.name)

    def show_address(self, request: operations.ShowAddress) -> str:
        self.wake()
        policy, chain, index = request.policy, request.chain, request.index
        self._caller.tell(*operations.CONFIRM_ADDRESS)
        if policy.is_vault:
            return str(self._hwi.vault_address(self._hwi.quorum(policy), chain, index))
        path = hwi.key_path(policy, chain, index)
        return str(self._hwi.display_singlesig_address(path, AddressType.WIT))


def open_device(
    endpoint: Endpoint, network: Network, caller: DriverHost, request: WorkerCall
) -> BitBox02Device:
    """`request.session` is the pairing that `unlock` returned."""
    transport = _Transport(_Tcp(endpoint.place) if endpoint.kind == "tcp" else _open_hid(endpoint.place))
    return BitBox02Device(transport, network, caller, request.session)


def _open_hid(path: str) -> Any:
    device = hid.device()
    device.open_path(path.encode())
    return device


def _model(platform: Platform, edition: BitBox02Edition) -> str:
    only = " Bitcoin-only" if edition == BitBox02Edition.BTCONLY else ""
    return f"{_MODELS[platform]}{only}"


def _proves(version: Any) -> bool:
    return FirmwareVersion.of(f"{version.major}.{version.minor}.{version.patch}") >= _PROVES


def _obstacle(version: str, *, initialized: bool | None) -> BridgeError | None:
    """Firmware before 9.20 does not tell whether it has a wallet."""
    if version.removeprefix("v").partition(".")[0] != str(_FIRMWARE):
        return Unsupported(detail=f"HWI drives firmware {_FIRMWARE} only, and this is {version}.")
    if not _proves(parse_device_version(version)):
        return Unsupported(detail=_TOO_OLD)
    if initialized is False:
        return Uninitialised()
    return None
