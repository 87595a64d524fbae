"""docs/sign/codes.md: what each code means. ``python -m tests.support.code_page`` rewrites it."""

from collections.abc import Iterator
from itertools import groupby

from signerd.cli.explain import CHECK, DEVICE, ERROR, PLATFORM, Explained, table
from tests.support.pages import DOCS

PAGE = DOCS / "sign" / "codes.md"
_HEAD = """\
# Codes

`signerd explain CODE` says the same as this page. `custody explain CODE` knows the codes of the platform:

    signerd explain paid-twice
    custody explain KEY_REVOKED

Both APIs answer with it in the field `code`.
"""
_OF_CHECKS = """\
signerd runs these on each proposal. The sentence says what is so where the check passes. Checks of your own
rules are called `rule-…`: see [your own rules](rules.md)."""
_ABOUT = {
    ERROR: ("Errors", "By the [exit status](cli.md#exit-statuses) of a command that ends with it."),
    CHECK: ("Checks", _OF_CHECKS),
    PLATFORM: ("Codes of the platform", "In brackets: who can do it, where that is not the caller."),
    DEVICE: ("Outcomes of a device", "How an operation on a device can end."),
}


def page() -> str:
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for kind, (title, words) in _ABOUT.items():
        rows = [one for one in table().values() if one.kind == kind and not one.code.startswith("rule-")]
        rows.sort(key=lambda one: (one.exit_status or 0, one.code))
        yield f"## {title}\n{words}\n"
        for status, group in groupby(rows, key=lambda one: one.exit_status):
            if status is not None:
                yield f"### Exit status {status:d}\n"
            yield from map(_line, group)
            yield ""


def _line(one: Explained) -> str:
    if one.kind == CHECK:
        return f"- `{one.code}`: {one.meaning.split(': ', 1)[1]}"
    who = f" ({one.who})" if one.who not in (None, "the caller") else ""
    return f"- `{one.code}`: {one.meaning} {one.advice}".rstrip() + who


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n", encoding="utf-8")
