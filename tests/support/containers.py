"""The scenario of `tests/deploy/test_containers.py`: deploy/compose.yaml on regtest, from an empty folder to
a confirmed payment, and again after a restart. Prints what it saw as JSON.

It runs in network and mount namespaces of its own, as root, with the images already built.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import yaml

from multisig import Network
from multisig.script import decode_address
from tests.support.bitcoind import NodeRig, RunningNode
from tests.support.custody import SHOP, SIGNERS, Desk, ok
from tests.support.namespace import raise_loopback
from tests.support.platform import PASSWORD, As, register_key, seed
from tests.support.processes import ended, said

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose.yaml"
SERVICES = ("postgres", "bitcoind", "api-1", "api-2", "worker-1", "worker-2")
# Six containers start, perhaps on a busy machine.
PATIENCE = 300
PORTS = (8081, 8082)
AMOUNT = 30_000_000
# As in docs/operate/containers.md: name, mode, owner, group.
FOLDERS = (
    ("", 0o755, 0, 0),
    ("state", 0o700, 10001, 10001),
    ("secrets", 0o711, 10001, 10001),
    ("bitcoind", 0o750, 10002, 10001),
    ("cookie", 0o750, 10002, 10001),
    ("postgres", 0o700, 999, 999),
)


def on_regtest(compose: dict[str, Any]) -> dict[str, Any]:
    """The same on regtest, which needs no peers and no initial download."""
    for name, service in compose["services"].items():
        if name == "bitcoind":
            service["command"] += ["-regtest", "-rpcport=8332", "-connect=0"]
        elif "environment" in service:
            service["environment"] = {
                key.replace("_MAINNET", "_REGTEST"): value for key, value in service["environment"].items()
            }
    return compose


class Containers:
    """The containers of one Compose file, by podman-compose."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.data = folder / "data"
        self._program = program
        self._file = folder / "compose.yaml"
        compose = yaml.safe_load(FILE.read_text())
        for service in compose["services"].values():
            service.pop("build", None)  # built before, where there is a network
        self._file.write_text(yaml.safe_dump(on_regtest(compose)))
        self._environment = {
            **os.environ,
            "CUSTODY_DATA": str(self.data),
            "BITCOIND_IMAGE": "localhost/bitcoin:test",
            "CUSTODY_MAIL_FROM": "custody@example.org",
            "CUSTODY_PUBLIC_URL": "https://custody.example.org",
            "CUSTODY_SMTP_HOST": "mail.example.org",
            "CUSTODY_SMTP_USERNAME": "custody",
        }

    def prepare(self) -> None:
        for name, mode, user, group in FOLDERS:
            path = self.data / name
            path.mkdir(mode=mode)
            path.chmod(mode)
            os.chown(path, user, group)
        password = secrets.token_hex(16)
        url = f"postgresql://custody:{password}@postgres/custody?sslmode=disable"
        for name, value, owner in (
            ("postgres_password", password, 999),
            ("custody_database_url", url, 10001),
            ("custody_smtp_password", "unused", 10001),
        ):
            path = self.data / "secrets" / name
            path.write_text(value + "\n")
            path.chmod(0o400)
            os.chown(path, owner, owner)

    def compose(self, *arguments: str, text: str = "") -> str:
        command = [str(self._program), "--in-pod", "false", "-f", str(self._file), *arguments]
        return self._run(command, text)

    def podman(self, *arguments: str) -> str:
        return self._run(["podman", *arguments], "")

    def _run(self, command: list[str], text: str) -> str:
        return said(command, input=text, seconds=PATIENCE, env=self._environment)

    def admin(self, *arguments: str) -> dict[str, Any]:
        """Runs an operator's command in a container of its own, as the guide does."""
        told = self.compose(
            "run", "--rm", "-T", "worker-1", "admin", *arguments, "--json", text=PASSWORD + "\n"
        )
        return dict(json.loads(told[told.index("{") :]))

    def await_health(self) -> None:
        """Runs the health checks: without systemd Podman has no timer for them."""
        for service in SERVICES:
            _until(lambda: self.is_healthy(service), f"{service} is not healthy")  # noqa: B023 - called at once

    def is_healthy(self, service: str) -> bool:
        return ended(["podman", "healthcheck", "run", f"custody_{service}_1"]).returncode == 0

    def address_of(self, service: str, network: str) -> str:
        (found,) = json.loads(self.podman("inspect", f"custody_{service}_1"))
        return str(found["NetworkSettings"]["Networks"][f"custody_{network}"]["IPAddress"])


class Node(RunningNode):
    """The container's node, called from the host's end of the internal network."""

    def __init__(self, address: str, cookie: Path) -> None:
        super().__init__(Path("bitcoind"), cookie.parent)
        self._address = address
        self._cookie = cookie

    @property
    def url(self) -> str:
        return f"http://{self._address}:8332"

    @property
    def cookie(self) -> Path:
        return self._cookie


