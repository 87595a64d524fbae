"""Devices: what they do by hand, registering the keys of one, and unlocking one."""

from __future__ import annotations

from signerd import shapes
from signerd.api.described import call
from signerd.callers import Right
from signerd.endpoint import DEVICE_SECONDS, PERSON_SECONDS


class DevicesApi:
    @call("GET /devices", Right.READ)
    def devices(self) -> tuple[shapes.DeviceView, ...]:
        """The devices that are there, and their state"""

    @call("POST /devices/{device_id}/identify", Right.DISPLAY, seconds=PERSON_SECONDS)
    def identify_device(self, device_id: shapes.Id) -> None:
        """Have a device show itself

        Something harmless. Answers when the person has seen it.
        """

    @call("POST /devices/{device_id}/cancel", Right.PERSON, seconds=DEVICE_SECONDS)
    def cancel_device(self, device_id: shapes.Id) -> None:
        """Give up what runs on a device"""

    @call("POST /devices/{device_id}/another-address", Right.PERSON, seconds=DEVICE_SECONDS)
    def another_address(self, device_id: shapes.Id) -> None:
        """Say that a device shows another address than this machine"""

    @call("POST /devices/{device_id}/accounts", Right.XPUB, body="AccountRequest", seconds=PERSON_SECONDS)
    def device_accounts(self, device_id: shapes.Id, account: shapes.AccountNumber = 0) -> shapes.AccountKeys:
        """Read the keys of a standard account from a device

        Some devices ask the person first.
        """

    @call("POST /registration/preview", Right.PERSON, seconds=DEVICE_SECONDS)
    def preview_registration(self, device: shapes.Id | None = None) -> shapes.RegistrationPreview:
        """Read the keys that would be registered"""

    @call("POST /registration", Right.PERSON, body="RegisterRequest", seconds=PERSON_SECONDS)
    def register(
        self, device_id: shapes.Id, digest: shapes.Digest, *, replace: bool = False
    ) -> shapes.Registered:
        """Register the keys that were shown

        Answers when the person has confirmed on the device; ``follow`` "registration" meanwhile.

        ``replace``: put these keys in the place of those that the account has registered before.
        """

    @call("POST /registration/airgapped/preview", Right.PERSON, body="AirgapKeysRequest")
    def preview_airgapped(self, exports: shapes.Exports) -> shapes.RegistrationPreview:
        """What the files of a device without a cable would register

        ``exports``: the files that one device without a cable wrote, as text: Coldcard's JSON, or lines ``[fingerprint/path]xpub``.
        """

    @call(
        "POST /registration/airgapped/challenge",
        Right.PERSON,
        body="AirgapChallengeRequest",
        seconds=DEVICE_SECONDS,
    )
    def challenge_airgapped(self, exports: shapes.Exports, digest: shapes.Digest) -> shapes.AirgapChallenge:
        """What a device without a cable signs to prove its keys

        Within ten minutes.

        ``digest``: of the preview that the person said yes to.
        """

    @call("POST /registration/airgapped", Right.PERSON, body="AirgapRegisterRequest", seconds=DEVICE_SECONDS)
    def register_airgapped(
        self,
        exports: shapes.Exports,
        digest: shapes.Digest,
        challenge: shapes.Challenge,
        signature: shapes.SignatureText,
        *,
        replace: bool = False,
    ) -> shapes.Registered:
        """Register the keys of a device without a cable, by its signed message

        ``signature``: base64, or the text of the file that the device wrote.
        """

    @call("POST /devices/{device_id}/unlock", Right.PERSON)
    def start_unlocking(self, device_id: shapes.Id) -> shapes.UnlockStep:
        """Begin to unlock a device

        Or join. Answer the step's question, and ask for the next step while the device works.
        """

    @call("GET /devices/{device_id}/unlock", Right.PERSON)
    def unlocking_step(self, device_id: shapes.Id) -> shapes.UnlockStep:
        """The next step of an unlocking, or how it ended"""

    @call("GET /questions", Right.PERSON)
    def questions(self) -> tuple[shapes.QuestionView, ...]:
        """What devices ask of the person now"""

    @call("POST /questions/{question_id}", Right.PERSON, body="QuestionAnswer")
    def answer_question(self, question_id: shapes.Id, answer: shapes.AnswerText | None) -> shapes.UnlockStep:
        """Answer a device's question, or leave it to the device

        ``answer``: null leaves it to the device where that can be, and else gives up.
        """
