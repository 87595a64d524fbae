"""Settings choose the chain's backend and the database, may be files, as containers and service managers hand
over what is secret, and are never repeated.
"""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr
from sqlalchemy import func, select

from custody.common.terminal import Exit
from custody.server.app import open_platform
from custody.server.chain.core import Password
from custody.server.cli import app
from custody.server.errors import ChainUnavailable
from custody.server.mail.mailer import SmtpServer
from custody.server.settings import CREDENTIALS_DIR, Settings
from custody.server.store import Store
from custody.server.store.models import UserRow
from tests.support import fake_bitcoind
from tests.support.platform import PASSWORD


@pytest.fixture
def rig(tmp_path):
    opened = fake_bitcoind.FakeNodeRig(tmp_path / "elsewhere")
    opened.mine(3)
    yield opened
    opened.close()


@pytest.fixture
def platform(tmp_path, rig, monkeypatch):
    named = {"": f"bitcoind:{rig.node.url}", "_USER": fake_bitcoind.USER, "_PASSWORD": fake_bitcoind.PASSWORD}
    for name, value in named.items():
        monkeypatch.setenv(f"CUSTODY_CHAIN_REGTEST{name}", value)
    opened = open_platform(Settings(state=tmp_path / "state"))
    yield opened
    opened.close()


def test_a_node_takes_the_place_of_the_embedded_chain(platform, rig, tmp_path):
    background = platform.background
    assert not background.has_embedded_chain
    background.open_chains()
    assert background.backends["regtest"].tip() == rig.chain.tip()
    assert [watcher.chain for watcher in background.watchers()] == ["regtest"]
    assert background.tools.market.refresh("regtest").tip == rig.chain.tip()
    assert not (tmp_path / "state" / "chain").exists()
    background.close_chains()


def test_a_node_that_is_down_stops_no_server(platform, rig):
    rig.node.faults.hangs_up = True
    platform.background.open_chains()
    with pytest.raises(ChainUnavailable):
        platform.background.tools.market.refresh("regtest")
    rig.node.faults.hangs_up = False
    assert platform.background.tools.market.refresh("regtest").tip == rig.chain.tip()
    platform.background.close_chains()


def test_a_mistyped_setting_is_reported_before_anything_is_opened(tmp_path):
    mistyped = {"CUSTODY_CHAIN_MAINET": "bitcoind:http://127.0.0.1:8332"}
    result = custody("serve", "--state", tmp_path / "new", "--listen", "127.0.0.1:0", **mistyped)
    assert result.exit_code == Exit.STATE
    assert "CUSTODY_CHAIN_MAINET is not a setting" in result.stderr
    assert "The page 'The chain'" in result.stderr
    assert not (tmp_path / "new").exists()


BOOTSTRAP = ("admin", "bootstrap", "--organisation", "Acme", "--workspace", "Main", "--chain", "regtest",
             "--email", "alice@example.org", "--state")  # fmt: skip


def custody(*arguments: str | Path, answer: str = "", **environment: str) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], input=answer, env=environment)


def people(url: str) -> int:
    store = Store.open(url)
    with store.read() as db:
        count = db.scalar(select(func.count()).select_from(UserRow))
    store.close()
    return count


def test_the_commands_work_on_it(tmp_path: Path, database: str) -> None:
    done = custody(*BOOTSTRAP, tmp_path / "state", CUSTODY_DATABASE_URL=database, answer=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    assert (
        custody("audit", "verify", "--state", tmp_path / "state", CUSTODY_DATABASE_URL=database).exit_code
        == 0
    )
    assert people(database) == 1
    assert not (tmp_path / "state" / "custody.db").exists()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/custody", "cannot be opened"),
        ("postgresql://u:hunter2@db.example.org/custody", "how to authenticate it"),
        ("mysql://u:hunter2@localhost/custody", "not the URL of a database"),
    ],
)
def test_one_that_cannot_be_used_is_said_without_its_password(
    tmp_path: Path, url: str, sentence: str
) -> None:
    """P49."""
    refused = custody(*BOOTSTRAP, tmp_path / "state", CUSTODY_DATABASE_URL=url, answer=f"{PASSWORD}\n")
    assert refused.exit_code == Exit.STATE
    assert sentence in refused.output
    assert "hunter2" not in refused.output
    assert "Traceback" not in refused.output


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
def test_a_folder_that_is_not_there_begins_no_empty_platform(tmp_path: Path, command: str) -> None:
    state = tmp_path / "state"
    answer = custody(command, "--state", state, **{CREDENTIALS_DIR: str(tmp_path / "missing")})
    assert answer.exit_code == Exit.STATE
    assert "missing cannot be used: Not a directory." in answer.stderr
    assert not state.exists()
