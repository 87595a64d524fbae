"""What a BitBox02 answers inside its encrypted channel: those of the maker's protobuf messages
that HWI sends.

It signs with the anti-klepto protocol, so that HWI's check of the nonce runs.
It asks for no previous transaction.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hwilib.devices.bitbox02_lib.bitbox02.secp256k1 import antiklepto_host_commit, tagged_sha256
from hwilib.devices.bitbox02_lib.communication.generated import btc_pb2 as btc
from hwilib.devices.bitbox02_lib.communication.generated import hww_pb2 as hww

from device_simulators.seed import Seed
from multisig import (
    SIGHASH_ALL,
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    Network,
    NetworkKind,
    OutPoint,
    SighashCache,
    Transaction,
    TxIn,
    TxOut,
    encode_address,
    hash160,
    message_hash,
    multisig_script,
    p2pkh,
    p2wpkh,
    p2wsh,
    sats,
    secp256k1,
)
from tests.support.wallets import ORDER

_NETWORKS = {btc.BTC: Network.MAINNET, btc.TBTC: Network.TESTNET4}
_NEXT = btc.BTCSignNextResponse


class Refusal(Exception):
    """An error reply: code and message."""


@dataclass
class Signing:
    """A transaction being received: the inputs are sent twice, for the sums and for the signatures."""

    init: Any
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    second: bool = False


@dataclass
class Wallet:
    """`decide` answers for the person at the device; `asked` lists the requests, in order."""

    seed: Seed
    name: str = "My BitBox"
    initialized: bool = True
    decide: Callable[[str], bool] = lambda _question: True
    honest_nonce: bool = True
    registered: dict[bytes, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _signing: Signing | None = None
    _pending: tuple[bytes, Callable[[bytes], hww.Response]] | None = None

    def answer(self, data: bytes) -> bytes:
        request = hww.Request()
        request.ParseFromString(data)
        kind = request.WhichOneof("request")
        message = getattr(request, kind)
        if kind == "btc":
            kind = message.WhichOneof("request")
            message = getattr(message, kind)
        self.asked.append(kind)
        try:
            response = getattr(self, f"_do_{kind}")(message)
        except Refusal as refusal:
            code, message = refusal.args
            response = hww.Response(error={"code": code, "message": message})
        return response.SerializeToString()

    def _do_device_info(self, _message: Any) -> hww.Response:
        return hww.Response(device_info={"name": self.name, "initialized": self.initialized})

    def _do_fingerprint(self, _message: Any) -> hww.Response:
        return hww.Response(fingerprint={"fingerprint": bytes(self.seed.fingerprint)})

    def _do_btc_pub(self, message: Any) -> hww.Response:
        path, network = DerivationPath(tuple(message.keypath)), _NETWORKS[message.coin]
        if not message.HasField("script_config"):
            return hww.Response(pub={"pub": str(self.seed.xpub(path, network))})
        script, _code = self._scripts(message.script_config, path)
        self._ask("address")
        return hww.Response(pub={"pub": encode_address(script, network)})

    def _do_is_script_config_registered(self, message: Any) -> hww.Response:
        known = _identity(message.registration.script_config) in self.registered
        return hww.Response(btc={"is_script_config_registered": {"is_registered": known}})

    def _do_register_script_config(self, message: Any) -> hww.Response:
        if message.name in self.registered.values():
            raise Refusal(107, "duplicate entry")
        self._ask("register")
        self.registered[_identity(message.registration.script_config)] = message.name
        return hww.Response(btc={"success": {}})

    def _do_btc_sign_init(self, message: Any) -> hww.Response:
        self._signing = Signing(message)
        return _next(_NEXT.INPUT)

    def _do_btc_sign_input(self, message: Any) -> hww.Response:
        signing = self._signing
        assert signing is not None
        if signing.second:
            return self._sign_input(message)
        signing.inputs.append(message)
        if len(signing.inputs) < signing.init.num_inputs:
            return _next(_NEXT.INPUT, len(signing.inputs))
        return _next(_NEXT.OUTPUT)

    def _do_btc_sign_output(self, message: Any) -> hww.Response:
        signing = self._signing
        assert signing is not None
        signing.outputs.append(message)
        if len(signing.outputs) < signing.init.num_outputs:
            return _next(_NEXT.OUTPUT, len(signing.outputs))
        self._ask("sign")
        signing.second = True
        return _next(_NEXT.INPUT)

    def _do_sign_message(self, message: Any) -> hww.Response:
        self._ask("message")
        path = DerivationPath(tuple(message.script_config.keypath))
        digest = message_hash(message.msg.decode())

        def reply(nonce: bytes) -> hww.Response:
            return hww.Response(btc={"sign_message": {"signature": self._sign(path, digest, nonce)}})

        point = self._commit(message, path, digest, reply)
        return hww.Response(btc={"antiklepto_signer_commitment": {"commitment": point}})

    def _do_antiklepto_signature(self, message: Any) -> hww.Response:
        commitment, reply = self._pending
        if antiklepto_host_commit(message.host_nonce) != commitment:
            raise Refusal(101, "another nonce than was promised")
        return reply(message.host_nonce)

    def _commit(
        self, message: Any, path: DerivationPath, digest: bytes, reply: Callable[[bytes], hww.Response]
    ) -> bytes:
        """The point of the device's own nonce; it signs when it has the host's."""
        self._pending = (message.host_nonce_commitment.commitment, reply)
        return secp256k1.public_key_of(self._nonce(path, digest))

    def _sign_input(self, message: Any) -> hww.Response:
        signing = self._signing
        index = next(i for i, item in enumerate(signing.inputs) if item == _without_nonce(message))
        path = DerivationPath(tuple(message.keypath))
        _script, code = self._scripts(
            signing.init.script_configs[message.script_config_index].script_config, path
        )
        digest = SighashCache(self._transaction()).segwit_v0(
            index, code, sats(message.prevOutValue), SIGHASH_ALL
        )

        def reply(nonce: bytes) -> hww.Response:
            last = index + 1 == len(signing.inputs)
            following = (_NEXT.DONE, 0) if last else (_NEXT.INPUT, index + 1)
            signed = {"has_signature": True, "signature": self._sign(path, digest, nonce)[:64]}
            return hww.Response(btc={"sign_next": _next(*following, **signed).btc_sign_next})

        point = self._commit(message, path, digest, reply)
        return _next(_NEXT.HOST_NONCE, anti_klepto_signer_commitment={"commitment": point})

    def _transaction(self) -> Transaction:
        signing = self._signing
        inputs = [
            TxIn(OutPoint(item.prevOutHash[::-1].hex(), item.prevOutIndex), item.sequence)
            for item in signing.inputs
        ]
        outputs = [TxOut(sats(item.value), self._output_script(item)) for item in signing.outputs]
        return Transaction(signing.init.version, tuple(inputs), tuple(outputs), signing.init.locktime)

    def _output_script(self, item: Any) -> bytes:
        if not item.ours:
            assert item.type in {btc.P2WPKH, btc.P2WSH}
            return bytes((0, len(item.payload))) + item.payload
        config = self._signing.init.script_configs[item.script_config_index].script_config
        return self._scripts(config, DerivationPath(tuple(item.keypath)))[0]

    def _scripts(self, config: Any, path: DerivationPath) -> tuple[bytes, bytes]:
        """The output script, and the script code of the signature hash."""
        if config.WhichOneof("config") == "simple_type":
            key = self.seed.public_key(path)
            return p2wpkh(key), p2pkh(hash160(key))
        if _identity(config) not in self.registered:
            raise Refusal(101, "unknown script config")
        quorum = config.multisig
        chain, index = tuple(path)[-2:]
        keys = sorted(_xpub(xpub).derive_public_key(chain, index) for xpub in quorum.xpubs)
        script = multisig_script(quorum.threshold, keys)
        return p2wsh(script), script

    def _nonce(self, path: DerivationPath, digest: bytes) -> bytes:
        return hashlib.sha256(self.seed.sign(path, digest)).digest()

    def _sign(self, path: DerivationPath, digest: bytes, host_nonce: bytes) -> bytes:
        """64 bytes and the recovery id; the nonce includes the host's part unless the device cheats."""
        first = self._nonce(path, digest)
        point = secp256k1.public_key_of(first)
        tweak = (
            tagged_sha256(b"s2c/ecdsa/point", point + host_nonce)
            if self.honest_nonce
            else bytes(31) + b"\x01"
        )
        nonce = secp256k1.tweaked_private_key(first, tweak)
        return _ecdsa(self.seed._node(path).key, nonce, digest)

    def _ask(self, question: str) -> None:
        if not self.decide(question):
            raise Refusal(104, "aborted by the user")


