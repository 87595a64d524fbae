"""Our bridge compared with HWI in this process and HWI's command line, on the same virtual devices."""

import os
import subprocess
import sys

from tests.support.namespace import ROOT, isolated


def main() -> None:
    """HWI's command line knows fixed addresses only, and is left out where no namespace keeps them free."""
    inside, environment = isolated(sys.executable, "-m", "benchmarks.devices.inside", "--fixed-addresses")
    if _works(*isolated(sys.executable, "-c", "")):
        subprocess.run(inside, env=environment, check=True)
        return
    print("No user namespace is to be had here: without HWI's command line.")
    search_path = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "benchmarks.devices.inside"], cwd=ROOT, env=search_path, check=True)


def _works(command: list[str], environment: dict[str, str]) -> bool:
    try:
        return not subprocess.run(command, env=environment, capture_output=True, check=False).returncode
    except OSError:
        return False
