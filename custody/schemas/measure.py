"""How many values a JSON text would make, before anything makes them: three bytes of it can become a hundred
of memory.
"""

import re

# A text, or what stands between two values. A text without an end is one, too, so that every byte is looked
# at once; the possessive marks keep no memory for a way back.
# Not compiled here: that takes a millisecond, and few answers are large enough to be counted so.
_TOKEN = rb'(?s:"(?:[^"\\]++|\\.?)*+"?|[,\[{])'


def has_more_values(body: bytes | bytearray, most: int) -> bool:
    """Whether it holds more than ``most`` values. Linear in its length whatever it holds, also where it is no
    JSON.
    """
    if sum(body.count(mark) for mark in b",[{") <= most:
        return False
    # Some of them may stand inside a text, as in an export. An object's member has two texts beside its
    # comma.
    separators = 0
    for number, token in enumerate(re.finditer(_TOKEN, body)):
        separators += not token[0].startswith(b'"')
        if separators > most or number > 3 * most:
            return True
    return False
