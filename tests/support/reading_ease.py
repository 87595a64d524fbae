"""How hard a page is to read: its Flesch-Kincaid grade (Kincaid and others, 1975).

``python -m tests.support.reading_ease [PAGE…]`` prints the grade of each page, and the words of its
longest sentence.
Only prose counts: no code blocks, tables, link targets or headings. A name in code counts as one syllable,
a list item as a sentence.
"""

import re
import sys
from pathlib import Path

from tests.support.pages import PAGES, named, prose

_LEFT_OUT = re.compile(r"^(#|\||    |<|!\[).*$", re.MULTILINE)
_SENTENCE_ENDS = re.compile(r"[.!?](?=[\s\"')*]|$)")
_SILENT = re.compile(r"(?:[^laeiouy]es|[^dt]ed|[^l]e)$")


def sentences(markdown: str) -> list[list[str]]:
    """The words of each sentence."""
    text = _LEFT_OUT.sub("\n\n", markdown)
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "id", text)
    blocks = re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", text)
    found = []
    for block in blocks:
        bare = re.sub(r"^\s*([-*]|\d+\.) ", "", block)
        for sentence in _SENTENCE_ENDS.split(" ".join(bare.split())):
            words = re.findall(r"[A-Za-z][A-Za-z'’-]*", sentence)
            if words:
                found.append(words)
    return found


def syllables(word: str) -> int:
    """Counts groups of vowels, without a silent e, ed or es at the end."""
    plain = word.lower().replace("'", "")
    if len(plain) > 3:
        silent = _SILENT.search(plain)
        plain = plain[: silent.start() + 1] if silent else plain
    return max(1, len(re.findall(r"[aeiouy]+", plain)))


def grade(markdown: str) -> float:
    found = sentences(markdown)
    words = [word for sentence in found for word in sentence]
    if not words:
        return 0.0
    return 0.39 * len(words) / len(found) + 11.8 * sum(map(syllables, words)) / len(words) - 15.59


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:] or PAGES):
        path = page.resolve()
        longest = max(sentences(prose(path)), key=len, default=[])
        sys.stdout.write(f"{grade(prose(path)):5.1f}  {len(longest):3}  {named(path)}\n")
