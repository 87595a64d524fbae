"""Where the rules file is looked for, and that a daemon without the rules that somebody wrote does not start."""

from pathlib import Path

import platformdirs
import pytest

from multisig import Network
from signerd.account.config import MAX_CONFIG_BYTES
from signerd.account.rules import find_rules, load_rules, rules_of
from signerd.app import Outside, open_daemon
from signerd.core.rules.values import NO_RULES
from signerd.errors import RulesInvalid
from tests.support.daemons import MemoryStore, make_config

pytestmark = pytest.mark.anyio
RULES = '[refuse]\nabove_per_day = "1 BTC"\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setattr(platformdirs, "user_config_path", lambda _name: folder)
    return folder


def write(path: Path, content: bytes | str = RULES) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_without_a_file_there_are_no_rules(tmp_path: Path) -> None:
    assert find_rules(make_config(), tmp_path) is None
    assert rules_of(make_config(), tmp_path).resolved({}) == NO_RULES


def test_the_state_folder_comes_before_the_desktops_own(tmp_path: Path, elsewhere: Path) -> None:
    there = write(elsewhere / "rules.toml")
    assert find_rules(make_config(), tmp_path) == there
    here = write(tmp_path / "rules.toml")
    assert find_rules(make_config(), tmp_path) == here
    named = write(tmp_path / "mine.toml", "")
    assert find_rules(make_config(rules=str(named)), tmp_path) == named
    assert len(rules_of(make_config(), tmp_path).rules) == 1
    assert rules_of(make_config(rules=str(named)), tmp_path).resolved({}) == NO_RULES


def test_a_named_file_that_is_gone_is_not_no_rules(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid, match="cannot be read"):
        rules_of(make_config(rules=str(tmp_path / "gone.toml")), tmp_path)


def test_a_link_that_leads_nowhere_is_not_no_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(RulesInvalid, match="cannot be read"):
        rules_of(make_config(), tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"\xff\xfe", "not text"), (b"#" * (MAX_CONFIG_BYTES + 1), "too long"), ("[refuse]\nx = 1\n", "line 2")],
)
def test_what_is_no_rules_file_is_refused(tmp_path: Path, content: bytes | str, what: str) -> None:
    path = write(tmp_path / "rules.toml", content)
    with pytest.raises(RulesInvalid, match=what) as refused:
        load_rules(path, Network.REGTEST)
    assert str(path) in str(refused.value)


async def test_a_daemon_with_a_wrong_rules_file_does_not_start(tmp_path: Path) -> None:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    write(state / "rules.toml", '[refuse]\nabove_per_day = "lots"\n')
    with pytest.raises(RulesInvalid, match="line 2"):
        async with open_daemon(make_config(), state, MemoryStore(), Outside()):
            pass
    assert not (state / "journal.sqlite3").exists()
