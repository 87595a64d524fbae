"""Shared by the commands of ``custody``: common options, and how a command ends with an error."""

from typing import IO, Any, NoReturn

import click

from custody.terminal import Answers, Exit, answers, tell

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON value.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask: for scripts.")


class Stop(click.ClickException):
    """Ends a command: what is wrong, what to do, and the exit status. ``code`` is for programs."""

    def __init__(
        self, sentence: str, hint: str = "", status: Exit = Exit.FAILED, *, code: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.hint = hint
        self.status = status
        self.code = code or status.name.lower().replace("_", "-")
        self.exit_code = int(status)  # type: ignore[misc] # of the class for click: here of each
        context = click.get_current_context(silent=True)
        self._as_json = context is not None and context.params.get("as_json", False)

    def show(self, file: IO[Any] | None = None) -> None:  # noqa: ARG002 - click's own signature
        tell("custody", self.code, self.message, self.hint, self.status, as_json=self._as_json)


def fail(sentence: str, hint: str, status: Exit = Exit.FAILED) -> NoReturn:
    """End the command."""
    raise Stop(sentence, hint, status)


def own_answers() -> Answers:
    """Where answers are read from. Passwords are never arguments, which every program on the machine can read
    (P49).
    """
    hint = (
        "Type it, or give one line for each question on standard input; --yes where it is to be answered yes."
    )
    return answers(lambda sentence: Stop(sentence, hint, Exit.USAGE, code="answer-missing"))


def confirm(own: Answers, question: str, *, yes: bool) -> None:
    """Returns after a yes. Raises Stop."""
    if not yes and not own.yes(question):
        raise Stop("Nothing was done", "", Exit.DECLINED)
