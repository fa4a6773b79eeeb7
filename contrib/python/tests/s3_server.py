# SPDX-License-Identifier: MIT
"""moto's S3 on the loopback, whose replies are disturbed as a test wants it."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

FAULTS = ("error", "throttle", "truncate", "slow", "lost reply")
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Disturbed:
    """Lets some of the requests fail: with 500, with 503 SlowDown, by a body that is cut, by one that comes late, or,
    of those that write, by a 500 once they are carried out."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.share = 0.0  # of requests that are disturbed, at random distances, but never many or none by chance
        self.faults: tuple[str, ...] = FAULTS
        self.seconds = 1.5  # that slow ones take
        self.seen: dict[str, int] = dict.fromkeys(FAULTS, 0)
        self._left = 0  # requests until the next one that is disturbed; 0: not known yet
        self._chance, self._lock = random.Random(1), threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fault = self._next_fault(environ["REQUEST_METHOD"])
        if fault in ("error", "throttle"):  # what was sent must be read before it is answered
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if fault == "error":
            return self._fail(start_response, "500 Internal Server Error", b"InternalError")
        if fault == "throttle":
            return self._fail(start_response, "503 Slow Down", b"SlowDown")
        if fault == "slow":
            time.sleep(self.seconds)
        if fault in (None, "slow"):
            return self._application(environ, start_response)
        head: list[Any] = []
        body = b"".join(self._application(environ, lambda *told: head.extend(told)))
        if fault == "lost reply":
            return self._fail(start_response, "500 Internal Server Error", b"InternalError")
        start_response(*head[:2])  # with the length of all of it
        return [body[: len(body) // 2]]

    def _next_fault(self, method: str) -> str | None:
        only = {"truncate": ("GET",), "lost reply": ("PUT", "POST", "DELETE")}
        with self._lock:
            if self.share == 0:
                self._left = 0
                return None
            fitting = [fault for fault in self.faults if method in only.get(fault, (method,))]
            if not fitting:
                return None
            if self._left == 0:
                apart = round(1 / self.share)
                nearest = min(apart, 4)  # so that who tries again at once gets through
                self._left = self._chance.randint(nearest, 2 * apart - nearest)
            self._left -= 1
            if self._left > 0:
                return None
            fault = self._chance.choice(fitting)
            self.seen[fault] += 1
            return fault

    @staticmethod
    def _fail(start_response: Callable[..., Any], status: str, code: bytes) -> Iterable[bytes]:
        body = b"<?xml version='1.0'?><Error><Code>" + code + b"</Code><Message>a test</Message></Error>"
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, Disturbed]]:
    """The server's URL, and what disturbs it."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            """Requests are many."""

    application = Disturbed(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", application
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
