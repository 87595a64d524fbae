"""Metrics for Prometheus, on a separate loopback port, never on the API's."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from custody.server.listen import Address, CannotListen, bind

# Scrapes are served one at a time: a silent client delays the others no longer than this.
CLIENT_SECONDS: Final = 5.0


@contextmanager
def serving_metrics(address: Address, registry: CollectorRegistry) -> Iterator[Address]:
    """Answers ``GET /metrics`` until the block ends; where it listens (port 0 takes a free one). Raises
    CannotListen.
    """
    if not address.is_loopback:
        raise CannotListen(
            f"{address.host} can be reached from other machines, and metrics tell every caller how the "
            "platform is used.",
            "Listen on 127.0.0.1, and let a collector on this machine, or in this network namespace, ask "
            "there.",
        )
    with (
        bind(address, behind_proxy=False) as listener,
        _server(listener.getsockname()[:2], registry) as server,
    ):
        server.socket.close()
        server.socket = listener
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield Address(*listener.getsockname()[:2])
        finally:
            server.shutdown()
            thread.join()


def _server(address: tuple[str, int], registry: CollectorRegistry) -> HTTPServer:
    class Scrape(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = generate_latest(registry)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Silent: there is a scrape every few seconds."""

    return HTTPServer(address, Scrape, bind_and_activate=False)
