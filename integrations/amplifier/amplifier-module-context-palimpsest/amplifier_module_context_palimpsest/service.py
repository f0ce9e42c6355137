"""The part of the HTTP interface of `palimpsest serve` that this module uses. It needs only the standard library."""

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

# While the database starts, the server answers 503. The timeout limits the whole wait.
PAUSE_S = 0.5


class PalimpsestError(RuntimeError):
    """
    The service refused a request or cannot be reached. Callers branch on `code`. A request that was refused with a status below 500 changed nothing. After any other
    status, and after `timeout` and `unreachable`, the request may have been carried out, in whole or in part. Check the messages before you add them again.
    """

    def __init__(self, message: str, *, code: str, status: int | None = None):
        super().__init__(message)
        self.code = code
        self.status = status


class Service:
    """One session of a running `palimpsest serve`."""

    def __init__(self, url: str, session: str, *, token: str | None, take_over: bool, timeout_s: float):
        parts = urllib.parse.urlsplit(url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._token = token
        self._take_over = take_over
        self._timeout_s = timeout_s
        self.session = session
        # Ignores the environment's proxy, because both programs run on one machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    async def open(self) -> dict[str, Any]:
        """Opens the session: the existing one of its id, or a new one."""
        body: dict[str, Any] = {"id": self.session}
        if self._take_over:
            body["take_over"] = True
        return await self._send("POST", "/v1/sessions", body)

    async def close(self) -> None:
        """Pauses the session, so that another process can open it."""
        await self._send("POST", f"{self._path}/close", {})

    async def ask(self, method: str, what: str, body: dict[str, Any] | None = None, *, patience_s: float = 0) -> dict[str, Any]:
        """Sends a request about the session and waits `patience_s` longer. If the server has closed the session meanwhile, opens it first."""
        try:
            return await self._send(method, f"{self._path}/{what}", body, patience_s)
        except PalimpsestError as error:
            if error.code != "session-not-open":
                raise
        await self.open()
        return await self._send(method, f"{self._path}/{what}", body, patience_s)

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{urllib.parse.quote(self.session, safe='')}"

    async def _send(self, method: str, path: str, body: dict[str, Any] | None, patience_s: float = 0) -> dict[str, Any]:
        deadline = time.monotonic() + self._timeout_s + patience_s
        return await asyncio.to_thread(self._exchange, method, path, body, deadline)

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None, deadline: float) -> dict[str, Any]:
        while True:
            try:
                return self._once(method, path, body, deadline)
            except PalimpsestError as error:
                # Messages have ids, so a message that is sent again is added only once.
                if error.status != 503 or time.monotonic() + PAUSE_S >= deadline:
                    raise
            time.sleep(PAUSE_S)

    def _once(self, method: str, path: str, body: dict[str, Any] | None, deadline: float) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body, ensure_ascii=True, allow_nan=False).encode()
        request = urllib.request.Request(f"{self._base}{path}", data=data, method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=max(1.0, deadline - time.monotonic())) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise self._refused(error) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise PalimpsestError(
                    f"palimpsest serve at {self._base} takes longer than timeout_s; what was asked may still be done: look at the messages before "
                    "they are added again, set timeout_s higher, or look at the server's log", code="timeout"
                ) from error
            raise PalimpsestError(
                f"palimpsest serve does not answer at {self._base} ({reason}); start it, or set url or PALIMPSEST_URL",
                code="unreachable",
            ) from error

    @staticmethod
    def _refused(error: urllib.error.HTTPError) -> PalimpsestError:
        try:
            problem = json.loads(error.read())
            code, detail = str(problem["code"]), str(problem["detail"])
        except (ValueError, KeyError, TypeError):
            code, detail = "unknown", f"the server answered {error.code} without saying why; is it palimpsest serve?"
        if code == "not-found":
            detail += " (this server is too old for Amplifier)"
        return PalimpsestError(f"palimpsest: {detail} [{code}]", code=code, status=error.code)
