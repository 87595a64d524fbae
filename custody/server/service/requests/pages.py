"""A page of a list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """``total`` counts all that match. ``has_more``: others follow the last item."""

    items: list[Item]
    total: int
    has_more: bool
