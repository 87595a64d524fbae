"""A virtual Coldcard under test, and unmodified hwilib as its host."""

import secrets
import socket
from contextlib import asynccontextmanager, closing, contextmanager

from hwilib.devices.ckcc.client import ColdcardDevice, UnixSimulatorPipe
from hwilib.devices.ckcc.protocol import CCProtocolPacker, CCProtoError, CCUserRefused

from device_simulators.coldcard import VirtualColdcard
from device_simulators.panel import Happening, Panel, approve_all
from device_simulators.seed import Seed
from multisig import KeyOrigin, Network, OriginKey, Vault, multisig_account_path
from tests.conformance.rigs import no_longer_than_needed
from tests.support.wallets import BOB, CAROL

WORDS = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
SEED = Seed.from_mnemonic(WORDS)
NETWORK = Network.REGTEST


def own_key(path):
    return OriginKey(KeyOrigin(SEED.fingerprint, path), SEED.xpub(path, NETWORK))


def vault_with_device(threshold=2, account=0):
    """A vault of the device's own key, Bob's and Carol's."""
    mine = own_key(multisig_account_path(NETWORK, account))
    return Vault(NETWORK, threshold, (mine, *(other.vault_key(NETWORK, account) for other in (BOB, CAROL))))


VAULT = vault_with_device()


def socket_path(tmp_path):
    return tmp_path / f"cc-{secrets.token_hex(4)}.sock"


@asynccontextmanager
async def running(tmp_path, *, script=approve_all, **options):
    """A running device: yields it and its socket's path."""
    device = VirtualColdcard(SEED, Panel(script), NETWORK, **{"pause": no_longer_than_needed, **options})
    path = socket_path(tmp_path)
    await device.start(path)
    try:
        yield device, str(path)
    finally:
        await device.stop()


def record(panel):
    """A list that receives every prompt that the panel shows from now on."""
    shown = []
    panel.watch(lambda event: shown.append(event.prompt) if event.happening is Happening.SHOWN else None)
    return shown


class Pipe(UnixSimulatorPipe):
    """The same socket under a name of the kernel's choice:
    hwilib gives two clients of one process one name.
    """

    def __init__(self, path):
        self.pipe_name = ""
        self.pipe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.pipe.bind("")
        try:
            self.pipe.connect(path)
        except OSError:
            self.pipe.close()
            raise


@contextmanager
def host(path, **options):
    """ckcc's own client, as HWI bundles it; each answer is awaited for `timeout` milliseconds."""
    with closing(Pipe(path)) as pipe:
        yield ColdcardDevice(dev=pipe, **options)


def poll(client, packed):
    """Polls until there is an outcome, and returns it."""
    while (done := client.send_recv(packed)) is None:
        pass
    return done


def enrol(client, content):
    """Uploads an enrolment file and waits until the person has decided. True:
    the device has no request left.
    """
    size, digest = client.upload_file(content)
    client.send_recv(CCProtocolPacker.multisig_enroll(size, digest))
    try:
        poll(client, CCProtocolPacker.get_signed_txn())
    except CCUserRefused:
        return False
    except CCProtoError as error:
        return "No active request" in str(error)
    return False


def knows(client, vault):
    xor = 0
    for key in vault.cosigners:
        xor ^= int.from_bytes(bytes(key.fingerprint), "little")
    return bool(client.send_recv(CCProtocolPacker.multisig_check(vault.threshold, len(vault.cosigners), xor)))


def start_signing(client, psbt):
    size, digest = client.upload_file(psbt, blksize=2048)
    client.send_recv(CCProtocolPacker.sign_transaction(size, digest))


def collect(client):
    size, digest = poll(client, CCProtocolPacker.get_signed_txn())
    return client.download_file(size, digest)


def sign(client, psbt):
    start_signing(client, psbt)
    return collect(client)
