"""A whole session of the kernel over ten turns, in two processes, against a running `palimpsest serve`."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("scripted.py")


def run(session, first, last, resumed):
    words = [sys.executable, str(SCRIPT), session, str(first), str(last), resumed]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


def said(message):
    return {key: value for key, value in message.items() if key != "metadata"}


def is_notice(message):
    return bool((message.get("metadata") or {}).get("ephemeral"))


def check_pairs(request):
    open_calls = []
    for message in request:
        if message["role"] == "tool":
            assert open_calls, "a result without its call directly before it"
            assert message["tool_call_id"] == open_calls.pop(0)
            continue
        assert open_calls == [], "a call without its result"
        open_calls = [call["id"] for call in message.get("tool_calls") or []]
    assert open_calls == []


@pytest.fixture(scope="module")
def session():
    name = f"kernel-{uuid.uuid4()}"
    first = run(name, 0, 6, "new")
    second = run(name, 6, 10, "resumed")
    return first, second


def test_each_turn_has_its_answer_in_both_processes(session):
    first, second = session
    assert first["answers"] + second["answers"] == [f"answer {turn}" for turn in range(10)]


def test_the_list_is_whole_after_compactions_and_resume(session):
    first, second = session
    messages = second["messages"]
    assert [message["role"] for message in messages] == ["system"] + ["user", "assistant", "tool", "assistant"] * 10
    assert messages[: len(first["messages"])] == first["messages"]
    assert messages[3]["content"].count("src/file0.py") == 65
    assert all(message["metadata"]["timestamp"] for message in messages)


def test_every_request_is_within_the_limit_with_whole_pairs(session):
    for process in session:
        for request in process["requests"]:
            assert request[0]["role"] == "system" and request[0]["content"] == "You answer briefly."
            check_pairs(request)
            assert [n for n, message in enumerate(request) if is_notice(message)] in ([], [len(request) - 1])
            users = [m["content"] for m in request if m["role"] == "user" and not m["content"].startswith("<system-reminder>")]
            assert users[0] == "question 0"


def test_it_is_compacted_in_both_processes_and_says_so_with_both_spellings(session):
    for process in session:
        kinds = [event for event, _ in process["events"]]
        assert "context:compaction" in kinds
        assert kinds.index("context:pre_compact") < kinds.index("context:post_compact") < kinds.index("context:compaction")
        for event, data in process["events"]:
            if event in ("context:pre_compact", "context:post_compact"):
                assert data["tokens"] == data["token_count"] > 0
                assert data["message_count"] > 0
            if event == "context:compaction":
                assert data["after_tokens"] <= data["budget"] and data["after_tokens"] < data["before_tokens"]
                assert data["reset_chain"] is True
    assert ["context:pre_compact", "context:post_compact", "context:compaction", "context:include"] in session[0]["told"]


def test_requests_begin_with_the_one_before_until_the_view_gets_smaller(session):
    first, second = session
    compactions = sum(event == "context:compaction" for event, _ in first["events"] + second["events"])
    requests = first["requests"] + second["requests"]
    bare = [[said(message) for message in request if not is_notice(message)] for request in requests]
    breaks = sum(after[: len(before)] != before for before, after in zip(bare, bare[1:], strict=False))
    assert 0 < breaks <= compactions
