"""Tests the parts that the kernel's own tests leave out: contract 1.0, whole lists, the order of budgets, refusals."""

import asyncio
import uuid

import pytest
from amplifier_core.testing import EventRecorder, MockCoordinator
from amplifier_module_context_palimpsest import mount
from amplifier_module_context_palimpsest.budget import budget_of
from amplifier_module_context_palimpsest.config import Config
from amplifier_module_context_palimpsest.service import PalimpsestError

WORDS = " ".join(f"word{n}" for n in range(120))


class Coordinator(MockCoordinator):
    pass


async def mounted(**config):
    coordinator = Coordinator()
    name = config.pop("session_id", f"module-{uuid.uuid4()}")
    cleanup = await mount(coordinator, {"session_id": name, **config})
    context = coordinator.get("context")
    context._hooks = EventRecorder()
    return context, cleanup


async def say(context, first, last):
    for turn in range(first, last):
        await context.add_message({"role": "user", "content": f"question {turn}"})
        call = {"id": f"call_{turn}", "tool": "look", "arguments": {"turn": turn}}
        await context.add_message({"role": "assistant", "content": "", "tool_calls": [call]})
        await context.add_message({"role": "tool", "tool_call_id": f"call_{turn}", "content": f"{turn} {WORDS}"})
        await context.add_message({"role": "assistant", "content": f"answer {turn}"})


@pytest.mark.asyncio
async def test_contract_1_compacts_when_it_is_asked_to():
    context, cleanup = await mounted(contract="1.0", max_tokens=2_000, protected_tool_results=1, protected_recent=0.0)
    await say(context, 0, 2)
    assert await context.should_compact() is False
    await say(context, 2, 8)
    before = await context.get_messages()
    assert await context.should_compact() is True
    await context.compact()
    after = await context.get_messages()
    assert len(after) < len(before) or sum(len(m["content"]) for m in after) < sum(len(m["content"]) for m in before)
    assert await context.should_compact() is False
    assert await context.get_raw_messages() == before
    await context.add_message({"role": "user", "content": "later"})
    later = await context.get_messages()
    assert later[: len(after)] == after and later[-1]["content"] == "later"
    await cleanup()


@pytest.mark.asyncio
async def test_contract_2_needs_no_compaction_from_outside():
    context, cleanup = await mounted(max_tokens=2_000)
    await say(context, 0, 8)
    every = await context.get_messages()
    assert await context.should_compact() is False
    await context.compact()
    request = await context.get_messages_for_request()
    assert await context.get_messages() == every
    assert request[-1]["metadata"]["ephemeral"] is True
    events = [event for event, _ in context._hooks.events]
    assert events[:3] == ["context:pre_compact", "context:post_compact", "context:compaction"]
    assert await context.get_messages_for_request() == request
    assert [event for event, _ in context._hooks.events] == events
    request[0]["content"] = "changed"
    assert (await context.get_messages())[0]["content"] == "question 0"
    await cleanup()


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["0.9.4", "unknown"])
async def test_a_kernel_before_the_contract_is_refused_and_no_session_is_opened(version, monkeypatch, tmp_path):
    package = tmp_path / f"amplifier_core-{version}.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: amplifier-core\nVersion: {version}\n")
    name = f"module-{uuid.uuid4()}"
    coordinator = Coordinator()
    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        with pytest.raises(RuntimeError, match=rf"needs amplifier-core 1\.0 or later, and this is {version}; update amplifier-core"):
            await mount(coordinator, {"session_id": name})
    assert coordinator.get("context") is None
    context, cleanup = await mounted(session_id=name)
    assert await context.get_messages() == []
    await cleanup()


@pytest.mark.asyncio
async def test_whole_lists_and_what_is_no_message():
    context, cleanup = await mounted()
    transcript = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    await context.set_messages(transcript)
    await context.set_messages(transcript)
    assert [m["content"] for m in await context.get_messages()] == ["a", "b"]
    with pytest.raises(PalimpsestError) as refused:
        await context.set_messages([{"role": "user", "content": "other"}])
    assert refused.value.code == "other-history"
    await context.set_messages([{"role": "user", "content": "other"}], replace=True)
    assert [m["content"] for m in await context.get_messages()] == ["other"]
    for wrong in ({}, {"role": "nobody"}, "text"):
        with pytest.raises(ValueError):
            await context.add_message(wrong)
    assert len(await context.get_messages()) == 1
    await cleanup()


