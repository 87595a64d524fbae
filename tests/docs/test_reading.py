"""The guides are easy to read, by measure, and use the field's words.

``python -m tests.support.reading_ease`` prints both measures of every page.
"""

import re

import pytest

from tests.support.pages import PAGES, named, prose
from tests.support.reading_ease import grade, sentences

GUIDES = [
    page for page in PAGES if page.parent.name in {"sign", "build", "operate"} and page.name != "index.md"
]
# One idea in a sentence.
HIGHEST_GRADE, LONGEST_SENTENCE = 9, 32
# Left: what is not written. Right: what is.
WORDS = {
    r"in order to": "to",
    r"utili[sz]e[sd]?": "use",
    r"leverag(?:e|es|ed|ing)": "use",
    r"(?:simply|seamless(?:ly)?|robust)": "(leave it out)",
    r"cryptocurrenc(?:y|ies)": "bitcoin",
    r"hardware wallets?": "signing device",
    r"seed phrases?": "seed words",
    r"multi-sig": "multisig",
    r"finalize[sd]?": "finalise",
    r"co-signers?": "cosigner",
}
# Of the guides alone: these words have no actor, or none that can act.
ACTORS = {r"whoever": "name the person", r"nobody but": "only …", r"anyone": "anybody"}


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_a_guide_is_easy_enough(page):
    assert grade(prose(page)) <= HIGHEST_GRADE


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_a_guide_has_no_long_sentence(page):
    text = prose(page)
    long = [" ".join(words) for words in sentences(text) if len(words) > LONGEST_SENTENCE]
    assert long == []
    assert avoided(text, ACTORS) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_it_uses_the_words_of_the_field(page):
    assert avoided(prose(page), WORDS) == []


def avoided(text, words):
    text = re.sub(r"^!\[.*$", "", text, flags=re.MULTILINE)  # a device's own words
    return [
        f"{found[0]}: write '{instead}'"
        for word, instead in words.items()
        for found in re.finditer(rf"\b{word}\b", text, re.IGNORECASE)
    ]
