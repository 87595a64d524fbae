"""What SIGN_PSBT commits to (app-bitcoin-new, doc/bitcoin.md), and the wallet it names, fetched and recognised."""

from dataclasses import dataclass
from typing import Self

from device_simulators.ledger.apdu import Status
from device_simulators.ledger.errors import Refused, incorrect_data, not_supported
from device_simulators.ledger.host import Host
from device_simulators.ledger.maps import Commitment
from device_simulators.ledger.merkle import HASH_BYTES
from device_simulators.ledger.policy import MAX_POLICY_BYTES, Header, Policy, fetch_policy
from device_simulators.ledger.wallet import Wallet
from multisig.wire import Reader

MAX_INPUTS = 512
MAX_OUTPUTS = 512
"""The app's limits (constants.h)."""

_NO_MARK = bytes(HASH_BYTES)


@dataclass(frozen=True)
class List:
    """A committed list: how many elements, and the root over them."""

    size: int
    root: bytes


@dataclass(frozen=True)
class SignRequest:
    global_map: Commitment
    inputs: List
    outputs: List
    policy_id: bytes
    mark: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """:raises Refused: more inputs or outputs than the app signs. :raises WireError: bytes too few or too many."""
        reader = Reader(data)
        request = cls(
            Commitment.read(reader),
            _read_list(reader, MAX_INPUTS),
            _read_list(reader, MAX_OUTPUTS),
            reader.take(HASH_BYTES),
            reader.take(HASH_BYTES),
        )
        reader.finish()
        return request


def _read_list(reader: Reader, limit: int) -> List:
    size = reader.compact_size()
    if size > limit:
        raise not_supported(f"at most {limit} inputs and as many outputs")
    return List(size, reader.take(HASH_BYTES))


async def fetch_known_policy(host: Host, wallet: Wallet, policy_id: bytes, mark: bytes) -> Policy:
    """The policy that the host names, if this device has registered it or needs not to.

    :raises Refused: the mark is another's, or there is none and the policy is not a default one.
    """
    is_marked = mark != _NO_MARK
    if is_marked and not wallet.has_marked(policy_id, mark):
        raise Refused(Status.BAD_SIGNATURE, "this device has not registered such a policy")
    policy = await fetch_policy(host, Header.parse(await host.preimage(policy_id, MAX_POLICY_BYTES)))
    if not is_marked and not wallet.is_default(policy):
        raise incorrect_data("a policy that is not a default one has to be registered")
    return policy
