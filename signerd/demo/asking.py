"""The demo's questions to the person: to approve, to try again, and at the end what they want to see.

None has a deadline, and a device's question goes first.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from sys import executable
from typing import TypeVar

from signerd.core.states import ASKED
from signerd.demo.people import DemoSigner, NotSigned
from signerd.demo.stage import BLOCK_SECONDS, Demo, command_of
from signerd.errors import SignerdError

Made = TypeVar("Made")
YES_OR_NO = {"y": "yes", "yes": "yes", "n": "no", "no": "no"}


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
            demo.terminal.say(f"\nNot done: {str(error).rstrip('.')}.{hint}")
        again = {"": "yes", **YES_OR_NO}
        if await demo.terminal.choose("Try it again? [Y/n]", again, gives_way=True) == "no":
            raise StepDeclined


async def ask_approval(
    demo: Demo, signer: DemoSigner, psbt_id: str, approve: Callable[[], Awaitable[None]]
) -> None:
    """Ask whether this signer approves. They may answer here, or approve on the page of their signerd.

    Raises:
        NotSigned: they said no, or the device did. SignerdError: it may not be approved.
    """
    if (await signer.daemon.proposal(psbt_id)).state in ASKED:
        question = f"You are {signer.name}. Approve? [y/n]"
        here = asyncio.create_task(demo.terminal.choose(question, YES_OR_NO, gives_way=True))
        elsewhere = asyncio.create_task(signer.decides(psbt_id))
        try:
            await asyncio.wait({here, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            here.cancel()
            elsewhere.cancel()
            await asyncio.gather(here, elsewhere, return_exceptions=True)
        if not elsewhere.done() or elsewhere.cancelled():
            if here.result() == "no":
                raise NotSigned("you said no, so the device was not asked and nothing is signed")
            await approve()
            return
    await signer.signs(psbt_id)


async def explore(demo: Demo, rest: Callable[[], Awaitable[None]] | None) -> None:
    """Keep every program running until the person ends the demo. ``rest``: the steps that are still
    optional.
    """
    while True:
        demo.finished = True
        demo.terminal.say(_what_there_is(demo))
        answers = {"q": "stop", "quit": "stop"} | ({} if rest is None else {"t": "go on"})
        more = "" if rest is None else "t: go on with the life of a token, five more proposals.  "
        question = f"{more}q or Ctrl-C: stop everything."
        if await demo.terminal.choose(question, answers, gives_way=True) == "stop":
            return
        assert rest is not None
        demo.finished = False
        try:
            await rest()
        except StepDeclined:
            demo.terminal.say("\nThe remaining steps are left out.")
        rest = None


def _what_there_is(demo: Demo) -> str:
    desks = "\n".join(
        f"      {command_of(signer)} open          (the page of {signer.name})" for signer in demo.signers
    )
    first = command_of(demo.signers[0]) if demo.signers else "signerd"
    return f"""
What there is to see, all of it running until you stop it
  the devices' screens and buttons: {demo.devices_url}
  each signer's own page: proposals, what was checked, the vault, the device
{desks}
  the same in the terminal, and a check of the journal's hash chain
      {first} proposals --all
      {first} audit verify
  the platform's console, as the treasurer: {demo.url}/console/
      {demo.owner.email}, password {demo.owner.password}; the code that is mailed: {demo.mailbox.folder}
    a payment that is proposed there and approved by two signers is in a block within {BLOCK_SECONDS} seconds
  the platform's API: {demo.url}/openapi.json; money for the vault, confirmed as soon
      {Path(executable).parent}/custody fund ADDRESS 0.1 --state {demo.platform_state}
  the log of each program is in {demo.root}/logs
  docs/understand/architecture.md explains the design; docs/sign/first-steps.md, how to start with hardware
"""
