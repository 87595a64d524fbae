"""What a daemon does not have to carry for weeks, and what a command does not have to load: Core starts the
program anew for each question, and a start must be quick.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.signerd.cli.test_daemon import CONFIG

# Of other commands, of terminals, of the platform's server, of the devices' worker processes; and what comes
# with the first PSBT.
NOT_OF_A_DAEMON = {
    *("signerd.cli.devices", "signerd.cli.proposals", "signerd.cli.vaults", "signerd.demo", "webbrowser"),
    *("sqlalchemy", "alembic", "fastapi", "opentelemetry", "custody.server", "prometheus_client", "embit"),
    *("pbk", "hwilib", "usb1", "hid", "ecdsa", "pyaes", "keyring", "cryptography", "argon2", "segno"),
    *("dbus_fast", "device_simulators"),
}
# Of a daemon, of the shapes, and of what derives keys: five times of what the rest costs.
NOT_OF_A_COMMAND = {
    "fastapi",
    "starlette",
    "uvicorn",
    "hwilib",
    "firmware_bridge",
    "multisig.vault",
    "sqlite3",
}
NOT_OF_A_COMMAND |= {"embit", "httpx", "pydantic"}
NOT_OF_HWI = {"hwilib", "hid", "usb1", "firmware_bridge", "click", "asyncio", "httpx", "pydantic", "ssl"}
NOT_OF_HWI |= {"signerd.shapes.account", "multisig", "btclib_secp256k1", "embit"}
# The real program, which says at its end what it has imported, and which answers of the platform it was ready
# to read.
PROGRAM = """
import atexit, json, sys
def told():
    shapes = getattr(sys.modules.get("custody.schemas.common"), "Shape", type(sys)).__subclasses__()
    built = [shape.__name__ for shape in shapes if getattr(shape, "__pydantic_complete__", False)]
    return json.dumps([[name for name in sys.modules if sys.modules[name]], built])
atexit.register(lambda: print(told(), file=sys.stderr))
from {package} import main
main()
"""


def test_a_daemon_carries_nothing_that_it_does_not_use(state):
    (state / "config.toml").write_text(CONFIG)
    command = [sys.executable, "-c", PROGRAM.format(package="signerd.cli"), "run"]
    environment = {**os.environ, "SIGNERD_STATE": str(state)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    ) as program:
        program.stdin.write("phrase\n")
        program.stdin.close()
        assert "serves" in program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        program.stdout.read()
        said = program.stderr.read()
        assert program.wait(20) == 0, said
    loaded, built = json.loads(said)
    assert "signerd.daemon.service" in loaded
    assert set(loaded) & NOT_OF_A_DAEMON == set()
    # Its platform has told it of nothing.
    assert {"Proposal", "Vault", "Contract"}.isdisjoint(built)


@pytest.mark.parametrize(
    ("package", "arguments", "left_out"),
    [
        ("signerd.cli", "--help", NOT_OF_A_COMMAND),
        ("signerd.cli", "devices unlock --help", NOT_OF_A_COMMAND),
        ("signerd.cli", "--state /nowhere status", NOT_OF_A_COMMAND),
        ("signerd.hwi", "--state /nowhere enumerate", NOT_OF_HWI),
        ("signerd.hwi", "--state /nowhere -f 73c5da0a signtx cHNidP8=", NOT_OF_HWI),
    ],
)
def test_a_command_loads_nothing_that_it_does_not_use(package, arguments, left_out):
    """So far as it gets without a daemon."""
    command = [sys.executable, "-c", PROGRAM.format(package=package), *arguments.split()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    loaded, _built = json.loads(ended.stderr.splitlines()[-1])
    assert package in loaded
    assert set(loaded) & left_out == set()