@pytest.mark.asyncio
async def test_hook_messages_are_told_and_the_prompt_is_made_anew():
    context, cleanup = await mounted()
    await context.add_message({"role": "user", "content": "note", "metadata": {"source": "hook"}})
    assert context._hooks.events == [("context:include", {"source": "hook", "content": "note"})]
    prompts = iter(["first", "second"])

    async def factory():
        return next(prompts)

    await context.set_system_prompt_factory(factory)
    assert (await context.get_messages_for_request())[0] == {"role": "system", "content": "first"}
    assert (await context.get_messages_for_request())[0] == {"role": "system", "content": "second"}
    await cleanup()


@pytest.mark.asyncio
async def test_a_prompt_factory_may_use_the_context():
    context, cleanup = await mounted(contract="1.0")

    async def factory():
        await context.add_message({"role": "user", "content": "from the factory"})
        return f"{len(await context.get_messages())} before"

    await context.set_system_prompt_factory(factory)
    messages = await asyncio.wait_for(context.get_messages(), 60)
    assert [m["content"] for m in messages] == ["1 before", "from the factory"]
    await cleanup()


class Provider:
    def __init__(self, model=None, defaults=None):
        self._model, self._defaults = model, defaults

    def get_model_info(self):
        if self._model is None:
            raise RuntimeError("not known")
        return self._model

    def get_info(self):
        return {"defaults": self._defaults or {}}


@pytest.mark.asyncio
async def test_the_order_of_budgets():
    usual = {"max_tokens": 7, "reserve": 0.5}
    large = {"context_window": 100_000, "max_output_tokens": 10_000}
    small = {"context_window": 50_000, "max_output_tokens": 2_000}
    assert await budget_of(9, Provider(large), **usual) == 9
    assert await budget_of(None, Provider(large, small), **usual) == 100_000 - 5_000 - 4_096
    assert await budget_of(None, Provider(None, small), **usual) == 50_000 - 1_000 - 4_096
    assert await budget_of(None, Provider(), **usual) == 7
    assert await budget_of(None, None, **usual) == 7
    with pytest.raises(ValueError):
        await budget_of(0, None, **usual)


@pytest.mark.asyncio
async def test_refusals_say_what_to_do(monkeypatch, caplog):
    with pytest.raises(ValueError, match="contract is '3.0'"):
        await mount(Coordinator(), {"contract": "3.0"})
    with pytest.raises(ValueError, match="max_tokens is -1"):
        await mount(Coordinator(), {"max_tokens": -1})
    with pytest.raises(ValueError, match="not a name of a session"):
        await mount(Coordinator(), {"session_id": "../x"})
    with pytest.raises(PalimpsestError, match="start it, or set url") as away:
        await mount(Coordinator(), {"url": "http://127.0.0.1:9"})
    assert away.value.code == "unreachable"
    with pytest.raises(PalimpsestError) as token:
        await mount(Coordinator(), {"token": "not-the-right-one-at-all"})
    assert token.value.status == 401
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.9.1")
    with pytest.raises(RuntimeError, match="amplifier-core 1.0 or later, and this is 0.9.1"):
        await mount(Coordinator(), {})
    assert Config.read({"compaction_strategy": "magic"}).summary is True
    assert "magic" in caplog.text
    assert Config.read({"compaction_strategy": "truncate"}).summary is False


@pytest.mark.asyncio
async def test_a_limit_that_nothing_fits_into_is_refused():
    context, cleanup = await mounted()
    await context.add_message({"role": "system", "content": WORDS})
    with pytest.raises(PalimpsestError) as refused:
        await context.get_messages_for_request(token_budget=20)
    assert refused.value.code == "budget-too-small"
    assert len(await context.get_messages()) == 1
    await cleanup()
