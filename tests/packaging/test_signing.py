"""The list of checksums, signed and checked with the very commands of docs/build/releasing.md,
by a test's key.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.processes import ended, said

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
PAGE = (Path(__file__).parents[2] / "docs" / "build" / "releasing.md").read_text()
SIGN, VERIFY = re.findall(r"^    (ssh-keygen -Y .*)$", PAGE, re.MULTILINE)
(CHECK,) = re.findall(r"^    (sha256sum --check .*)$", PAGE, re.MULTILINE)


def run(command: str, folder: Path) -> bool:
    return ended(["sh", "-c", command], cwd=folder).returncode == 0


def key(folder: Path, name: str = "signerd-release") -> str:
    """A new key pair without a passphrase; its public half."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a test's", "-f", folder / name]
    said(command)
    kind, public, *_comment = (folder / f"{name}.pub").read_text().split()
    return f"{kind} {public}"


@pytest.fixture
def release(tmp_path):
    """A signed release, and who may sign one."""
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "signerd.whl").write_bytes(b"wheel")
    assert run("cd dist && sha256sum -- * >../s && mv ../s SHA256SUMS", tmp_path)
    public = key(tmp_path)
    allowed = f'release@signerd namespaces="signerd-release" {public}\n'
    (tmp_path / "dist" / "allowed_signers").write_text(allowed)
    assert run(SIGN, tmp_path)
    return tmp_path / "dist"


def test_what_was_signed_is_found_good(release):
    assert run(VERIFY, release)
    assert run(CHECK, release)


def test_a_changed_list_is_seen(release):
    with (release / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64}  signerd.deb\n")
    assert not run(VERIFY, release)


def test_another_key_is_refused(release):
    (release / "SHA256SUMS.sig").unlink()
    key(release, "other")
    assert run(f"ssh-keygen -Y sign -n signerd-release -f {shlex.quote('other')} SHA256SUMS", release)
    assert not run(VERIFY, release)
