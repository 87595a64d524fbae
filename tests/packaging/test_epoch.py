"""The day of a release: of its commit; without git, as in an archive, the builder says it. Its list of known
flaws is not much older.
"""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from firmware_bridge.advisories import packaged
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


@pytest.mark.parametrize(
    ("tool", "days", "refused"), [("flaws", 90, 0), ("flaws", 91, 1), ("release", 91, 1)]
)
def test_s22_no_release_has_a_list_of_known_flaws_that_is_older_than_90_days(tool, days, refused):
    day = datetime.fromisoformat(packaged().read_on).replace(tzinfo=UTC) + timedelta(days=days)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": f"{day.timestamp():.0f}", "UV": "/nowhere/uv"}
    done = ended(["sh", f"tools/{tool}"], cwd=ROOT, env=environment)
    assert (done.returncode, done.stdout) == (refused, "")
    assert ("known_flaws.toml is 91 days old" in done.stderr) is bool(refused)
