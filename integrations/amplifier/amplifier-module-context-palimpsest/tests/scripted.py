"""A program of one kernel session: an orchestrator, a provider that follows a script, and a tool. test_kernel_session.py runs it, each time in a new process."""

import asyncio
import json
import sys

from amplifier_core import AmplifierSession, ToolResult
from amplifier_core.loader import ModuleLoader
from amplifier_core.models import ProviderInfo

# Its answers take some hundred tokens, so that ten turns do not fit into the limit below.
RESULT_WORDS = 260
CONTEXT = {"max_tokens": 50_000, "target_usage": 0.5, "protected_tool_results": 2, "protected_recent": 0.0}
WINDOW = {"context_window": 6_600, "max_output_tokens": 1_000}


class ScriptedProvider:
    """Asks for one tool call in each turn, then answers."""

    name = "scripted"

    def get_info(self):
        return ProviderInfo(id="scripted", display_name="Scripted", defaults=WINDOW)

    def complete(self, messages, turn):
        if messages[-1]["role"] == "tool" or (len(messages) > 1 and messages[-2]["role"] == "tool"):
            return {"role": "assistant", "content": f"answer {turn}"}
        arguments = json.dumps({"path": f"src/file{turn}.py"})
        call = {"id": f"call_{turn}", "type": "function", "function": {"name": "look", "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


class LookTool:
    name = "look"
    description = "Looks at a file"
    input_schema = {"type": "object", "properties": {"path": {"type": "string"}}}

    async def execute(self, input):
        return ToolResult(success=True, output=" ".join(f"{input['path']}:{n}" for n in range(RESULT_WORDS // 4)))


class Loop:
    """Runs a whole turn: the prompt, the model, its calls, the model again."""

    def __init__(self):
        self.requests = []

    async def execute(self, prompt, context, providers, tools, hooks, **kwargs):
        provider = providers["scripted"]
        turn = int(prompt.rsplit(" ", 1)[1])
        await context.add_message({"role": "user", "content": prompt})
        while True:
            request = await context.get_messages_for_request(provider=provider)
            self.requests.append(request)
            answer = provider.complete([m for m in request if not (m.get("metadata") or {}).get("ephemeral")], turn)
            await context.add_message(answer)
            if not answer.get("tool_calls"):
                return answer["content"]
            for call in answer["tool_calls"]:
                result = await tools[call["function"]["name"]].execute(json.loads(call["function"]["arguments"]))
                await context.add_message({"role": "tool", "tool_call_id": call["id"], "name": "look", "content": str(result.output)})


def module(mount_point, value, name):
    async def mount(coordinator, config=None):
        await coordinator.mount(mount_point, value, name=name)

    return mount


class Loader(ModuleLoader):
    """The kernel's loader. A module that the program itself brings needs no package."""

    own = {}

    async def load(self, module_id, config=None, source_hint=None, coordinator=None):
        if module_id not in self.own:
            return await super().load(module_id, config, source_hint, coordinator)
        mount = self.own[module_id]

        async def mounted(coordinator):
            return await mount(coordinator, config)

        return mounted


async def run(session_id, first, last, resumed):
    loop = Loop()
    events = []
    loader = Loader()
    loader.own = {
        "loop-scripted": module("orchestrator", loop, None),
        "provider-scripted": module("providers", ScriptedProvider(), "scripted"),
        "tool-look": module("tools", LookTool(), "look"),
    }
    plan = {
        "session": {"orchestrator": "loop-scripted", "context": {"module": "context-palimpsest", "config": CONTEXT}},
        "providers": [{"module": "provider-scripted"}],
        "tools": [{"module": "tool-look"}],
    }
    session = AmplifierSession(plan, session_id=session_id, is_resumed=resumed)
    session.coordinator.loader = loader

    async def heard(event, data):
        from amplifier_core import HookResult

        events.append([event, {key: value for key, value in data.items() if key != "content"}])
        return HookResult(action="continue")

    await session.initialize()
    names = ["context:pre_compact", "context:post_compact", "context:compaction", "context:include"]
    for name in names:
        session.coordinator.hooks.register(name, heard, name=f"heard {name}")
    told = await session.coordinator.collect_contributions("observability.events")
    context = session.coordinator.get("context")
    if not resumed:
        await context.add_message({"role": "system", "content": "You answer briefly."})
    answers = [await session.execute(f"question {turn}") for turn in range(first, last)]
    every = await context.get_messages()
    await session.cleanup()
    return {"answers": answers, "events": events, "told": told, "requests": loop.requests, "messages": every}


if __name__ == "__main__":
    name, first, last, resumed = sys.argv[1:5]
    print(json.dumps(asyncio.run(run(name, int(first), int(last), resumed == "resumed"))))
