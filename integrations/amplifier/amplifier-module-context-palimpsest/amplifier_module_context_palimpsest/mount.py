"""Mounts the context manager in a session of the kernel."""

import logging
import re
from importlib import metadata
from typing import Any

from .config import Config
from .context import EVENTS, PalimpsestContext
from .service import PalimpsestError, Service

logger = logging.getLogger(__name__)

# Contract 2.1 came with the first release of the kernel.
LEAST_KERNEL = (1, 0)
SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}")


def _require_kernel() -> None:
    try:
        version = metadata.version("amplifier-core")
    except metadata.PackageNotFoundError:
        return  # Another host that fulfils the same contract.
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if number < LEAST_KERNEL:
        least = ".".join(map(str, LEAST_KERNEL))
        raise RuntimeError(f"context-palimpsest needs amplifier-core {least} or later, and this is {version}; update amplifier-core")


def _session(config: Config, coordinator: Any) -> str:
    name = config.session or getattr(coordinator, "session_id", None)
    if not isinstance(name, str) or SESSION.fullmatch(name) is None:
        raise ValueError(f"context-palimpsest: {name!r} is not a name of a session: give session_id with letters, digits and . _ : @ + -")
    return name


async def mount(coordinator: Any, config: dict[str, Any] | None = None):
    """
    Mounts the context manager and returns a function that pauses its session.

    Raises ValueError for an invalid configuration, and PalimpsestError if the service refuses or does not answer.
    """
    _require_kernel()
    read = Config.read(config)
    name = _session(read, coordinator)
    service = Service(read.url, name, token=read.token, take_over=read.take_over, timeout_s=read.timeout_s)
    opened = await service.open()
    context = PalimpsestContext(service, read, getattr(coordinator, "hooks", None))
    await coordinator.mount("context", context)
    register = getattr(coordinator, "register_contributor", None)
    if callable(register):
        register("observability.events", "context-palimpsest", lambda: list(EVENTS))
    logger.info("context-palimpsest: session %s, %s", name, "resumed" if opened["resumed"] else "new")

    async def cleanup() -> None:
        try:
            await service.close()
        except PalimpsestError as error:
            if error.code not in ("session-not-open", "unreachable"):
                logger.warning("context-palimpsest: the session could not be paused: %s", error)

    return cleanup
