"""HWI's own command line with the libusb that the wheel bundles: `python -m tests.support.hwi_command` reads
lists of arguments and runs each.
"""

import ctypes
import json
import sys
from collections.abc import Sequence

import libusb_package
import usb1

from tests.support.processes import ended

# What each command is given.
HERE = ("--emulators", "--chain", "test")


def each_of(commands: Sequence[Sequence[str]]) -> list:
    """The answers of the commands, run in turn in one process, which saves most of the time."""
    command = [sys.executable, "-m", "tests.support.hwi_command", json.dumps(commands)]
    done = ended(command)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(commands):
        raise AssertionError(f"hwi answered {len(answers)} of {len(commands)}: {done.stderr}")
    return answers


if __name__ == "__main__":
    usb1.loadLibrary(ctypes.CDLL(str(libusb_package.get_library_path())))
    from hwilib._cli import process_commands

    for given in json.loads(sys.argv[1]):
        print(json.dumps(process_commands([*HERE, *given])), flush=True)  # noqa: T201 - the answer to the parent process
