"""``custody`` as an operator runs it beside the platform's own state folder."""

from pathlib import Path

from click.testing import CliRunner, Result

from custody.server.cli import app


def custody(*words: object, state: Path | None = None, typed: str | None = None) -> Result:
    """``typed``: standard input."""
    where = ["--state", str(state)] if state is not None else []
    return CliRunner().invoke(app, [*map(str, words), *where], input=typed)
