"""Configuration and rules file: where they are looked for, read whole or refused, each mistake
with its line.
"""

from pathlib import Path

import platformdirs
import pytest

from multisig import Network, decode_address
from signerd.account.config import (
    MAX_CONFIG_BYTES,
    find_config,
    find_rules,
    load_config,
    load_rules,
    rules_of,
)
from signerd.app import DaemonDependencies, open_daemon
from signerd.core.rules.values import NO_RULES
from signerd.errors import ConfigInvalid, ConfigMissing, RulesInvalid
from tests.support.daemons import MemoryStore, make_config

SMALL = """\
network = "regtest"

[platform]
url = "http://127.0.0.1:8080"
"""


ACME = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
MAINNET = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_everything_can_be_said(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    text = SMALL + (
        f'workspaces = [3, 4]\nlong_poll_seconds = 0\nca_file = "{authority}"\n'
        '[devices]\nusb = false\nsandbox = false\nendpoints = ["trezor:udp:127.0.0.1:21324"]\n'
        '[limits]\nmax_fee_btc = "0.001"\nmax_fee_rate = 12.5\nmax_fee_percent = 8\nwarn_fee_percent = 2\n'
        '[secrets]\nstore = "file"\n'
        '[checks]\nlowered = ["locktime", "fee-share"]\n'
    )
    config = load_config(write(tmp_path, f'rules = "{tmp_path}/mine.toml"\n{text}'))
    assert config.checks.lowered == ("locktime", "fee-share")
    assert config.rules == tmp_path / "mine.toml"
    assert not config.devices.sandbox
    assert config.platform.workspaces == (3, 4)
    assert config.devices.endpoints == ("trezor:udp:127.0.0.1:21324",)
    assert config.signing_limits().max_fee_rate.sat_per_kvb == 12_500
    assert config.signing_limits().max_fee == 100_000


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (SMALL + "[limits\n", 5, "table"),
        (SMALL.replace('"regtest"', '"moonnet"'), 1, "network"),
        (SMALL.replace("http://127.0.0.1:8080", "http://bank.example"), 4, "platform.url"),
        (SMALL + 'ca_file = "/nowhere/ca.pem"\n', 5, "platform.ca_file"),
        (SMALL + "walkspaces = [1]\n", 5, "platform.walkspaces"),
        (SMALL + "[limits]\nmax_fee_btc = 0.1\n", 6, "limits.max_fee_btc"),
        (SMALL + '[limits]\n\nmax_fee_btc = "1"\n', 7, "ever signed"),
        (SMALL + "[limits]\nmax_fee_percent = 51\n", 6, "limits.max_fee_percent"),
        (SMALL + '[devices]\nendpoints = [\n "trezor"]\n', 6, "devices.endpoints"),
        (SMALL + '[secrets]\nstore = "plain"\n', 6, "secrets.store"),
        (
            SMALL + '[checks]\nlowered = ["fee-share", "recipients"]\n',
            6,
            '"recipients" may not be lowered; those that',
        ),
        (
            SMALL + '[checks]\nlowered = ["feeshare"]\n',
            6,
            "no check .feeshare.; .* conflict, fee-recorded, fee-share",
        ),
        (SMALL + "[checks]\nraised = []\n", 6, "checks.raised"),
        (SMALL + "[limits]\nmax_fee_percent = 1.0\n", 6, "must be a whole number, without quotes or a point"),
        ('rules = "rules.toml"\n' + SMALL, 1, "whole path"),
        ('[platform]\nurl = "https://x.example"\n', None, "network"),
        (SMALL + "[unheard]\nof = 1\n", 5, "unheard"),
        (SMALL + f'[addresses]\nAcme = "{ACME[:-1]}"\n', 5, '"Acme": '),
        (SMALL + f'[addresses]\nAcme = "{MAINNET}"\n', 5, '"Acme": '),
        (
            SMALL + f'[addresses]\nAcme = "{ACME}"\nBank = "{ACME}"\n',
            5,
            '"Bank" and "Acme" have the same address',
        ),
        (SMALL + f'[addresses]\nAcme = "{ACME}"\nACME = "{ACME}"\n', 5, "are one, whatever their capitals"),
        (SMALL + f'[addresses]\n"A\\u202e" = "{ACME}"\n', 5, r"not every reader sees, U\+202E"),
        (SMALL + f'[addresses]\n"{"A" * 41}" = "{ACME}"\n', 5, "must have 1 to 40 characters"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int | None, what: str) -> None:
    with pytest.raises(ConfigInvalid, match=what) as refused:
        load_config(write(tmp_path, text))
    assert line is None or f"line {line}" in str(refused.value)


def test_the_address_book_names_output_scripts(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SMALL + f'[addresses]\n" The bank " = "{ACME.upper()}"\n'))
    assert config.labels == {decode_address(ACME, Network.REGTEST): "The bank"}
    assert load_config(write(tmp_path, SMALL)).labels == {}


