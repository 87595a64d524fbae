"""What the daemon's process does not have to carry for weeks."""

import json
import os
import signal
import subprocess
import sys

CONFIG = """network = "regtest"
[platform]
url = "http://127.0.0.1:9"
[devices]
usb = false
[secrets]
store = "file"
"""
# Of the command line, of terminals, of the platform's server, of the devices' worker processes.
LEFT_OUT = (
    "typer",
    "rich",
    "pygments",
    "httpx._main",
    "signerd.cli.main",
    "sqlalchemy",
    "alembic",
    "custody.server",
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
    "signerd.demo",
    "firmware_bridge.virtual",
)
# The real program, which says at its end what it has imported while it served.
PROGRAM = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps([name for name in sys.modules if sys.modules[name]]), file=sys.stderr))
from signerd.cli import main
main()
"""


def modules_of_a_run(state, *arguments):
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
    return set(json.loads(said))


def test_the_daemon_carries_nothing_that_it_does_not_use(tmp_path):
    loaded = modules_of_a_run(tmp_path / "s", "run")
    assert "signerd.daemon" in loaded
    assert [name for name in LEFT_OUT if name in loaded] == []


def test_the_long_way_leads_to_the_same_daemon(tmp_path):
    """Written otherwise, the command line is read by its library; the daemon only weighs more."""
    loaded = modules_of_a_run(tmp_path / "s", f"--state={tmp_path / 's'}", "run")
    assert "typer" in loaded
