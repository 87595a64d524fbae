"""A Jade on a TCP port: the maker's CBOR requests, a real seed, and a scripted person.

It implements what HWI uses of the maker's documentation (docs/index.rst of Blockstream/Jade) and of the
firmware's replies. It checks little and shows nothing.
"""

import base64
import io
import socketserver
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import cbor2

from device_simulators.seed import Seed
from firmware_bridge.model import Family
from multisig import DerivationPath, Network, OriginKey, Psbt, Vault, encode_address, message_hash, p2wpkh
from tests.support.wallets import Holder

_CHUNK = 4096
_NETWORKS = {"mainnet": Network.MAINNET, "testnet": Network.TESTNET4, "localtest": Network.REGTEST}


class Refusal(Exception):
    """An error reply: code and message."""


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        received = bytearray()
        while data := self.request.recv(65536):
            received += data
            while (request := _take(received)) is not None:
                if request["method"] == self.server.peer.vanish_at:
                    return
                for reply in self.server.peer.answer(request):
                    self.request.sendall(cbor2.dumps(reply))


@dataclass
class JadePeer:
    """The device. `decide` answers for the person; `methods` lists the requests in order."""

    handler = Handler
    family = Family.JADE
    seed: Seed
    state: str = "READY"
    networks: str = "TEST"
    version: str = "1.0.33"
    board: str = "JADE_V2"
    doing: int = 0
    decide: Callable[[str], bool] = lambda _method: True
    chunk: int = _CHUNK
    methods: list[str] = field(default_factory=list)
    registered: dict[str, dict[str, Any]] = field(default_factory=dict)
    stale: list[dict[str, Any]] = field(default_factory=list)
    vanish_at: str | None = None

    def answer(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        method, params = request["method"], request.get("params") or {}
        self.methods.append(method)
        yield from self.stale
        try:
            result = getattr(self, f"do_{method}", _unknown)(params)
        except Refusal as refusal:
            code, message = refusal.args
            yield {"id": request["id"], "error": {"code": code, "message": message, "data": None}}
        else:
            yield from self._pieces(request["id"], method, result)

    def _pieces(self, number: str, method: str, result: Any) -> Iterator[dict[str, Any]]:
        if method not in {"sign_psbt", "get_extended_data"}:
            yield {"id": number, "result": result}
            return
        sequence, data, total = result
        yield {"id": number, "seqnum": sequence, "seqlen": total, "result": data}

    def do_ping(self, _params: Any) -> int:
        return self.doing

    def do_get_version_info(self, _params: Any) -> dict[str, Any]:
        return {
            "JADE_VERSION": self.version,
            "JADE_STATE": self.state,
            "JADE_NETWORKS": self.networks,
            "BOARD_TYPE": self.board,
        }

    def do_auth_user(self, params: Any) -> Any:
        if self.networks != "ALL" and (self.networks == "MAIN") != (params["network"] == "mainnet"):
            raise Refusal(-32003, "Network type inconsistent with prior usage")
        if self.state in {"READY", "TEMP"}:
            self.state = "READY"
            return True
        server = {"urls": ["http://127.0.0.1:9/get_pin"], "method": "POST", "accept": "json", "data": {}}
        return {"http_request": {"params": server, "on-reply": "pin"}}

    def do_get_xpub(self, params: Any) -> str:
        self._require_unlocked()
        return str(self.seed.xpub(DerivationPath(tuple(params["path"])), _NETWORKS[params["network"]]))

    def do_get_registered_multisigs(self, _params: Any) -> dict[str, Any]:
        return {
            name: {
                "variant": told["variant"],
                "sorted": told["sorted"],
                "threshold": told["threshold"],
                "num_signers": len(told["signers"]),
                "master_blinding_key": b"",
            }
            for name, told in self.registered.items()
        }

    def do_get_registered_multisig(self, params: Any) -> dict[str, Any]:
        told = self.registered[params["multisig_name"]]
        return {"multisig_name": params["multisig_name"], "descriptor": told}

    def do_register_multisig(self, params: Any) -> bool:
        self._require_unlocked()
        self._ask("register_multisig")
        if len(params["multisig_name"]) > 15:
            raise Refusal(-32602, "Invalid multisig name")
        self.registered[params["multisig_name"]] = params["descriptor"]
        return True

    def do_get_receive_address(self, params: Any) -> str:
        self._require_unlocked()
        network = _NETWORKS[params["network"]]
        if "variant" in params:
            key = self.seed.public_key(DerivationPath(tuple(params["path"])))
            address = encode_address(p2wpkh(key), network)
        else:
            chain, index = params["paths"][0]
            address = self._vault(params["multisig_name"], network).address(chain, index)
        self._ask("get_receive_address")
        return str(address)

    def do_sign_psbt(self, params: Any) -> tuple[int, bytes, int]:
        self._require_unlocked()
        psbt = Psbt.parse(bytes(params["psbt"]))
        self._ask("sign_psbt")
        self._signed = Holder(self.seed).sign(psbt).to_bytes()
        return self._piece(1)

    def do_get_extended_data(self, params: Any) -> tuple[int, bytes, int]:
        return self._piece(params["seqnum"])

    def do_sign_message(self, params: Any) -> str:
        self._require_unlocked()
        self._ask("sign_message")
        path = DerivationPath(tuple(params["path"]))
        signature = self.seed.sign_recoverable(path, message_hash(params["message"]))
        return base64.b64encode(signature).decode()

    def _piece(self, number: int) -> tuple[int, bytes, int]:
        start = (number - 1) * self.chunk
        total = -(-len(self._signed) // self.chunk)
        return number, self._signed[start : start + self.chunk], total

    def _vault(self, name: str, network: Network) -> Vault:
        told = self.registered[name]
        keys = []
        for signer in told["signers"]:
            path = str(DerivationPath(tuple(signer["derivation"]))).removeprefix("m")
            keys.append(
                OriginKey.parse(f"[{bytes(signer['fingerprint']).hex()}{path}]{signer['xpub']}", network)
            )
        return Vault(network, told["threshold"], tuple(keys))

    def _require_unlocked(self) -> None:
        if self.state not in {"READY", "TEMP"}:
            raise Refusal(-32002, "Cannot process message - hardware locked or uninitialized")

    def _ask(self, method: str) -> None:
        if not self.decide(method):
            raise Refusal(-32000, "User declined")


def _unknown(_params: Any) -> None:
    raise Refusal(-32601, "Unknown method")


def _take(received: bytearray) -> dict[str, Any] | None:
    """Removes one whole request from the front of the buffer."""
    stream = io.BytesIO(bytes(received))
    try:
        request = cbor2.load(stream)
    except cbor2.CBORDecodeEOF:
        return None
    del received[: stream.tell()]
    return request
