"""deploy/ started for real: the image is built from deploy/Dockerfile, and Podman runs what
deploy/compose.yaml describes, on regtest, from an empty folder to a confirmed payment and through a restart.

Needs root, Podman, and what ``tools/container-images .cache/containers`` makes (minutes, once).
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.processes import said

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / ".cache" / "containers"
INSIDE = (str(ROOT / "tools" / "in-containers"), str(IMAGES))
# An image is built, twelve containers start and stop, on a machine that does other things, too.
PATIENCE = 1_500


def missing() -> str | None:
    if not (IMAGES / "ready").exists():
        return "there are no images: run tools/container-images .cache/containers, as root"
    if shutil.which("podman") is None:
        return "there is no podman here"
    return None if os.geteuid() == 0 else "Podman is tried as root, who made the images"


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def test_what_deploy_describes_starts_pays_and_starts_again(tmp_path: Path) -> None:
    build = "podman build --pull=never --network host -f deploy/Dockerfile -t custody ."
    said([*INSIDE, *build.split()], cwd=ROOT, seconds=PATIENCE)
    story = [
        sys.executable,
        "-m",
        "tests.support.containers",
        tmp_path,
        IMAGES / "compose/bin/podman-compose",
    ]
    told = said(["unshare", "--net", *INSIDE, *story], cwd=ROOT, seconds=PATIENCE)
    seen = json.loads(told.splitlines()[-1])
    assert seen["ready"] == ["ready", "ready"]
    assert 19_000_000 < seen["balance"] < 20_000_000, "of half a coin, what was paid and its fee are gone"
    for name in ("api-1", "api-2", "worker-1", "worker-2"):
        assert seen["uids"][name] == "10001 0", "the platform's own number, and no capability"
        assert seen["stopped"][name] == 0, "it ended by itself when it was told to"
    assert seen["uids"]["bitcoind"] == "10002 0"
    assert seen["after"] == "CONFIRMED"
    assert seen["balance_after"] == seen["balance"]
