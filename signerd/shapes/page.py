"""The way to the page."""

from pydantic import Field

from signerd.shapes.common import Answer


class PageEntry(Answer):
    """``code``: good once, at ``url``, for so many ``seconds``."""

    url: str
    code: str = Field(repr=False)
    seconds: int
