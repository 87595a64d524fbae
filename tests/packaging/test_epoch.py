"""Sources without git, as in an archive: the builder dates the release."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.processes import ended

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("tool", ["deb", "release"])
def test_without_a_commit_it_asks_for_the_day_before_it_builds(tool, tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    for name in ("SOURCE_DATE_EPOCH", "GIT_DIR", "GIT_WORK_TREE"):
        environment.pop(name, None)
    done = ended(["sh", f"tools/{tool}"], cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert "SOURCE_DATE_EPOCH=$(date -d YYYY-MM-DD +%s)" in sentence
