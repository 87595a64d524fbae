"""The platform's console as a browser sees it: pages, forms with their hidden fields, redirects."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import httpx
import uvicorn

from tests.support.paged import Markup, Tag, whole
from tests.support.platform import PASSWORD

SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Form:
    action: str
    method: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)


def forms_of(html: str) -> list[Form]:
    """A page's forms, with the fields that a browser would send if nothing was typed."""
    found: list[Form] = []
    tags = Markup(html).tags
    for tag in tags:
        given, name = tag.attributes, tag.attributes.get("name", "")
        if tag.name == "form":
            found.append(Form(given["action"], given.get("method", "get")))
        elif found and tag.name == "input" and name and given.get("type") != "file":
            if given.get("type") not in {"checkbox", "radio"} or "checked" in given:
                found[-1].fields.append((name, given.get("value", "")))
        elif found and tag.name == "button":
            found[-1].buttons.append((name, given.get("value", "")))
        elif found and tag.name == "textarea":
            found[-1].fields.append((name, tag.words))
        elif found and tag.name == "select":
            options = [each.attributes for each in tags if each.name == "option" and each.parent is tag]
            chosen = [each for each in options if "selected" in each] or options[:1]
            found[-1].fields += [(name, each.get("value", "")) for each in chosen]
    return found


def _line(tag: Tag) -> str:
    return " ".join(tag.words.split())


@dataclass
class Visitor:
    """One person's browser. ``page``: what it shows."""

    http: httpx.Client
    html: str = ""
    url: str = ""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> Markup:
        return Markup(self.html)

    @property
    def words(self) -> str:
        return self.page.words

    def says(self, *words: str) -> None:
        assert [each for each in words if each not in self.words] == [], self.words

    @property
    def token(self) -> str:
        """Of the page's forms; empty where it has none."""
        tokens = (
            value for form in forms_of(self.html) for name, value in form.fields if name == "form_token"
        )
        return next(tokens, "")

    @property
    def facts(self) -> dict[str, str]:
        """The definition lists: descriptions by term."""
        names, values = self.page.all("dt"), self.page.all("dd")
        return {_line(name): _line(value) for name, value in zip(names, values, strict=True)}

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the page's tables, without header rows."""
        found: list[list[str]] = []
        for tag in self.page.tags:
            if tag.name == "tr":
                found.append([])
            elif tag.name == "td" or (tag.name == "th" and tag.attributes.get("scope") == "row"):
                found[-1].append(_line(tag))
        return [cells for cells in found if cells]

    def open(self, path: str, status: int = 200) -> "Visitor":
        return self._take(self.http.get(path, follow_redirects=True), status)

    def link(self, words: str) -> str:
        """The address of the link with these words."""
        (found,) = (tag for tag in self.page.all("a") if _line(tag) == words)
        return found.attributes["href"]

    def form(self, action: str) -> Form:
        """The form with this action."""
        sent = [form for form in forms_of(self.html) if form.method == "post"]
        found = [form for form in sent if form.action == action]
        assert len(found) == 1, (action, [form.action for form in sent])
        return found[0]

    def send(
        self, action: str, /, button: str = "", status: int = 200, repeated: tuple = (), **typed: str
    ) -> "Visitor":
        """Fills the form and submits it, by the button of that name if given. ``repeated``: (name, value) of
        fields that a form has several times.
        """
        form = self.form(action)
        names = {*typed, *(name for name, _ in repeated)}
        sent: list[tuple[str, str]] = [pair for pair in form.fields if pair[0] not in names]
        sent += [*typed.items(), *repeated]
        sent += [pair for pair in form.buttons if button and pair[0] == button][:1]
        data: dict[str, Any] = {}
        for name, value in sent:
            data.setdefault(name, []).append(value)
        answer = self.http.post(action, data=data, headers=SAME_SITE, follow_redirects=True)
        return self._take(answer, status)

    def send_file(self, action: str, /, content: bytes, status: int = 200, **typed: str) -> "Visitor":
        """Submits the form with this CSV file; empty ``content`` means that no file was chosen."""
        kept = [pair for pair in self.form(action).fields if pair[0] not in typed]
        head = 'Content-Disposition: form-data; name="{}"{}\r\n\r\n{}'
        parts = [head.format(field, "", value).encode() for field, value in (*kept, *typed.items())]
        # The file's field comes first, as a browser sends it.
        file = head.format("csv", f'; filename="{"list.csv" * bool(content)}"\r\nContent-Type: text/csv', "")
        body = b"".join(b"--edge\r\n%b\r\n" % part for part in (file.encode() + content, *parts))
        kind = {"Content-Type": "multipart/form-data; boundary=edge"}
        sent = {"content": body + b"--edge--\r\n", "headers": SAME_SITE | kind}
        return self._take(self.http.post(action, **sent, follow_redirects=True), status)

    def post_one(self, action: str, /, status: int = 200, **typed: str) -> "Visitor":
        """Posts only what is typed, as a form with this action would: one of several, or one that this person
        is not shown.
        """
        return self._take(self.post(action, **typed, follow_redirects=True), status)

    def post(self, action: str, /, follow_redirects: bool = False, **typed: str) -> httpx.Response:
        """Of what is typed alone, with the token of the forms of this page."""
        sent = {"form_token": self.token, **typed}
        return self.http.post(action, data=sent, headers=SAME_SITE, follow_redirects=follow_redirects)

    def confirm(self, action: str, status: int = 200, **typed: str) -> "Visitor":
        """Confirms on the page that repeats what was typed, with the password where it asks for it."""
        fields = {name for name, _ in self.form(action).fields}
        typed = {name: PASSWORD for name in ("step_password", "password") if name in fields} | typed
        return self.send(action, status=status, **typed)

    def sign_in(self, email: str, password: str = PASSWORD) -> "Visitor":
        self.open("/console/sign-in")
        return self.send("/console/sign-in", email=email, password=password)

    def _take(self, answer: httpx.Response, status: int) -> "Visitor":
        whole(answer, status)
        self.html, self.url, self.status = answer.text, answer.url.path, answer.status_code
        return self


@contextmanager
def served_app(app: Any, listener: socket.socket | None = None) -> Iterator[str]:
    """Serves the application on a socket of its own, for a real browser; yields its address."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    quiet = {"log_level": "critical", "lifespan": "off", "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(app, **quiet))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
