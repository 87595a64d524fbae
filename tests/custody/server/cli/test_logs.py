"""A server's first log lines."""

import json
import os
import re
from pathlib import Path

import pytest
import structlog

from custody.server.cli.logs import begin_log, log_start, shown
from custody.server.settings import Settings

SECRET = "hunter2"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Every text setting, set to a secret."""
    monkeypatch.setenv("CUSTODY_DATABASE_URL", f"postgresql://custody:{SECRET}@127.0.0.1/custody")
    monkeypatch.setenv("CUSTODY_SMTP_PASSWORD", SECRET)
    monkeypatch.setenv("CUSTODY_SMTP_USERNAME", SECRET)
    monkeypatch.setenv("CUSTODY_SMTP_HOST", "mail.example.org")
    return Settings(state=tmp_path)


def lines(captured: str) -> list[dict]:
    return [json.loads(line) for line in captured.splitlines()]


def test_the_configuration_is_told_without_its_secrets(
    settings: Settings, capsys: pytest.CaptureFixture
) -> None:
    """P49."""
    begin_log("info")
    log_start("serve", settings)
    told = capsys.readouterr().err
    assert SECRET not in told
    start, note = lines(told)
    assert (start["event"], start["command"], start["database"]) == ("starting", "serve", "postgresql")
    assert start["settings"]["database_url"] == start["settings"]["smtp_username"] == "(set)"
    assert start["settings"]["smtp_host"] == "mail.example.org"
    assert "webhook_allow" not in start["settings"], "it is not set"
    assert start["chains"] == {"regtest": "embedded"}
    assert (note["event"], note["setting"]) == ("no public address", "CUSTODY_PUBLIC_URL")
    assert "mails have no links" in note["reason"]


def test_a_terminal_is_told_in_words_and_cannot_be_steered(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = os.openpty()
    with os.fdopen(ours, "rb") as screen, os.fdopen(terminal, "w") as end:
        monkeypatch.setattr("sys.stderr", end)
        begin_log("info")
        structlog.get_logger().warning("backend down", chain="signet", reason="\x1b[2J\nno")
        shown = screen.readline().decode()
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning: backend down\. chain signet, reason ·\[2J·no\r\n", shown)


def test_an_unlisted_setting_is_a_secret(tmp_path: Path) -> None:
    """Only listed settings are shown; a new text setting is hidden until a developer lists it."""

    class Newer(Settings):
        node_password: str = SECRET
        nodes: dict[str, str] = {"regtest": SECRET}  # noqa: RUF012 - pydantic copies it
        others: list[str] = [SECRET]  # noqa: RUF012

    told = shown(Newer(state=tmp_path))
    assert SECRET not in str(told)
    assert told["state"] == str(tmp_path)
