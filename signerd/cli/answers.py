"""Questions to the person: at a terminal asked, else read from standard input, one line for each.

The daemon asks for a passphrase when it starts, and keeps no library for asking: a secret is read without one.

Passwords, codes and passphrases come this way only: a command line is in the process list and in the shell's history.
"""

import getpass
import sys
from typing import Protocol

from signerd.errors import AnswerMissing


class Answers(Protocol):
    """Each raises AnswerMissing where nobody answers."""

    def line(self, question: str) -> str: ...

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:
        """``fresh``: a slip of the hand would lock its owner out, or open what they do not mean. ``empty``: nothing is an answer, too."""
        ...

    def yes(self, question: str) -> bool: ...


class Person:
    """Somebody at a terminal. Questions go to standard error: standard output is the command's answer."""

    def line(self, question: str) -> str:
        import typer

        return str(typer.prompt(question, err=True))

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:
        while True:
            given = getpass.getpass(f"{question}: ", sys.stderr)
            if not given and not empty:
                continue
            if not fresh or getpass.getpass("Repeat for confirmation: ", sys.stderr) == given:
                return given
            print("These were two different ones.", file=sys.stderr)

    def yes(self, question: str) -> bool:
        import typer

        return typer.confirm(question, default=False, err=True)


class Script:
    """Standard input that is no terminal."""

    def line(self, question: str) -> str:
        given = sys.stdin.readline()
        if not given:
            raise AnswerMissing(f"nobody answered the question: {question}")
        return given.rstrip("\r\n")

    def secret(self, question: str, *, fresh: bool = False, empty: bool = False) -> str:  # noqa: ARG002 - a pipe makes no slips
        return self.line(question)

    def yes(self, question: str) -> bool:
        return self.line(question).strip().lower() in {"y", "yes"}


def answers() -> Answers:
    return Person() if sys.stdin.isatty() else Script()
