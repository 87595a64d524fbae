"""docs/sign/codes.md: what each code means. ``python -m tests.support.code_page`` writes it anew."""

from collections.abc import Iterator

from signerd.cli.explained import CHECK, DEVICE, ERROR, Explained, table
from tests.support.pages import DOCS

PAGE = DOCS / "sign" / "codes.md"
_HEAD = """\
# Codes

An error, a check and the outcome of a device each have a code. `signerd explain CODE` says the same as this
page:

    signerd explain paid-twice

[The command line](cli.md#exit-statuses) has the exit statuses. An answer of the loopback API has the code of
an error in the field `code`. The platform writes its own codes in capitals, such as `KEY_REVOKED`. The
reference of its API names them at each call.
"""
_OF_CHECKS = """\
signerd runs these on each proposal. The sentence says what is so where the check passes. Checks of your own
rules are called `rule-…`: see [your own rules](rules.md)."""
_ABOUT = {
    ERROR: ("Errors", "A command ends with the exit status in the last column."),
    CHECK: ("Checks", _OF_CHECKS),
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
    yield "| code | what it means | what to do |" + (" status |" if kind == ERROR else "")
    yield "|---|---|---|" + ("---|" if kind == ERROR else "")
    for one in rows:
        status = f" {one.exit_status:d} |" if one.exit_status is not None else ""
        yield f"| `{one.code}` | {one.meaning} | {one.advice} |{status}"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n", encoding="utf-8")