def tell(folder: Path, program: Path) -> dict[str, Any]:
    """The story."""
    containers = Containers(folder, program)
    containers.prepare()
    try:
        return _life(containers)
    finally:
        for service in SERVICES:
            _note(f"--- {service}\n" + _logs(service))
        containers.compose("down", "--timeout", "5")


def _life(containers: Containers) -> dict[str, Any]:
    containers.compose("up", "-d")
    containers.await_health()
    # Before its first block of today the node is fetching the chain, as it says.
    cookie = containers.data / "cookie" / ".cookie"
    rig = NodeRig(Node(containers.address_of("bitcoind", "inside"), cookie), spare_coins=4)
    seen: dict[str, Any] = {"ready": [_ready(port) for port in PORTS]}
    placed = containers.admin(
        "bootstrap", "--organisation", "Acme", "--workspace", "Treasury", "--chain", "regtest",
        "--email", "admin@example.org", "--no-two-factor",
    )  # fmt: skip
    ids = {
        name: containers.admin(
            "add-member", "--workspace-id", str(placed["workspace_id"]), "--email", f"{name}@example.org",
            "--no-two-factor",
        )["user_id"]
        for name in SIGNERS
    }  # fmt: skip
    one, other = (httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) for port in PORTS)
    with one, other:
        desk = _desk(placed["workspace_id"], ids, one, other)
        desk.vault = ok(desk.create_vault())
        rig.pay(decode_address(desk.wallets()[0]["receive_address"], Network.REGTEST), 50_000_000)
        rig.mine(6)
        _until(lambda: _balance(desk) == 50_000_000, "the deposit does not arrive")
        psbt_id = ok(desk.propose(AMOUNT, recipients=[SHOP]))["psbt_id"]
        desk.sign_off(psbt_id)
        _until(lambda: rig.node.call("getrawmempool") != [], "the payment is not broadcast")
        rig.mine(6)
        _until(lambda: desk.proposal(psbt_id)["status"] == "CONFIRMED", "the payment is not confirmed")
        seen["balance"] = _balance(desk)
    seen["uids"] = {name: _user_of(containers, name) for name in SERVICES}
    rig.close()
    containers.compose("stop")
    seen["stopped"] = {name: _exit_of(containers, name) for name in SERVICES}
    containers.compose("up", "-d")
    containers.await_health()
    with httpx.Client(base_url=f"http://127.0.0.1:{PORTS[1]}", timeout=PATIENCE) as http:
        again = _signed_in(http, "alice")
        seen["after"] = ok(again.get("/api/v1/psbt", psbt_id=psbt_id))["status"]
        wallets = ok(again.get("/api/v1/list-wallets", workspace_id=placed["workspace_id"]))
        seen["balance_after"] = wallets[0]["confirmed_sats"]
    return seen


def _desk(workspace_id: int, ids: dict[str, int], first: httpx.Client, second: httpx.Client) -> Desk:
    """People who call two processes: the signers call the second."""
    devices = {name: seed(number) for number, name in enumerate(SIGNERS, start=1)}
    signers = {name: _signed_in(second, name) for name in SIGNERS}
    for name, device in devices.items():
        ok(register_key(signers[name], device))
    world: Any = None
    return Desk(world, world, workspace_id, _signed_in(first, "admin"), signers, ids, devices)


def _signed_in(http: httpx.Client, name: str) -> As:
    answer = ok(http.post("/auth/login", json={"email": f"{name}@example.org", "password": PASSWORD}))
    http.cookies.clear()
    return As(http, {"Authorization": f"Bearer {answer['token']}"})


def _ready(port: int) -> str:
    return str(ok(httpx.get(f"http://127.0.0.1:{port}/ready"))["status"])


def _balance(desk: Desk) -> int:
    return int(desk.wallets()[0]["confirmed_sats"])


def _user_of(containers: Containers, service: str) -> str:
    """The user and capabilities of the container's first process."""
    pid = containers.podman("inspect", "--format", "{{.State.Pid}}", f"custody_{service}_1").strip()
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    return f"{status['Uid'].split()[1]} {int(status['CapEff'], 16):x}"


def _exit_of(containers: Containers, service: str) -> int:
    return int(containers.podman("inspect", "--format", "{{.State.ExitCode}}", f"custody_{service}_1"))


def _logs(service: str) -> str:
    done = ended(["podman", "logs", "--tail", "15", f"custody_{service}_1"])
    return done.stdout + done.stderr


def _note(text: str) -> None:
    sys.stderr.write(text + "\n")


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


if __name__ == "__main__":
    raise_loopback()
    sys.stdout.write(json.dumps(tell(Path(sys.argv[1]), Path(sys.argv[2]))) + "\n")
