"""What every shape of the loopback is made of. Amounts are whole satoshis; the network is always there.

Text that came from the platform or a device is cleaned by ``views`` before it gets into an answer; what a terminal or a page
shows is cleaned again where it is shown.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# The platform's ids, the devices' and the checks' names all fit; nothing in them splits a path or a line.
ID_PATTERN = r"^[A-Za-z0-9_-]{1,100}$"
Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# A verification code as people type it, with or without its dashes.
Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
# What ``multisig`` reads of a descriptor at most.
Descriptor = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_096)]
# The platform's bound on a reason.
Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)]
# There are fewer than twenty checks.
Acknowledged = Annotated[frozenset[Id], Field(max_length=50)]


class Answer(BaseModel):
    """Frozen; an older client passes over what a newer daemon adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Request(BaseModel):
    """An unknown field is a mistake that must not pass in silence. What was sent is not repeated in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
