"""docs/sign/codes.md: what each code means. ``python -m tests.support.code_page`` rewrites it."""

from collections.abc import Iterator

from signerd.cli.explained import CHECK, DEVICE, ERROR, PLATFORM, Explained, table
from tests.support.pages import DOCS

PAGE = DOCS / "sign" / "codes.md"
_HEAD = """\
# Codes

An error, a check, the outcome of a device and an answer of the platform each have a code.
`signerd explain CODE` says the same as this page. `custody explain CODE` knows those of the platform:

    signerd explain paid-twice
    custody explain KEY_REVOKED

[The command line](cli.md#exit-statuses) has the exit statuses. An answer of the loopback API has the code of
an error in the field `code`. The [codes of the platform](#codes-of-the-platform) are in capitals.
"""
_OF_CHECKS = """\
signerd runs these on each proposal. The sentence says what is so where the check passes. Checks of your own
rules are called `rule-…`: see [your own rules](rules.md)."""
_ABOUT = {
    ERROR: ("Errors", "A command ends with the exit status in the last column."),
    CHECK: ("Checks", _OF_CHECKS),
    PLATFORM: (
        "Codes of the platform",
        "They stand in the field `code` of its answers. The reference of the API has them at each call.",
    ),
    DEVICE: ("Outcomes of a device", "How an operation on a device can end."),
}


def page() -> str:
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for kind, (title, words) in _ABOUT.items():
        rows = sorted((one for one in table().values() if one.kind == kind), key=lambda one: one.code)
        yield f"## {title}\n{words}\n"
        yield from _rows(kind, rows)
        yield ""


def _rows(kind: str, rows: list[Explained]) -> Iterator[str]:
    if kind == CHECK:
        yield "| code | it passes where this is so |\n|---|---|"
        for one in rows:
            if not one.code.startswith("rule-"):
                yield f"| `{one.code}` | {one.meaning.split(': ', 1)[1]} |"
        return
    more = {ERROR: " status |", PLATFORM: " who can |"}.get(kind, "")
    yield f"| code | what it means | what to do |{more}"
    yield "|---|---|---|" + ("---|" if more else "")
    for one in rows:
        last = (
            f" {one.exit_status:d} |" if one.exit_status is not None else f" {one.who} |" if one.who else ""
        )
        yield f"| `{one.code}` | {one.meaning} | {one.advice} |{last}"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n", encoding="utf-8")
