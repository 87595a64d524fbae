"""Settings in files, as containers and service managers hand over what is secret."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from custody.common.terminal import Exit
from custody.server.chain.core import Password
from custody.server.cli import app
from custody.server.mail.mailer import SmtpServer
from custody.server.settings import CREDENTIALS_DIR, Settings

URL = "postgresql://custody:hunter2@127.0.0.1/custody"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CUSTODY_DATABASE_URL", raising=False)
    (tmp_path / "custody_database_url").write_text(f"{URL}\n")
    (tmp_path / "another_programs").write_text("hunter3\n")
    monkeypatch.setenv(CREDENTIALS_DIR, str(tmp_path))
    return tmp_path


def test_a_file_of_the_folder_is_a_setting_and_no_repr_has_a_password(folder: Path) -> None:
    """P49."""
    settings = Settings(state=folder, smtp_password="hunter4")
    assert settings.database == URL
    relay = SmtpServer("mail.example.org", username="u", password=settings.smtp_password)
    assert "hunter" not in repr(settings) + repr(relay)


def test_what_the_environment_says_goes_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTODY_DATABASE_URL", "sqlite:////elsewhere.db")
    assert Settings(state=folder).database == "sqlite:////elsewhere.db"


def test_a_node_and_its_password_may_be_files_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "custody_chain_regtest").write_text("bitcoind:http://127.0.0.1:18443\n")
    (folder / "custody_chain_regtest_user").write_text("custody\n")
    (folder / "custody_chain_regtest_password").write_text("hunter2\n")
    (node,) = Settings(state=folder).chains
    assert (node.kind, node.url.get_secret_value()) == ("bitcoind", "http://127.0.0.1:18443")
    assert node.credentials == Password("custody", SecretStr("hunter2"))
    monkeypatch.setenv("CUSTODY_CHAIN_REGTEST", "bitcoind:http://127.0.0.1:28443")
    assert Settings(state=folder).chains[0].url.get_secret_value() == "http://127.0.0.1:28443"


@pytest.mark.parametrize("command", ["serve", "worker", "status"])
def test_a_folder_that_is_not_there_begins_no_empty_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv(CREDENTIALS_DIR, str(tmp_path / "missing"))
    state = tmp_path / "state"
    answer = CliRunner().invoke(app, [command, "--state", str(state)])
    assert answer.exit_code == Exit.STATE
    assert "missing cannot be used: Not a directory." in answer.stderr
    assert not state.exists()
