"""A bridge to a device whose worker answers from a list, for answers that no device gives on demand."""

from dataclasses import dataclass

from firmware_bridge.bridge import Bridge
from firmware_bridge.model import Endpoint, Sighting
from firmware_bridge.protocol import TAKEN, ProgressNote
from multisig import Network
from tests.support import wallets
from tests.support.wallets import ALICE

ENDPOINT = Endpoint.parse("trezor:webusb:001:2")
COLDCARD = Endpoint.parse("coldcard:hid:1-2:1.0")
LEDGER = Endpoint.parse("ledger:hid:1-3:1.0")
VAULT = wallets.make_vault()
SPEND = wallets.make_spend(VAULT)
SIGNED = ALICE.sign(SPEND).to_base64()


@dataclass(frozen=True)
class Taken:
    """The driver reports that the device has the transaction, and then the call ends with this."""

    ending: object


class Script:
    """A worker of one device: expects these (operation, answer) pairs, in this order."""

    def __init__(self, *answers):
        self.answers = list(answers)

        self.told = []

    async def __call__(self, op, args=None, *, on_note=None, **_options):
        expected, answer = self.answers.pop(0)
        assert op == expected
        self.told.append(args)
        if isinstance(answer, Taken):
            on_note(ProgressNote(1, TAKEN, "The device checks the transaction"))
            answer = answer.ending
        if isinstance(answer, Exception):
            raise answer
        return answer


async def bridge_answering(*answers, endpoint=ENDPOINT, **options):
    async def listing(_in_use):
        return [Sighting(endpoint, "A device")]

    bridge = Bridge(network=Network.REGTEST, listings=[listing], **options)
    await bridge._roster.look()
    (record,) = bridge._roster.records.values()
    record.lane.call = script = Script(*answers)
    return bridge, record.device.id, script


def who(signer):
    return "fingerprint", str(signer.fingerprint)
