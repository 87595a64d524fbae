"""What an operator may say."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.commands import Command, Verb, parse_command
from device_simulators.errors import InvalidCommand, VirtualDeviceError
from device_simulators.faults import Faults, Phase


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("yes 1\n", Command(Verb.YES, 1)),
        ("no", Command(Verb.NO)),
        ("Y", Command(Verb.YES)),
        ("n 12", Command(Verb.NO, 12)),
        ("lock", Command(Verb.LOCK)),
        ("q", Command(Verb.QUIT)),
        ('{"yes": 3}', Command(Verb.YES, 3)),
        ('{"no": true}', Command(Verb.NO)),
        ('{"lock": true}', Command(Verb.LOCK)),
        ('{"unplug":true}', Command(Verb.UNPLUG)),
        ('{"faults": {"stall_at": "sign"}}', Command(Verb.FAULTS, faults=Faults(stall_at=Phase.SIGN))),
        ('{"faults": {}}', Command(Verb.FAULTS, faults=Faults())),
    ],
)
def test_commands(line, command):
    assert parse_command(line) == command


@pytest.mark.parametrize(
    "line",
    ["", "maybe", "yes one", "yes 1 2", "lock 1", "faults", "yes ²", "{", "{}", '{"yes": 1, "no": 2}', '{"lock": 1}',
     '{"yes": "1"}', '{"yes": false}', '{"faults": true}', '{"explode": true}'],
)  # fmt: skip
def test_what_is_no_command(line):
    with pytest.raises(InvalidCommand):
        parse_command(line)


@given(st.text(max_size=40) | st.text(max_size=40).map(lambda text: "{" + text))
def test_any_line_is_a_command_or_refused(line):
    with contextlib.suppress(VirtualDeviceError):
        assert isinstance(parse_command(line), Command)
