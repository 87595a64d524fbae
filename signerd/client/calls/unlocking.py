"""Unlocking a device, and what it asks the person meanwhile."""

from signerd import shapes
from signerd.client.flow import Asked
from signerd.client.method import row


class UnlockingCalls:
    @row("POST", "/devices/{device_id}/unlock", shapes.UnlockStep)
    @staticmethod
    def start_unlocking(device_id: str) -> Asked:
        """Begin, or join what has begun. Answer what the step asks, and ask for the next one while the device works."""
        return Asked({"device_id": device_id})

    @row("GET", "/devices/{device_id}/unlock", shapes.UnlockStep)
    @staticmethod
    def unlocking_step(device_id: str) -> Asked:
        return Asked({"device_id": device_id})

    @row("GET", "/questions", tuple[shapes.QuestionView, ...])
    @staticmethod
    def questions() -> Asked:
        return Asked()

    @row("POST", "/questions/{question_id}", shapes.UnlockStep)
    @staticmethod
    def answer_question(question_id: str, answer: str | None) -> Asked:
        """None leaves it to the device where that can be, and else gives up."""
        return Asked({"question_id": question_id}, body={"answer": answer})
