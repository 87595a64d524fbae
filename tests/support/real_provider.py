"""A real OpenID provider, started on a port of its own and ended with the test.

`tools/identity-provider .cache/identity-provider` installs it; without it the tests that need it are skipped.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import certificate_for
from tests.support.identity import CLIENT_ID, CLIENT_SECRET

HOST = "localhost"
CACHED = Path(__file__).parents[2] / ".cache" / "identity-provider"
PROGRAM = Path(__file__).parent / "identity_provider" / "provider.mjs"
MISSING = "there is no identity provider: run tools/identity-provider .cache/identity-provider"


def authority(folder: Path) -> Path:
    """The certificate's file of the provider that `running` starts in that folder. Skips without it."""
    if shutil.which("node") is None or not (CACHED / "installed.json").exists():
        pytest.skip(MISSING)
    folder.mkdir(parents=True, exist_ok=True)
    return certificate_for(folder, HOST)[0]


@contextmanager
def running(folder: Path, redirect_uri: str) -> Iterator[str]:
    """Runs it and yields the issuer. Any name signs in."""
    told = {
        "key": (folder / f"{HOST}.key").read_text(),
        "certificate": (folder / f"{HOST}.pem").read_text(),
        "client": {"id": CLIENT_ID, "secret": CLIENT_SECRET},
        "redirectUri": redirect_uri,
    }
    # Run in the installation's folder, so that Node.js finds its packages.
    command = ["node", "--input-type=module", "--eval", PROGRAM.read_text()]
    with subprocess.Popen(
        command,
        cwd=CACHED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
            yield next(line for line in map(str.strip, process.stdout) if line.startswith("https://"))
        finally:
            process.kill()
