"""The limit of a request. The first of these counts: an explicit limit, the model's window, the provider's defaults, the configuration."""

import inspect
import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)

SAFETY_TOKENS = 4_096


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _window(value: Any, reserve: float) -> int | None:
    """Returns the tokens of a window without those for the answer and a margin. None if the window is not known."""
    window, output = _member(value, "context_window"), _member(value, "max_output_tokens")
    if isinstance(window, bool) or not isinstance(window, int) or window <= 0:
        return None
    spent = output if isinstance(output, int) and not isinstance(output, bool) else 0
    left = window - int(reserve * spent) - SAFETY_TOKENS
    return left if left > 0 else None


async def _asked(provider: Any, name: str) -> Any:
    method = getattr(provider, name, None)
    if not callable(method):
        return None
    try:
        answer = method()
        return await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # A failing provider must not stop the turn.
        logger.warning("context-palimpsest: %s of the provider failed: %s", name, error)
        return None


async def budget_of(token_budget: int | None, provider: Any, *, max_tokens: int, reserve: float) -> int:
    """Returns the maximum number of tokens of a request."""
    if token_budget is not None:
        if isinstance(token_budget, bool) or not isinstance(token_budget, int) or token_budget < 1:
            raise ValueError(f"context-palimpsest: token_budget is {token_budget!r}; give a whole number from 1")
        return token_budget
    if provider is not None:
        model = _window(await _asked(provider, "get_model_info"), reserve)
        if model is not None:
            return model
        info = await _asked(provider, "get_info")
        known = _window(_member(info, "defaults") or {}, reserve)
        if known is not None:
            return known
    return max_tokens
