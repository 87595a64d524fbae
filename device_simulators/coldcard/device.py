"""A virtual Coldcard at a Unix datagram socket, which stands for the USB cable: powered up, powered down."""

import asyncio
import os
import secrets
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from device_simulators.coldcard import replies
from device_simulators.coldcard.approvals import Pause, real_pause
from device_simulators.coldcard.arguments import Staging
from device_simulators.coldcard.firmware import Firmware
from device_simulators.coldcard.flows import GARBAGE, Flows, Work, no_work
from device_simulators.coldcard.replies import BadFraming
from device_simulators.coldcard.story import ColdcardChain, chain_for
from device_simulators.coldcard.wallet import WalletStore
from device_simulators.coldcard.wire import PACKET_SIZE, ColdcardMessage, PacketAssembler, to_packets
from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.faults import Faults, Misbehaviour, Silenced
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

# What hosts have not read yet fills the socket's buffer, and a host that is not connected queues some ten
# datagrams only. The firmware too waits for a host that does not read, and then drops what it had to say.
SEND_RETRIES: Final = 2_000
SEND_PAUSE: Final = 0.001  # seconds
CLOSED: Final = -1  # the descriptor of a closed socket


class ColdcardSocket:
    """One bound socket. It answers the host that wrote last; there are no connections."""

    def __init__(self, path: Path) -> None:
        """Bind, readable by this user only.

        :raises AddressUnavailable: something is there already, or the folder is missing.
        :raises InvalidListenAddress: the path is longer than a Unix socket's may be (107 bytes on Linux).
        """
        self.path = path
        _clear_stale(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        try:
            self._bind()
        except BaseException:
            self._socket.close()
            raise

    def _bind(self) -> None:
        try:
            self._socket.bind(str(self.path))
            self.path.chmod(0o600)
        except FileNotFoundError as error:
            raise AddressUnavailable(f"no such folder: {self.path.parent}") from error
        except PermissionError as error:
            raise AddressUnavailable(f"not allowed to listen at {self.path}") from error
        except OSError as error:  # too long a path, above all
            raise InvalidListenAddress(f"cannot listen at {self.path}: {error}") from error

    async def receive(self) -> tuple[bytes, Any]:
        """The next datagram and its sender. One byte more than a packet is read: a longer one is noticed."""
        return await asyncio.get_running_loop().sock_recvfrom(self._socket, PACKET_SIZE + 1)

    async def send(self, packet: bytes, address: Any) -> bool:
        """Send one packet; False if the host is gone or does not read."""
        if not address:  # a sender without a name cannot be answered
            return False
        for _ in range(SEND_RETRIES):
            try:
                self._socket.sendto(packet, address)
                return True
            except BlockingIOError:
                await asyncio.sleep(SEND_PAUSE)
            except OSError:
                return False
        return False

    def close(self) -> None:
        """Close, and remove the socket's file. Once: what stands there later is another's."""
        if self._socket.fileno() == CLOSED:
            return
        self._socket.close()
        self.path.unlink(missing_ok=True)


def _clear_stale(path: Path) -> None:
    """Remove a socket that no process listens on any more. Anything else at that path is left alone."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressUnavailable(f"the file at {path} is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise AddressUnavailable(f"cannot listen at {path}: {error}") from error
        else:
            raise AddressUnavailable(f"something listens at {path} already")


class VirtualColdcard:
    """A device with its own seed and screen. Start, stop and start again: what it has enrolled stays."""

    def __init__(
        self,
        seed: Seed,
        panel: Panel,
        network: Network,
        *,
        faults: Faults | None = None,
        allow_keypress: bool = False,
        wallets_file: Path | None = None,
        hardware: str = "mk4",
        pause: Pause = real_pause,
        work: Work = no_work,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        """`allow_keypress` lets the host press the buttons itself, as HWI does with every device at a socket.
        `faults` may be changed at any time. `wallets_file` keeps the enrolled wallets from one run to the
        next; its folder must exist. `hardware` is the model as the device names it, mk1 to mk4. `pause` is
        how it waits while its screen says how a request ended, `work` how long it checks a transaction before
        it asks.
        :raises InvalidWalletFile: that file cannot be read as enrolled wallets of this network.
        """
        self.panel = panel
        self.faults = faults or Faults()
        self.fingerprint: Fingerprint = seed.fingerprint
        self.wallets = WalletStore(network, wallets_file)
        self._network = network
        self._words = self._seed = seed
        self._stores = {seed.fingerprint: self.wallets}
        self._hardware = hardware
        self._hsm = False
        self._chain = chain_for(network)
        self._pause = pause
        self._work = work
        self._allow_keypress = allow_keypress
        self._random_bytes = random_bytes
        self._locked = False
        self._link: ColdcardSocket | None = None
        self._firmware: Firmware | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, socket_path: Path | str) -> Endpoint:
        """Power up and listen at a Unix socket; also plugs in again a device that has vanished or stalled.

        hwilib makes its own socket's name out of this one: keep every dot out of the folders, and let the
        file's name end in a hyphen and a word of its own, as in `coldcard-7f3a.sock`.
        :raises AddressUnavailable, InvalidListenAddress: no socket can be opened there.
        """
        await self.stop()
        path = Path(socket_path)
        self._link = ColdcardSocket(path)
        misbehaviour = Misbehaviour(lambda: self.faults, self._vanish)
        self._firmware = self._power_up(misbehaviour)
        self._task = asyncio.create_task(_serve(self._link, self._firmware, misbehaviour))
        return Endpoint(Family.COLDCARD, f"unix:{path}")

    def _power_up(self, misbehaviour: Misbehaviour) -> Firmware:
        staging = Staging()
        flows = Flows(
            seed=self._seed,
            panel=self.panel,
            chain=self._chain,
            store=self.wallets,
            misbehaviour=misbehaviour,
            offer=staging.offer,
            still_holds=staging.still_holds,
            work=self._work,
        )
        firmware = Firmware(
            flows,
            staging,
            hardware=self._hardware,
            random_bytes=self._random_bytes,
            allow_keypress=self._allow_keypress,
            pause=self._pause,
        )
        firmware.locked, firmware.hsm = self._locked, self._hsm
        return firmware

    async def stop(self) -> None:
        """Power down: the prompt leaves the screen; the session, a passphrase and every uncollected result
        are gone.
        """
        self._hold(self._words)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._firmware is not None:
            await self._firmware.approvals.discard()
            self._firmware = None

    def lock(self) -> None:
        """From now on the device does not say who it is, and carries out nothing."""
        self._locked = True
        if self._firmware is not None:
            self._firmware.locked = True
            self._firmware.approvals.abandon()

    def unlock(self) -> None:
        """The person has entered the PIN. Hosts must shake hands again to learn who it is."""
        self._locked = False
        if self._firmware is not None:
            self._firmware.locked = False

    async def enter_passphrase(self, passphrase: str) -> None:
        """The person enters one on the device: other keys from now on, and other wallets on record. The empty
        one goes back.
        """
        self._hold(self._words.with_passphrase(passphrase))
        if self._firmware is not None:
            await self._firmware.use(self._seed, self.wallets)

    def _hold(self, seed: Seed) -> None:
        self._seed = seed
        self.fingerprint = seed.fingerprint
        self.wallets = self._stores.setdefault(seed.fingerprint, WalletStore(self._network))

    def press_1(self) -> None:
        """Key 1, which shows a proposed wallet's keys."""
        if self._firmware is not None:
            self._firmware.press_1()

    def set_chain(self, chain: ColdcardChain) -> None:
        """The person changes "Testnet Mode" in the device's menu."""
        self._chain = chain
        if self._firmware is not None:
            self._firmware.set_chain(chain)

    def set_hsm_mode(self, *, on: bool) -> None:
        """In HSM mode it signs by its own policy, and refuses most commands of a host."""
        self._hsm = on
        if self._firmware is not None:
            self._firmware.hsm = on

    def _vanish(self) -> None:
        """The cable is pulled, also in the middle of an operation."""
        if self._task is not None:
            self._task.cancel()
        if self._link is not None:
            self._link.close()
        if self._firmware is not None:
            self._firmware.approvals.abandon()


async def _serve(link: ColdcardSocket, firmware: Firmware, misbehaviour: Misbehaviour) -> None:
    """Take packets from any host, one by one, and answer each message to the sender of its last packet."""
    assembler = PacketAssembler()
    encrypted = False
    while True:
        packet, sender = await link.receive()
        try:
            message = assembler.feed(packet)
            if message is None:
                continue
            encrypted = message.encrypted
            reply = await _answer(firmware, message)
        except Silenced:
            return
        except BadFraming as fault:
            reply = replies.framing_error(str(fault))
        if misbehaviour.silent:
            continue
        for part in _outgoing(firmware, misbehaviour, reply, encrypted=encrypted):
            if not await link.send(part, sender):
                break


async def _answer(firmware: Firmware, message: ColdcardMessage) -> bytes:
    data = message.data
    if message.encrypted:
        if firmware.session is None:
            raise BadFraming("no key")
        data = firmware.session.decrypt(data)
    elif firmware.bound:
        raise BadFraming("must encrypt")
    return await firmware.answer(data, encrypted=message.encrypted)


def _outgoing(
    firmware: Firmware, misbehaviour: Misbehaviour, reply: bytes, *, encrypted: bool
) -> list[bytes]:
    if misbehaviour.take_garbage():
        return [GARBAGE]
    session = firmware.session if encrypted else None
    data = reply if session is None else session.encrypt(reply)
    return to_packets(ColdcardMessage(data, encrypted=session is not None))
