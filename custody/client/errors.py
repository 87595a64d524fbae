"""The errors of the client.

ClientError
├── InsecureUrl        the URL would send secrets in the clear
├── Unreachable        no answer: try again later (nothing is known of the effect)
├── BadAnswer          an answer that no platform gives
├── SignedOut          no session, or the platform ended it: sign in again
└── ApiError           the platform refused the call, with a stable code
"""

from typing import ClassVar

from custody.schemas.errors import Problem


class ClientError(Exception):
    """The root: ``code`` is stable, ``hint`` says what to do."""

    code: str = "client-error"
    hint: ClassVar[str] = ""


class InsecureUrl(ClientError):
    code = "insecure-url"
    hint = "Use https://. Plain http is only for a platform on this machine."


class Unreachable(ClientError):
    code = "platform-unreachable"
    hint = "Check the network and the platform's address; the call can be repeated."


class BadAnswer(ClientError):
    code = "bad-answer"
    hint = "Something other than the platform answered, or a version that this client does not know."


class SignedOut(ClientError):
    code = "signed-out"
    hint = "Sign in again."


class ApiError(ClientError):
    """A problem document (RFC 9457). ``code`` is the problem's own; programs branch on it."""

    def __init__(self, problem: Problem, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(f"{problem.detail} ({problem.code}, trace {problem.trace_id or 'unknown'})")
        self.problem = problem
        self.code = problem.code
        self.retry_after_seconds = retry_after_seconds
