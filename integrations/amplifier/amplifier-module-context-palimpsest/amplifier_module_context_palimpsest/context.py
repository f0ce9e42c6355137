"""The context manager: contract 2.1, and contract 1.0 on top of the same list."""

import asyncio
import copy
import logging
import uuid
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Any

from .budget import budget_of
from .config import Config
from .service import Service

logger = logging.getLogger(__name__)

ROLES = frozenset({"system", "developer", "user", "assistant", "function", "tool"})
PRE, POST, COMPACTION, INCLUDE = (
    "context:pre_compact",
    "context:post_compact",
    "context:compaction",
    "context:include",
)
EVENTS = [PRE, POST, COMPACTION, INCLUDE]
# The notice takes at most 1/NOTICE_SHARE of the limit, and needs at least NOTICE_TOKENS.
NOTICE_SHARE = 20
NOTICE_TOKENS = 64
# Additional time limit for each message of a whole list.
PATIENCE_S = 0.1
# The largest possible limit. A view with this limit keeps the earlier decisions and makes no new ones.
UNLIMITED = 2**53 - 1
# The contexts whose prompt factory runs in the current task. A request of the factory itself gets the previous prompt.
MAKING_PROMPT: ContextVar[tuple[Any, ...]] = ContextVar("palimpsest_making_prompt", default=())


def _tokens(count: int, messages: int) -> dict[str, int]:
    """Returns both spellings: the first version of the contract has tokens, the second token_count."""
    return {"message_count": messages, "tokens": count, "token_count": count}


