"""What the caller's process does not have to carry."""

import subprocess
import sys


def test_the_caller_never_imports_hwi():
    program = (
        "import sys, firmware_bridge;"
        "print([name for name in ('hwilib', 'usb1', 'hid', 'ecdsa', 'pyaes') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
