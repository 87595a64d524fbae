"""Supported interpreters: on another one the programs end with a sentence before they load anything. The
garbage collector's settings.
"""

import gc
import sys

import pytest

from custody.common.interpreter import prepare
from tests.support.processes import ended, said

AS_IF_NEWER = "import sys; sys.version_info = (3, 15, 0, 'final', 0); sys.argv = ['it', '--version']; "


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13), (3, 14)])
def test_what_is_supported_is_let_through(version):
    usual = gc.get_threshold()
    prepare("signerd", version)
    gc.set_threshold(*usual)


@pytest.mark.parametrize("package", ["signerd.cli", "signerd.hwi", "custody.cli"])
def test_each_program_says_it_before_it_loads_what_is_missing(package):
    code = f"{AS_IF_NEWER}sys.modules['btclib_secp256k1'] = None; from {package} import main; main()"
    done = ended([sys.executable, "-c", code])
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert "runs on Python 3.11 to 3.14, and this is 3.15:" in sentence
    extras = "desktop,server" if package == "custody.cli" else "desktop"
    assert sentence.endswith(f"run uv tool install --python 3.14 'signerd[{extras}]'")


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        ("uv-receipt.toml", "uv tool upgrade --python 3.14 signerd"),
        ("pipx_metadata.json", "pipx reinstall --python 3.14 signerd"),
    ],
)
def test_the_installer_that_made_the_environment_is_named(receipt, line, tmp_path, monkeypatch):
    (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SystemExit, match=f"run {line}$"):
        prepare("signerd", (3, 15))


def test_what_stays_collects_as_usual_once_it_has_started():
    """Else seven hundred times as much that is part of a cycle waits to be freed."""
    code = (
        "import gc; usual = gc.get_threshold(); from custody.common.interpreter import prepare, settle; "
        "prepare('it'); assert gc.get_threshold() > usual; "
        "settle(); assert gc.get_threshold() == usual; assert gc.get_freeze_count() > 0"
    )
    said([sys.executable, "-c", code])
