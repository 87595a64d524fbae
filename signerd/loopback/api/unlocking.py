"""Unlocking a device, and what it asks the person meanwhile."""

from signerd import shapes
from signerd.callers import Right
from signerd.loopback.api.table import PathId, Route, Service


async def start_unlocking(service: Service, device_id: PathId) -> shapes.UnlockStep:
    return await service.unlocking.start(device_id)


async def unlocking_step(service: Service, device_id: PathId) -> shapes.UnlockStep:
    return await service.unlocking.step(device_id)


async def questions(service: Service) -> tuple[shapes.QuestionView, ...]:
    return await service.unlocking.questions()


async def answer_question(
    service: Service, question_id: PathId, body: shapes.QuestionAnswer
) -> shapes.UnlockStep:
    return await service.unlocking.answer(question_id, body.answer)


ROUTES = (
    Route("POST", "/devices/{device_id}/unlock", start_unlocking, Right.PERSON, "Begin to unlock a device"),
    Route(
        "GET",
        "/devices/{device_id}/unlock",
        unlocking_step,
        Right.PERSON,
        "The next step of an unlocking, or how it ended",
    ),
    Route("GET", "/questions", questions, Right.PERSON, "What devices ask of the person now"),
    Route(
        "POST",
        "/questions/{question_id}",
        answer_question,
        Right.PERSON,
        "Answer a device's question, or leave it to the device",
    ),
)