class PalimpsestContext:
    """
    The conversation of one Amplifier session, kept by Palimpsest.

    Every message is kept whole; `get_messages_for_request` gives a view of them within a limit and changes nothing.
    """

    def __init__(self, service: Service, config: Config, hooks: Any = None):
        self._service = service
        self._config = config
        self._hooks = hooks
        self._prompt_factory: Any = None
        self._shown_summary: str | None = None
        # Messages must arrive in the order in which they were added.
        self._lock = asyncio.Lock()

    async def add_message(self, message: dict[str, Any]) -> None:
        """Adds a message, regardless of the limit. Raises ValueError for a value that is not a message."""
        named = self._named(message)
        async with self._lock:
            await self._service.ask("POST", "amplifier/messages", {"messages": [named]})
        source = (named["message"].get("metadata") or {}).get("source")
        if source and source not in ("user", "human"):
            await self._emit(INCLUDE, {"source": source, "content": message.get("content")})

    async def get_messages(self) -> list[dict[str, Any]]:
        """Returns all messages as they were added. Under contract 1.0, returns those that the last compaction left, and all later ones."""
        if self._config.contract == "1.0":
            return (await self._view(UNLIMITED, threshold=1.0))["messages"]
        return await self.get_raw_messages()

    async def get_raw_messages(self) -> list[dict[str, Any]]:
        """Returns all messages as they were added, under each contract."""
        return (await self._service.ask("GET", "amplifier/messages"))["messages"]

    async def get_messages_for_request(self, token_budget: int | None = None, provider: Any | None = None) -> list[dict[str, Any]]:
        """Returns the messages for a request, within its limit."""
        config = self._config
        limit = await budget_of(token_budget, provider, max_tokens=config.max_tokens, reserve=config.output_reserve_fraction)
        reserve = min(config.notice_reserve, limit // NOTICE_SHARE) if config.notice else 0
        view = await self._view(limit - reserve, threshold=config.compact_threshold)
        notice = self._notice(view) if reserve >= NOTICE_TOKENS else None
        return view["messages"] if notice is None else [*view["messages"], notice]

    async def set_messages(self, messages: list[dict[str, Any]], *, replace: bool | None = None) -> None:
        """
        Sets a whole list. Imports it into an empty session, ignores a list that the session has, and adds the new messages of a continuation.
        Raises PalimpsestError `other-history` for any other list, unless `replace` is set.
        """
        named = [self._named(message) for message in messages]
        body = {"messages": named, "replace": self._config.replace if replace is None else replace}
        async with self._lock:
            answer = await self._service.ask("PUT", "amplifier/messages", body, patience_s=PATIENCE_S * len(named))
        outcome = answer["outcome"]
        logger.debug("context-palimpsest: a list of %d messages was %s", len(messages), outcome)

    async def clear(self) -> None:
        """Begins the list anew. The session in Palimpsest keeps every turn."""
        async with self._lock:
            await self._service.ask("POST", "amplifier/clear", {})
            self._shown_summary = None

    async def set_system_prompt_factory(self, factory: Any) -> None:
        """Sets a coroutine function that makes the system prompt. It is called before each request."""
        self._prompt_factory = factory

    async def should_compact(self) -> bool:
        """Contract 1.0: returns whether the messages take more than their share of `max_tokens`. Under 2.1 always false, because requests compact."""
        if self._config.contract != "1.0":
            return False
        view = await self._view(UNLIMITED, threshold=1.0)
        return view["tokens"] > self._config.max_tokens * self._config.compact_threshold

    async def compact(self) -> None:
        """Contract 1.0: compacts the messages for all later calls of `get_messages`. Does nothing under 2.1, because requests compact."""
        if self._config.contract == "1.0":
            await self._view(self._config.max_tokens, threshold=self._config.target_usage)

    async def _view(self, limit: int, *, threshold: float) -> dict[str, Any]:
        config = self._config
        wish = {
            "budget": limit,
            "compact_threshold": threshold,
            "target_usage": min(config.target_usage, threshold),
            "protected_recent": config.protected_recent,
            "protected_tool_results": config.protected_tool_results,
            "max_tool_result_bytes": config.max_tool_result_bytes,
            "summary": config.summary,
            "preserve_system": config.preserve_system,
        }
        # Called outside of the lock, because a factory may itself add or request messages.
        prompt = await self._prompt()
        async with self._lock:
            if prompt is not None:
                await self._service.ask("PUT", "system-prompt", prompt)
            view = await self._service.ask("POST", "amplifier/view", wish)
        if view["compaction"] is not None:
            await self._compacted(view)
        return view

    async def _prompt(self) -> dict[str, Any] | None:
        making = MAKING_PROMPT.get()
        if self._prompt_factory is None or any(context is self for context in making):
            return None
        token = MAKING_PROMPT.set((*making, self))
        try:
            return {"text": await self._prompt_factory()}
        finally:
            MAKING_PROMPT.reset(token)

    async def _compacted(self, view: dict[str, Any]) -> None:
        done = view["compaction"]
        await self._emit(PRE, _tokens(done["before_tokens"], done["before_messages"]))
        await self._emit(POST, _tokens(done["after_tokens"], done["after_messages"]))
        config = self._config
        await self._emit(
            COMPACTION,
            {
                "before_tokens": done["before_tokens"],
                "after_tokens": done["after_tokens"],
                "before_messages": done["before_messages"],
                "after_messages": done["after_messages"],
                "messages_removed": done["gone"],
                "messages_truncated": done["lines"],
                "user_messages_stubbed": done["cut"],
                "system_messages_preserved": sum(message["role"] == "system" for message in view["messages"]),
                "strategy_level": len(done["steps"]),
                "steps": done["steps"],
                "budget": view["limit"],
                "target_tokens": int(view["limit"] * config.target_usage),
                "protected_recent": config.protected_recent,
                "protected_tool_results": config.protected_tool_results,
                "counter": view["counter"],
                # A provider that stores the previous request must not continue it.
                "reset_chain": True,
            },
        )
        summary = done["summary"]
        if summary is not None and summary != self._shown_summary:
            self._shown_summary = summary
            await self._emit(INCLUDE, {"source": "palimpsest:summary", "content": summary})

    def _notice(self, view: dict[str, Any]) -> dict[str, Any] | None:
        lines, gone = view["lines"], view["gone"]
        if lines + gone == 0:
            return None
        text = f"{gone} earlier messages and the texts of {lines} tool results are left out of this request."
        if self._config.notice_verbosity == "normal":
            text += " They are kept; run a tool again, or ask, where you need one of them."
        return {
            "role": "user",
            "content": f"<system-reminder>\n{text}\n</system-reminder>",
            "metadata": {"source": "palimpsest", "kind": "notice", "ephemeral": True},
        }

    @staticmethod
    def _named(message: Any) -> dict[str, Any]:
        if not isinstance(message, dict) or not message.get("role"):
            raise ValueError("a message is a dict with a role: system, developer, user, assistant, function or tool")
        if message["role"] not in ROLES:
            raise ValueError(f"{message['role']!r} is not a role of a message; there are {', '.join(sorted(ROLES))}")
        kept = copy.deepcopy(message)
        metadata = dict(kept.get("metadata") or {})
        metadata.setdefault("timestamp", datetime.now(timezone.utc).isoformat(timespec="milliseconds"))
        return {"id": str(uuid.uuid4()), "message": {**kept, "metadata": metadata}}

    async def _emit(self, event: str, data: dict[str, Any]) -> None:
        if self._hooks is None:
            return
        try:
            await self._hooks.emit(event, data)
        except Exception as error:  # A failing listener must not stop the turn.
            logger.warning("context-palimpsest: a listener of %s failed: %s", event, error)
