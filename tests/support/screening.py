"""A vault that the operator's own program screens, and that program."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from custody.server.rules.webhooks import WebhookUrl
from custody.server.webhooks.sending import DeliveryTrouble, ReceiverAnswer, Undelivered
from tests.support.custody import Desk, ok
from tests.support.platform import As

URL = "https://screening.example.org/ask"


# An int is a status.
Says = str | bytes | int | DeliveryTrouble


@dataclass
class Program:
    """In the place of the platform's `Sender`. ``says``: its answer, as a decision, with its reason after a
    colon, or as the bytes of a body; or the trouble instead; ``elsewhere``: that of other hosts than `URL`'s.
    ``asked``: what it was sent. ``hangs``: called while another host than `URL`'s is being asked.
    """

    says: Says = DeliveryTrouble.TIMED_OUT
    elsewhere: Says = DeliveryTrouble.TIMED_OUT
    asked: list[dict] = field(default_factory=list)
    hangs: Callable[[], object] = lambda: None

    def ask(
        self, _method: str, url: WebhookUrl, body: bytes, _headers: object, most: int = 0
    ) -> ReceiverAnswer:
        event = json.loads(body)
        if event["kind"] != "proposal.screening":
            return ReceiverAnswer(204, b"")
        self.asked.append(event)
        is_ours = url.host in URL
        raw = self.says if is_ours else self.elsewhere
        if not is_ours:
            self.hangs()
        if isinstance(raw, DeliveryTrouble):
            raise Undelivered(raw)
        if isinstance(raw, int):
            return ReceiverAnswer(raw, b"")
        if isinstance(raw, str):
            decision, _, reason = raw.partition(":")
            raw = json.dumps({"decision": decision} | ({"reason": reason} if reason else {})).encode()
        if len(raw) > most:
            raise Undelivered(DeliveryTrouble.BAD_ANSWER)
        return ReceiverAnswer(200, raw)


def hook(desk: Desk, url: str = URL, person: As | None = None, /, **body: object) -> str:
    """A new webhook's id."""
    return ok(desk.tell("create-webhook", person, url=url, **{"kinds": ["deposit.seen"]} | body))[
        "webhook_id"
    ]


def screen(desk: Desk, **controls: object) -> Program:
    """From now on a program screens the vault, for a minute each, as ``controls`` say otherwise."""
    program = Program()
    desk.world.platform.background.webhook_jobs.sender = program
    wanted = {"screening_webhook_id": hook(desk), "screening_seconds": 60} | controls
    bind(desk, **wanted)
    return program


def bind(desk: Desk, **controls: object) -> dict:
    open_to_all = {"only_address_book": False, "maker_may_approve": True}
    return ok(desk.of_vault("update-vault-controls", **open_to_all | controls))


def answer(desk: Desk, program: Program, says: Says) -> int:
    """The worker asks it what is due, and it says this; how many questions that were."""
    before, program.says = len(program.asked), says
    desk.world.deliver_webhooks()
    return len(program.asked) - before


def sweep_overdue(desk: Desk) -> None:
    desk.world.platform.background.expiry()()