def _ecdsa(key: bytes, nonce: bytes, digest: bytes) -> bytes:
    point = secp256k1.uncompressed(secp256k1.public_key_of(nonce))
    r, odd = int.from_bytes(point[1:33]) % ORDER, point[64] & 1
    k, d, z = (int.from_bytes(part) for part in (nonce, key, digest))
    s = pow(k, -1, ORDER) * (z + r * d) % ORDER
    if s > ORDER // 2:
        s, odd = ORDER - s, odd ^ 1
    return r.to_bytes(32) + s.to_bytes(32) + bytes([odd])


def _identity(config: Any) -> bytes:
    """The same for any order of a quorum's keys."""
    quorum = config.multisig
    keys = sorted(xpub.SerializeToString() for xpub in quorum.xpubs)
    return hashlib.sha256(bytes([quorum.threshold, quorum.script_type]) + b"".join(keys)).digest()


def _xpub(told: Any) -> ExtendedPublicKey:
    return ExtendedPublicKey(
        kind=NetworkKind.TESTNET,
        depth=told.depth[0],
        parent_fingerprint=Fingerprint(told.parent_fingerprint),
        child_number=told.child_num,
        chain_code=told.chain_code,
        public_key=told.public_key,
    )


def _without_nonce(message: Any) -> Any:
    plain = btc.BTCSignInputRequest()
    plain.CopyFrom(message)
    plain.ClearField("host_nonce_commitment")
    return plain


def _next(kind: int, index: int = 0, **more: Any) -> hww.Response:
    return hww.Response(btc_sign_next={"type": kind, "index": index, **more})
