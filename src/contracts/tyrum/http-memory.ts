import type { OpenContext } from '../../harness/http/session-entries.js';
import { defined } from '../../values/defined.js';
import { RecordMemory } from './agent-memory.js';
import { changedMemory, type MemoryWish } from './change-memory.js';
import type { AnswerBody, RequestBody } from './http-schemas.js';
import { agentUuid, type MemoryItem } from './memory-item.js';
import { recallMemory } from './recall-memory.js';

/** Returns the memory of an agent in the database. */
export async function memoryOf({ client }: Pick<OpenContext, 'client'>, agent: string): Promise<RecordMemory> {
  return new RecordMemory(await client.delivered({ others: false }), agent);
}

/** Copies items to plain JSON objects. */
const sent = (items: readonly MemoryItem[]) => items.map((item) => ({ ...item }));

/** Changes an agent's memory: writes, corrects, forgets and consolidates, all or nothing. */
export async function changeTyrumMemory(
  open: OpenContext,
  body: RequestBody<'TyrumMemory'>,
): Promise<AnswerBody<'TyrumMemoryChanged'>> {
  const { agent, put = [], forget = [], budget } = body;
  const memory = await memoryOf(open, agent);
  const at = open.client.now();
  const wish: MemoryWish = {
    put,
    forget: forget.map(({ memory_item_id: id, deleted_by: by = 'user', reason }) => ({
      id,
      by,
      ...defined({ reason }),
    })),
    budget: budget === undefined ? undefined : { items: budget.max_items, chars: budget.max_chars },
    remembering: { agent, session: open.session.session.id, at },
  };
  const change = await memory.change((held) => changedMemory(held, wish), at);
  const { items, tombstones } = await memory.read();
  return {
    status: 'ok',
    agent_id: agentUuid(agent),
    written: change.put.map(({ memory_item_id: id }) => id),
    forgotten: change.bury.map(({ item }) => item.memory_item_id),
    items: sent(items.slice(-(body.limit ?? items.length))),
    tombstones: tombstones.slice(-(body.limit ?? tombstones.length)).map((one) => ({ ...one })),
  };
}

/** Recalls from an agent's memory as a tool call. The model receives only the call's result. */
export async function recallTyrumMemory(
  open: OpenContext,
  body: RequestBody<'TyrumRecall'>,
): Promise<AnswerBody<'TyrumRecalled'>> {
  const { agent, query, call_id: id, limit, max_chars: chars, sensitive, turn } = body;
  const { items } = await (await memoryOf(open, agent)).read();
  const { tool, items: found, text } = recallMemory(items, defined({ query, limit, chars, sensitive }));
  const args = defined({ agent, query, limit });
  const { callId } = await open.session.reportToolCall(
    { name: tool, args, content: text, ...defined({ id }) },
    turn === undefined ? {} : { turnRef: turn },
  );
  return { status: 'ok', call_id: callId, tool_id: tool, text, items: sent(found) };
}
