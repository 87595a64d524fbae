"""The demo's questions to the person: to approve, to try again, and at the end what they want to see.

None has a deadline, and a device's question goes first.
"""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from sys import executable
from typing import TypeVar

from signerd.core.states import ASKED
from signerd.demo.people import DemoSigner, NotSigned
from signerd.demo.programs import tasks_of
from signerd.demo.stage import Demo, command_of
from signerd.errors import SignerdError

Made = TypeVar("Made")
APPROVE, NO = "Approve", "No"
AGAIN, END_HERE = "Try again", "End here"
TOKEN_TOO, STOP = "Go on with a token", "Stop everything"


class StepDeclined(Exception):
    """The person declined a step and does not want to repeat it. The programs keep running."""


async def with_retries(demo: Demo, attempt: Callable[[], Awaitable[Made]]) -> Made:
    """The result of ``attempt``. After a refusal by a device, a check or the person, the person is told why
    and may try again.

    Raises:
        StepDeclined: they decline. NotSigned, SignerdError: the demo runs unattended.
    """
    while True:
        try:
            return await attempt()
        except (NotSigned, SignerdError) as error:
            if demo.auto:
                raise
            hint = f" {error.hint}" if isinstance(error, SignerdError) else ""
            why = f"Not done: {str(error).rstrip('.')}.{hint}"
        answers = {"y": AGAIN, "": AGAIN, "n": END_HERE}
        if await demo.terminal.choose(f"{why} Try it again?", answers, gives_way=True) == END_HERE:
            raise StepDeclined


async def ask_approval(
    demo: Demo, signer: DemoSigner, psbt_id: str, shown: str, approve: Callable[[], Awaitable[None]]
) -> None:
    """Ask whether this signer approves. They may answer here, or approve on the page of their signerd.
    ``shown``: what their signerd shows of it.

    Raises:
        NotSigned: they said no, or the device did. SignerdError: it may not be approved.
    """
    view = await signer.daemon.proposal(psbt_id)
    if view.state in ASKED:
        question = f"You are {signer.name}. {view.title}: do you approve?"
        answers = {"y": APPROVE, "n": NO}
        asked = demo.terminal.choose(question, answers, shown=shown, gives_way=True)
        async with tasks_of(asked, signer.decides(psbt_id)) as (here, elsewhere):
            await asyncio.wait({here, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
        if not elsewhere.done() or elsewhere.cancelled():
            if here.result() == NO:
                raise NotSigned("you said no, so the device was not asked and nothing is signed")
            await approve()
            return
    await signer.signs(psbt_id)


async def explore(demo: Demo, rest: Callable[[], Awaitable[None]] | None) -> None:
    """Keep every program running until the person ends the demo. ``rest``: the steps that are still
    optional.
    """
    while True:
        demo.end()
        demo.terminal.say(_what_there_is(demo))
        answers = {"q": STOP} if rest is None else {"t": TOKEN_TOO, "q": STOP}
        if await demo.terminal.choose("What now?", answers, gives_way=True) == STOP:
            return
        assert rest is not None
        demo.finished = False
        try:
            await rest()
        except StepDeclined:
            demo.end_here()
        rest = None


def _what_there_is(demo: Demo) -> str:
    pages = "\n".join(f"    {command_of(signer)} open" for signer in demo.signers)
    return f"""
{textwrap.fill(". ".join(demo.desk.story.end), 100)}
  The page of each signer. In the terminal: `proposals --all` or `audit verify`, in the place of `open`.
{pages}
  The console of the platform, as the treasurer: {demo.url}/console/
    {demo.owner.email}, password {demo.owner.password}; the code that is mailed: {demo.mailbox.folder}
  Money for the vault: {Path(executable).parent}/custody chain fund ADDRESS 1BTC --state {demo.platform_state}
  The log of each program: {demo.root}/logs
"""
