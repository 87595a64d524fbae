"""A scheduled backup, in a process of its own: ``STATE FOLDER RECIPIENT``.

A process of its own, so that the libraries and the copy do not stay in the daemon's memory. Exit status 0: it
was made; else the last line of standard error says why not.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from custody.common.text import said
from signerd.backup.writing import back_up, file_name
from signerd.errors import SignerdError


def main(state: str, folder: str, recipient: str) -> int:
    now = datetime.now(UTC)
    try:
        back_up(Path(state), Path(folder) / file_name(now), now, recipient=recipient)
    except SignerdError as error:
        sys.stderr.write(f"{said(error)}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
