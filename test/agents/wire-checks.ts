import { expect } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { loadSession } from '../../src/client/session/open-session.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { canonicalJson } from '../../src/objects/canonical-json.js';
import { hashText } from '../../src/objects/hashes.js';
import type { SessionId } from '../../src/objects/ids.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { applyStep, emptySession, type SessionState } from '../../src/session/session-state.js';
import type { ThinkingMessage, WireBlock } from '../support/prefix-check.js';
import type { CapturedCall, WireMessage } from './loop-model.js';
import { wordsOf } from './loop-project.js';

const textsOf = ({ content }: WireMessage): readonly string[] =>
  typeof content === 'string' ? [content] : (content ?? []).map(({ text }) => text ?? '');

/**
 * Checks the rules of the chat completions wire: an answer for every call, right after its message.
 * No answer without a call, and no empty text.
 */
export function checkPairs({ messages }: CapturedCall): void {
  for (const [i, message] of messages.entries()) {
    const asked = (message.tool_calls ?? []).map(({ id }) => id);
    const answers = [];
    for (let next = i + 1; messages[next]?.role === 'tool'; next++) answers.push(messages[next]?.tool_call_id);
    if (message.role === 'assistant') expect([...answers].sort()).toEqual([...asked].sort());
    if (message.role === 'tool') expect(['assistant', 'tool']).toContain(messages[i - 1]?.role);
    if (message.role === 'user') for (const text of textsOf(message)) expect(text).not.toBe('');
  }
  expect(messages[0]?.role).toBe('system');
  expect(messages[1]?.role).toBe('user');
}

/** Returns the state of a session after a step. */
async function stateAt(client: ContextClient, session: SessionId, step: number): Promise<SessionState> {
  const steps = await (await client.store.latest()).steps(session);
  return steps
    .slice(0, step)
    .map((one) => ({ ...one, session }))
    .reduce(applyStep, emptySession(session));
}

/**
 * Returns the sections of a context in a request. Each is a user message; the running turn is
 * between them. `ids` are those that the request may name by their beginnings.
 */
function sectionsOf({ messages }: CapturedCall, ids: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>([['system', textsOf(messages[0] as WireMessage).join('\n')]]);
  const section = (name: string, parts: readonly object[]): void => {
    found.set(name, canonicalJson([{ section: name, role: 'user', parts }]));
  };
  const rest = messages.slice(1);
  const pool = rest[0] === undefined ? [] : textsOf(rest[0]);
  const hasPool = pool.length === 1 && /^id=\S+ type=(?:file|toolcall) /.test(pool[0] ?? '');
  if (hasPool) section('pool', [{ text: pool[0] }]);
  const chat = rest[hasPool ? 1 : 0];
  const said = chat === undefined ? [] : textsOf(chat);
  if (hasPool && chat?.role === 'user' && said.length === 1 && /^[A-Za-z]+: /.test(said[0] ?? ''))
    section('chat', [{ text: said[0] }]);
  const last = rest.at(-1);
  const blocks = last?.role === 'user' ? textsOf(last) : [];
  if (blocks.length > 0 && blocks.every((text) => text.startsWith('ACTIVE_CONTENT id='))) {
    const wholeId = (shown = ''): string | undefined =>
      ids.find((id) => id === shown) ?? ids.find((id) => id.startsWith(shown));
    section(
      'active',
      blocks.map((text) => ({ id: wholeId(/^ACTIVE_CONTENT id=(\S+)/.exec(text)?.[1]), text })),
    );
  }
  return found;
}

/** Returns for each request whether its sections are, byte for byte, as its record says. */
export function areAsRecorded(
  client: ContextClient,
  calls: readonly CapturedCall[],
  proofs: readonly AssemblyProof[],
): Promise<readonly boolean[]> {
  return Promise.all(
    calls.map(async (call, i) => {
      const { sections, handed, session, step } = proofs[i] as AssemblyProof;
      const sent = sectionsOf(call, (await stateAt(client, session, step)).sets.index);
      const same = sections.every(
        ({ name, chars, sha256 }) => sent.get(name)?.length === chars && hashText(sent.get(name) ?? '') === sha256,
      );
      return same && sections.length === sent.size && handed !== undefined;
    }),
  );
}

/**
 * Returns outputs that only a tool call holds and that are inactive at a step. The model's input
 * must not contain them.
 */
export async function inactiveOutputs(
  client: ContextClient,
  session: SessionId,
  step: number,
): Promise<readonly string[]> {
  const snapshot = await client.store.latest();
  if ((await loadSession(snapshot, session)) === undefined) throw new Error(`there is no session ${session}`);
  const state = await stateAt(client, session, step);
  const ids = state.sets.index.filter((id) => state.isToolResult(id) && !state.isActive(id));
  const found = await snapshot.getMany(ids);
  return [...found.values()].flatMap(({ version }) => (version.content === null ? [] : [version.content]));
}

/**
 * Returns the fault for which the Anthropic wire would refuse calls and results. Every call needs a
 * result in the next message, before its other parts, and every result needs a call.
 */
export function pairFault(messages: readonly ThinkingMessage[]): string | undefined {
  const blocks = (message: ThinkingMessage | undefined): readonly WireBlock[] =>
    message === undefined || typeof message.content === 'string' ? [] : message.content;
  const ids = (message: ThinkingMessage | undefined, type: string, key: string): readonly string[] =>
    blocks(message).flatMap((block) => (block.type === type ? [String(block[key])] : []));
  for (const [i, message] of messages.entries()) {
    const asked = ids(message, 'tool_use', 'id').toSorted();
    const answered = ids(messages[i + 1], 'tool_result', 'tool_use_id').toSorted();
    if (asked.join() !== answered.join())
      return `messages.${i}: the calls ${asked.join()} are answered by ${answered.join()}`;
    const kinds = blocks(message).map(({ type }) => type === 'tool_result');
    if (kinds.lastIndexOf(true) > kinds.indexOf(false) && kinds.includes(false))
      return `messages.${i}: results do not stand first`;
    if (blocks(message).some((block) => block.type === 'text' && String(block.text).trim() === ''))
      return `messages.${i}: an empty text`;
  }
  return blocks(messages[0]).some(({ type }) => type === 'tool_result')
    ? 'messages.0: a result without its call'
    : undefined;
}

/**
 * Checks a session in which the second of two requests was undone and replaced by another one. The
 * undone part stays in the session, and the harness continues in a branch of it.
 */
export async function checkUndone(
  client: ContextClient,
  session: string,
  calls: readonly CapturedCall[],
): Promise<void> {
  const last = calls.filter((call) => call.main).at(-1)?.raw ?? '';
  expect(last).toContain('This is the first.');
  expect(last).not.toContain('This is the second.');
  const kept = ['request one', 'This is the first.'];
  expect(await wordsOf(client, session)).toEqual([...kept, 'request two', 'This is the second.']);
  const branch = `${session}.2`;
  expect(await wordsOf(client, branch)).toEqual([...kept, 'request two, otherwise', 'This is another second.']);
  for (const id of [session, branch])
    expect((await verifySession(await client.delivered(), id)).contexts.unequal).toEqual([]);
}
