"""HWI's own command line as it is shipped, given the libusb that the wheel bundles:
`python -m tests.support.hwi_command`.
"""

import ctypes
import json
import subprocess
import sys

import libusb_package
import usb1


def hwi(*arguments):
    """Run it as a program of its own and give what it prints, parsed."""
    command = [
        sys.executable,
        "-m",
        "tests.support.hwi_command",
        "--emulators",
        "--chain",
        "test",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if not done.stdout.strip():
        raise AssertionError(f"hwi printed nothing: {done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    usb1.loadLibrary(ctypes.CDLL(str(libusb_package.get_library_path())))
    from hwilib._cli import main

    main()
