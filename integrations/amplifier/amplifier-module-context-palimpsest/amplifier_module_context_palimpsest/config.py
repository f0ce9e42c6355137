"""The configuration of the module, read once and checked."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

CONTRACTS = ("2.1", "1.0")
SUMMARISING = frozenset({"progressive", "summary", "summarize"})
STRATEGIES = SUMMARISING | {"truncate"}
VERBOSITIES = ("minimal", "normal")
# Other context managers have these options. Here they have no effect; docs/amplifier.md says why.
WITHOUT_EFFECT = frozenset(
    {
        "truncate_chars",
        "token_meter",
        "summary_trigger",
        "summarization_model",
        "summarization_timeout_s",
        "compaction_notice_min_level",
    }
)
# The two contracts have different defaults.
USUAL = {
    "2.1": {"max_tokens": 200_000, "compact_threshold": 0.92, "target_usage": 0.5},
    "1.0": {"max_tokens": 100_000, "compact_threshold": 0.9, "target_usage": 0.7},
}


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"context-palimpsest: {name} is {value!r}; give a whole number from {least}")
    return value


def _share(name: str, value: Any, *, zero: bool = False) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not (0 <= value <= 1) or (value == 0 and not zero):
        raise ValueError(f"context-palimpsest: {name} is {value!r}; give a share {'from' if zero else 'above'} 0 and up to 1")
    return float(value)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"context-palimpsest: {name} is {value!r}; give true or false")
    return value


def _one_of(name: str, value: Any, known: Any, usual: str) -> str:
    if value in known:
        return value
    logger.warning("context-palimpsest: %s is %r, which is not known here; %r is taken", name, value, usual)
    return usual


def _token(config: Mapping[str, Any]) -> str | None:
    token = config.get("token") or os.environ.get("PALIMPSEST_TOKEN")
    file = config.get("token_file") or os.environ.get("PALIMPSEST_TOKEN_FILE")
    if token or not file:
        return token or None
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"context-palimpsest: the token file {file!r} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Config:
    """The settings of the module, by their names in the mount plan."""

    url: str
    token: str | None
    session: str | None
    contract: str
    max_tokens: int
    compact_threshold: float
    target_usage: float
    protected_recent: float
    protected_tool_results: int
    max_tool_result_bytes: int
    output_reserve_fraction: float
    preserve_system: bool
    summary: bool
    notice: bool
    notice_reserve: int
    notice_verbosity: str
    replace: bool
    take_over: bool
    timeout_s: float

    @classmethod
    def read(cls, given: Mapping[str, Any] | None) -> "Config":
        """Reads a configuration. Raises ValueError for an invalid value, and warns about unknown names."""
        config = dict(given or {})
        contract = str(config.get("contract", "2.1"))
        if contract not in CONTRACTS:
            raise ValueError(f"context-palimpsest: contract is {contract!r}; there are {' and '.join(CONTRACTS)}")
        usual = USUAL[contract]
        url = str(config.get("url") or os.environ.get("PALIMPSEST_URL") or "http://127.0.0.1:7390")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"context-palimpsest: url is {url!r}; give http://127.0.0.1:PORT as `palimpsest serve` says it")
        for name in sorted(set(config) & WITHOUT_EFFECT):
            logger.warning("context-palimpsest: %s has no effect here", name)
        for name in sorted(set(config) - KNOWN - WITHOUT_EFFECT):
            logger.warning("context-palimpsest: %s is not known and has no effect", name)
        timeout = config.get("timeout_s", 120)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
            raise ValueError(f"context-palimpsest: timeout_s is {timeout!r}; give seconds above 0")
        strategy = _one_of("compaction_strategy", config.get("compaction_strategy", "progressive"), STRATEGIES, "progressive")
        verbosity = config.get("compaction_notice_verbosity", "normal")
        return cls(
            url=url,
            token=_token(config),
            session=config.get("session_id"),
            contract=contract,
            max_tokens=_whole("max_tokens", config.get("max_tokens", usual["max_tokens"]), 1),
            compact_threshold=_share("compact_threshold", config.get("compact_threshold", usual["compact_threshold"])),
            target_usage=_share("target_usage", config.get("target_usage", usual["target_usage"])),
            protected_recent=_share("protected_recent", config.get("protected_recent", 0.3), zero=True),
            protected_tool_results=_whole("protected_tool_results", config.get("protected_tool_results", 5), 0),
            max_tool_result_bytes=_whole("max_tool_result_bytes", config.get("max_tool_result_bytes", 131_072), 1),
            output_reserve_fraction=_share("output_reserve_fraction", config.get("output_reserve_fraction", 0.5), zero=True),
            preserve_system=_truth("preserve_system", config.get("preserve_system", True)),
            summary=strategy in SUMMARISING,
            notice=_truth("compaction_notice_enabled", config.get("compaction_notice_enabled", contract == "2.1")),
            notice_reserve=_whole("compaction_notice_token_reserve", config.get("compaction_notice_token_reserve", 800), 0),
            notice_verbosity=_one_of("compaction_notice_verbosity", verbosity, VERBOSITIES, "normal"),
            replace=_truth("replace_on_set", config.get("replace_on_set", False)),
            take_over=_truth("take_over", config.get("take_over", False)),
            timeout_s=float(timeout),
        )


KNOWN = frozenset(
    {
        "url",
        "token",
        "token_file",
        "session_id",
        "contract",
        "max_tokens",
        "compaction_strategy",
        "compact_threshold",
        "target_usage",
        "protected_recent",
        "protected_tool_results",
        "max_tool_result_bytes",
        "output_reserve_fraction",
        "preserve_system",
        "compaction_notice_enabled",
        "compaction_notice_token_reserve",
        "compaction_notice_verbosity",
        "replace_on_set",
        "take_over",
        "timeout_s",
    }
)
