"""What the daemon's process does not have to carry for weeks."""

import json
import os
import signal
import subprocess
import sys

from tests.signerd.cli.test_daemon import CONFIG

# Of other commands, of terminals, of the platform's server, of the devices' worker processes; and what comes
# with the first PSBT.
LEFT_OUT = (
    "signerd.cli.devices",
    "signerd.cli.proposals",
    "signerd.cli.vaults",
    "webbrowser",
    "sqlalchemy",
    "alembic",
    "fastapi",
    "opentelemetry",
    "custody.server",
    "embit",
    "pbk",
    "hwilib",
    "usb1",
    "hid",
    "ecdsa",
    "pyaes",
    "keyring",
    "cryptography",
    "argon2",
    "segno",
    "dbus_fast",
    "prometheus_client",
    "signerd.demo",
    "device_simulators",
)
# The real program, which says at its end what it has imported while it served, and which answers of the
# platform it was ready to read.
PROGRAM = """
import atexit, json, sys
def told():
    from custody.schemas.common import Shape
    built = [shape.__name__ for shape in Shape.__subclasses__() if shape.__pydantic_complete__]
    return json.dumps([[name for name in sys.modules if sys.modules[name]], built])
atexit.register(lambda: print(told(), file=sys.stderr))
from signerd.cli import main
main()
"""


def carried_by_a_run(state, *arguments):
    state.mkdir(mode=0o700)
    (state / "config.toml").write_text(CONFIG)
    command = [sys.executable, "-c", PROGRAM, *arguments]
    env = {**os.environ, "SIGNERD_STATE": str(state)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as program:
        program.stdin.write("phrase\n")
        program.stdin.close()
        assert "serves" in program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        program.stdout.read()
        said = program.stderr.read()
        assert program.wait(20) == 0, said
    return json.loads(said)


def test_the_daemon_carries_nothing_that_it_does_not_use(tmp_path):
    loaded, built = carried_by_a_run(tmp_path / "s", "run")
    assert "signerd.daemon.service" in loaded
    assert [name for name in LEFT_OUT if name in loaded] == []
    # Its platform has told it of nothing.
    assert {"Proposal", "Vault", "Contract"}.isdisjoint(built)
