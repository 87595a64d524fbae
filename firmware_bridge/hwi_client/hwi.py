"""HWI itself, without a maker's library: its client, its PSBT, and policies as its objects."""

from typing import Any

from hwilib.common import Chain
from hwilib.descriptor import PubkeyProvider, parse_descriptor
from hwilib.psbt import PSBT

from firmware_bridge import operations
from firmware_bridge.hwi_client.base import OpenDevice
from firmware_bridge.protocol import DriverHost
from multisig import Network


class HwiDevice(OpenDevice):
    """A device whose keys and signatures come from HWI's own client."""

    _hwi: Any
    _caller: DriverHost

    def wake(self) -> None:
        """Prepare for an operation, without asking the person."""
        raise NotImplementedError

    def require_known(self, policy: operations.PolicyText) -> None:
        """:raises BridgeError: the device would sign without knowing the vault."""

    def fingerprint(self) -> str:
        self.wake()
        return str(self._hwi.get_master_fingerprint().hex())

    def xpubs(self, request: operations.Xpubs) -> operations.Keys:
        fingerprint = self.fingerprint()
        xpubs = (self._hwi.get_pubkey_at_path(path).to_string() for path in request.paths)
        return operations.Keys(fingerprint, tuple(xpubs))

    def sign(self, request: operations.Sign) -> str:
        self.wake()
        self.require_known(request.policy)
        self._caller.tell(*operations.CONFIRM_TRANSACTION)
        return str(self._hwi.sign_tx(parse_psbt(request.psbt)).serialize())

    def sign_message(self, request: operations.SignMessage) -> str:
        self.wake()
        self._caller.tell(*operations.CONFIRM_MESSAGE)
        return str(self._hwi.sign_message(request.text, request.path))


def chain_of(network: Network) -> Chain:
    return Chain.MAIN if network is Network.MAINNET else Chain[network.name]


def parse_psbt(text: str) -> PSBT:
    """A new HWI PSBT from base64, because `sign_tx` changes its argument."""
    psbt = PSBT()
    psbt.deserialize(text)
    return psbt


def keys(policy: operations.PolicyText) -> list[PubkeyProvider]:
    """Each key of the policy with its origin, in the order of its descriptor.

    HWI parses whole descriptors alike in every release, and a lone key with other arguments after 3.2.0.
    """
    return [parse_descriptor(f"wpkh({key})").pubkeys[0] for key in policy.keys]


def key_path(policy: operations.PolicyText, chain: int, index: int) -> str:
    """From the master key to the key of a profile's address."""
    (key,) = keys(policy)
    return f"{key.origin.get_derivation_path()}/{chain}/{index}"
