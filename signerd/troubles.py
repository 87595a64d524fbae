"""What is out of order at the moment: told on the feed when it begins, and in the status for as long as it lasts."""

from collections.abc import Mapping

from signerd.feed import Feed

# A platform may send any number of bad entries: a person reads so many of a group, and how many more there are.
MOST_TOLD = 5


class Troubles:
    """By group: whoever looks at something says each time all that is wrong with it, and nothing once it is well."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._standing: dict[str, dict[str, str]] = {}

    def stand(self, group: str, found: Mapping[str, str]) -> None:
        """``found``: by what it is about, in a sentence. What is known already is not told again."""
        known = self._standing.pop(group, {})
        fresh = [(subject, sentence) for subject, sentence in found.items() if known.get(subject) != sentence]
        for subject, sentence in fresh[:MOST_TOLD]:
            self._feed.add(subject, "attention", sentence)
        if len(fresh) > MOST_TOLD:
            self._feed.add(group, "attention", _more(len(fresh) - MOST_TOLD))
        if found:
            self._standing[group] = dict(found)

    def sentences(self) -> tuple[str, ...]:
        return tuple(line for found in self._standing.values() for line in _shown(tuple(found.values())))


def _shown(sentences: tuple[str, ...]) -> tuple[str, ...]:
    more = len(sentences) - MOST_TOLD
    return sentences if more <= 0 else (*sentences[:MOST_TOLD], _more(more))


def _more(count: int) -> str:
    return f"And {count} more of this kind."
