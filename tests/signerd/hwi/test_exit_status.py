"""The exit status is HWI's: both programs are given the same lines, and end alike with the same code."""

import json
import sys

import pytest
from hwilib import _cli

from tests.support.hwi_answers import signerd_hwi


def hwi(line: str, monkeypatch, capsys) -> tuple[int, int | None]:
    """The status, and the code of the answer; None where it has none."""
    monkeypatch.setattr(sys, "argv", ["hwi", *line.split()])
    try:
        _cli.main()
    except SystemExit as end:
        status = int(end.code or 0)
    else:
        status = 0
    return status, code_in(capsys.readouterr().out)


def ours(line: str, state) -> tuple[int, int | None]:
    answered = signerd_hwi(*line.split(), state=state)
    return answered.status, code_in(answered.out)


def code_in(out: str) -> int | None:
    answer = out.strip().splitlines()[-1]
    return json.loads(answer)["code"] if answer.startswith("{") else None


# The status, and HWI's code: of what needs no device.
LINES = [
    ("", 2, -2),
    ("nonsense", 2, -2),
    ("--nope enumerate", 2, -2),
    ("--chain moon enumerate", 2, -2),
    ("getxpub", 2, -2),
    ("getxpub m/84h/1h/0h --nope", 2, -2),
    ("getmasterxpub --account x", 2, -2),
    ("getdescriptors --account x", 2, -2),
    ("signtx", 2, -2),
    ("displayaddress", 2, -2),
    ("displayaddress --path a --desc b", 2, -2),
    ("sendpin", 2, -2),
    ("--help", 0, -17),
    ("--version", 0, None),
]


@pytest.mark.parametrize(("line", "status", "code"), LINES)
def test_both_end_alike(line, status, code, monkeypatch, capsys, tmp_path):
    assert hwi(line, monkeypatch, capsys) == (status, code)
    assert ours(line, tmp_path) == (status, code)


@pytest.mark.parametrize("line", ["getxpub m/84h/1h/0h", "signtx cHNidP8=", "promptpin", "setup"])
def test_a_no_is_an_answer_with_the_status_0_from_both(line, monkeypatch, capsys, tmp_path):
    for status, code in (hwi(line, monkeypatch, capsys), ours(line, tmp_path)):
        assert (status, code is not None) == (0, True)
