"""What a command has to load: Core starts the program anew for each question."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, json, sys
loaded = lambda: [name for name in sys.modules if sys.modules[name]]
atexit.register(lambda: print(json.dumps(loaded()), file=sys.stderr))
from signerd.hwi import main
main()
"""
NEVER = ("hwilib", "hid", "usb1", "firmware_bridge", "click", "asyncio")
# Of the shapes, and of what derives keys: five times of what the rest costs.
NOT_FOR_A_QUESTION = (
    "httpx",
    "pydantic",
    "signerd.shapes.account",
    "multisig",
    "btclib_secp256k1",
    "embit",
)


def loaded_by(tmp_path, *arguments):
    """By a command that finds no daemon, and so far as it gets without one."""
    command = [sys.executable, "-c", PROGRAM, "--state", str(tmp_path / "nowhere"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert len(ended.stdout.splitlines()) == 1
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments",
    [("enumerate",), ("-f", "73c5da0a", "signtx", "cHNidP8=")],
)
def test_a_question_loads_neither_hwi_nor_a_client_nor_the_core(tmp_path, arguments):
    assert loaded_by(tmp_path, *arguments) & {*NEVER, *NOT_FOR_A_QUESTION, "ssl"} == set()
