"""Whose approval a vault asks for beside the number of signatures: of any member of a role, by its key
``role:5``, or of one person, ``user:7``.
"""

from collections.abc import Collection, Iterable

# A person, and the role that counts: the one they approve in.
Approver = tuple[int, int | None]


def counts_as(asked: Collection[str], approver: Approver) -> str | None:
    """What an approval of theirs is, of what is asked for. Who is named counts for no role as well: two that
    are asked for are two people.
    """
    person, role = f"user:{approver[0]}", f"role:{approver[1]}"
    return person if person in asked else role if role in asked else None


def missing(asked: Collection[str], approvers: Iterable[Approver]) -> list[str]:
    """What these leave open, in whatever order they came: nothing where all that is asked for is given."""
    given = {counts_as(asked, each) for each in approvers} if asked else ()
    return [each for each in asked if each not in given]