@pytest.mark.parametrize("content", [b"\xff\xfe", b"# x\n" * 100_000])
def test_what_is_no_configuration_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigInvalid):
        load_config(path)


def test_a_missing_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigMissing):
        load_config(tmp_path / "none.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(ConfigMissing, match="there is no configuration at"):
        find_config(tmp_path)


pytestmark = pytest.mark.anyio
RULES = '[refuse]\nabove_per_day = "1 BTC"\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setattr(platformdirs, "user_config_path", lambda _name: folder)
    return folder


def write_rules(path: Path, content: bytes | str = RULES) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_state_folder_comes_before_the_desktops_own(tmp_path: Path, elsewhere: Path) -> None:
    assert find_rules(make_config(), tmp_path) is None
    there = write_rules(elsewhere / "rules.toml")
    assert find_rules(make_config(), tmp_path) == there
    here = write_rules(tmp_path / "rules.toml")
    assert find_rules(make_config(), tmp_path) == here
    named = write_rules(tmp_path / "mine.toml", "")
    assert find_rules(make_config(rules=str(named)), tmp_path) == named
    assert len(rules_of(make_config(), tmp_path).rules) == 1
    assert rules_of(make_config(rules=str(named)), tmp_path).resolved({}) == NO_RULES


def test_a_named_file_that_is_gone_is_not_no_rules(tmp_path: Path) -> None:
    with pytest.raises(RulesInvalid, match="cannot be read"):
        rules_of(make_config(rules=str(tmp_path / "gone.toml")), tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"\xff\xfe", "not text"), (b"#" * (MAX_CONFIG_BYTES + 1), "large"), ("[refuse]\nx = 1\n", "line 2")],
)
def test_what_is_no_rules_file_is_refused(tmp_path: Path, content: bytes | str, what: str) -> None:
    path = write_rules(tmp_path / "rules.toml", content)
    with pytest.raises(RulesInvalid, match=what) as refused:
        load_rules(path, Network.REGTEST)
    assert str(path) in str(refused.value)


def test_a_file_that_others_can_write_is_refused_before_it_counts(tmp_path: Path) -> None:
    """Every mode in which the owner may read it; the group is the user's own."""
    config, rules = write_rules(tmp_path / "config.toml", 'network = "regtest"'), tmp_path / "rules.toml"
    write_rules(rules, "")
    for mode in (0o400 | rest for rest in range(0o400)):
        for path in (config, rules):
            path.chmod(mode)
        what = rf"other users \(mode {mode:o}\)" if mode & 0o002 else "platform"
        with pytest.raises(ConfigInvalid, match=what):
            load_config(config)
        if mode & 0o002:
            with pytest.raises(RulesInvalid, match=what):
                load_rules(rules, Network.REGTEST)
        else:
            load_rules(rules, Network.REGTEST)


def test_a_file_that_another_group_can_write_is_refused(tmp_path: Path, monkeypatch) -> None:
    rules = write_rules(tmp_path / "rules.toml", "")
    rules.chmod(0o660)
    monkeypatch.setattr("os.getgid", lambda: rules.stat().st_gid + 1)
    with pytest.raises(RulesInvalid, match="other users"):
        load_rules(rules, Network.REGTEST)


async def test_a_daemon_with_a_wrong_rules_file_does_not_start(tmp_path: Path) -> None:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    write_rules(state / "rules.toml", '[refuse]\nabove_per_day = "lots"\n')
    with pytest.raises(RulesInvalid, match="line 2"):
        async with open_daemon(make_config(), state, MemoryStore(), DaemonDependencies()):
            pass
    assert not (state / "journal.sqlite3").exists()
