"""The statements and transactions of calls and jobs beside their budgets, on SQLite; and the pages' budgets,
which `tests/custody/server/console/test_growth.py` compares.
"""

import tempfile
from pathlib import Path

from benchmarks.custody.stage import quiet
from tests.support.budgets import budgets, measured
from tests.support.custody import open_desk


def main() -> None:
    quiet()
    with tempfile.TemporaryDirectory(prefix="bench") as folder, open_desk(Path(folder) / "state") as desk:
        found = measured(desk)
    print(f"{'statements / transactions':70} {'found':8} budget")
    for name, budget in budgets().items():
        seen = "{:3} / {}".format(*found[name]) if name in found else ""
        print(f"{name:70} {seen:8} {budget.statements:3} / {budget.transactions}  {budget.reason}".rstrip())
