"""Unlocking a device, and the questions that it has for the person meanwhile."""

from typing import Protocol

from signerd.shapes import QuestionView, UnlockStep


class UnlockPort(Protocol):
    """Every step is answered with the next: a question, that the device is at work, or that it is unlocked.

    An answer comes within ``unlocking.STEP_SECONDS``. Where nothing asked by then, the step says that the device is at
    work, and ``step`` waits for the next. How an unlocking failed is raised as DeviceFailed.
    """

    async def start(self, device_id: str) -> UnlockStep:
        """Begin, or join what has begun. Raises NoSuchDevice, DeviceFailed."""
        ...

    async def step(self, device_id: str) -> UnlockStep:
        """The next step of what runs, or how the last one ended. Raises NothingUnlocked, DeviceFailed."""
        ...

    async def standing(self, device_id: str) -> UnlockStep | None:
        """Where it is now, without waiting; None where nobody has begun. Raises DeviceFailed where the last one failed."""
        ...

    async def questions(self) -> tuple[QuestionView, ...]: ...

    async def answer(self, question_id: str, answer: str | None) -> UnlockStep:
        """Answer, once; None leaves it to the device, or says no. Raises NoSuchQuestion, DeviceFailed."""
        ...
