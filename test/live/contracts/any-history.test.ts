import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { exportBundle } from '../../../src/contracts/agent-context/export-bundle.js';
import { AmplifierContext } from '../../../src/contracts/amplifier/amplifier-context.js';
import { CortexfsError } from '../../../src/contracts/cortexfs/errors.js';
import { exportSession, packInto } from '../../../src/contracts/cortexfs/export-session.js';
import { ProjectionError } from '../../../src/contracts/projection/errors.js';
import { SessionMoment } from '../../../src/contracts/projection/session-moment.js';
import { compactConversation, compactionRecords } from '../../../src/contracts/tyrum/compact-conversation.js';
import { conversationAt } from '../../../src/contracts/tyrum/conversation.js';
import { HarnessSession } from '../../../src/harness/harness-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { ContextRecord, RecordBody } from '../../../src/objects/context-record.js';
import { chatObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from '../../../src/objects/ids.js';
import { type Happening, happenings } from '../../support/any-session.js';
import { openClient } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { historyOf } from '../../support/object-history.js';

let client: ContextClient;
let root = '';
let remove = async (): Promise<void> => undefined;

beforeAll(async () => {
  const folder = await temporaryRoot();
  client = await openClient(folder.root);
  root = await mkdtemp(join(tmpdir(), 'palimpsest-any-'));
  remove = async () => {
    await client.close();
    await folder.remove();
    await rm(root, { recursive: true, force: true });
  };
});
afterAll(() => remove());

/** Records the events of a session. Pending calls and approvals are records of it. */
async function record(session: ContextSession, all: readonly Happening[]): Promise<void> {
  const keep = <Kind extends 'call' | 'approval'>(kind: Kind, body: RecordBody<Kind>): Promise<void> => {
    const { seq, turn } = session.state;
    return session.keepRecords([
      { kind, owner: { session: session.id }, turn, seq, at: client.now(), basis: null, body } as ContextRecord,
    ]);
  };
  const call = (args: object, content: string | null) =>
    session.recordCall({
      tool: 'bash',
      args: args as Readonly<Record<string, never>>,
      status: 'ok',
      content: content ?? '',
      answer: () => '',
    });
  for (const [i, one] of all.entries()) {
    if (one.kind === 'calls') {
      await session.reportMessage({ role: 'assistant', text: one.text });
      for (const [n, { output, args, when }] of one.calls.entries()) {
        if (when === 'never')
          await keep('call', {
            native: `waits_${i}_${n}`,
            tool: 'bash',
            args: args as RecordBody<'call'>['args'],
            by: session.state.seq,
          });
        else await call(args as object, output);
      }
    } else if (one.kind === 'call') await call({}, one.output);
    else if (one.kind === 'approval')
      await keep('approval', { approval: `ask ${i}`, state: one.state, text: one.text });
    else if (one.kind === 'reminder')
      await session.reportMessage({
        role: 'user',
        text: `<system-reminder>\n${one.text.replaceAll('<', '')}\n</system-reminder>`,
      });
    else await session.reportMessage({ role: one.kind === 'said' ? 'assistant' : one.kind, text: one.text });
  }
}

/** Every version of the session's own objects and of its calls. */
async function objectsOf(session: SessionId) {
  const snapshot = await (await client.delivered()).latest();
  const calls = (await snapshot.steps(session)).flatMap(({ call }) => call?.id ?? []);
  const ids = [sessionObjectId(session), chatObjectId(session), systemPromptObjectId(session), ...calls];
  return Promise.all(ids.map((id) => historyOf(snapshot, id)));
}

/** Ignores refusals for an impossible limit. */
async function within(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const isTooSmall =
      (error instanceof ProjectionError || error instanceof CortexfsError) && error.code === 'budget-too-small';
    if (!isTooSmall) throw error;
  }
}

test('no surface changes an object or the context of the session, for any history and budget', async () => {
  await fc.assert(
    fc.asyncProperty(happenings, fc.integer({ min: 1, max: 4_000 }), async (all, budget) => {
      const session = await client.openSession({ id: `any-${randomUUID()}` });
      await session.setSystemPrompt('You are careful.');
      await record(session, [{ kind: 'user', text: 'Begin' }, ...all]);
      const { id } = session;
      const [before, { text: context }] = [await objectsOf(id), await session.assemble()];
      const timeline = await Timeline.open(await client.delivered(), client.files);
      const folder = join(root, id);
      await exportSession(timeline, join(folder, 'cortexfs'), { session: id });
      await within(() => packInto(timeline, join(folder, 'cortexfs'), { session: id, budget }));
      await exportBundle({ timeline, session: id, when: {} }, join(folder, 'agent-context'));
      await within(() =>
        new AmplifierContext(client, new HarnessSession(client, session, { delivered: 'library' })).view({ budget }),
      );
      await within(async () => {
        const conversation = await conversationAt(await SessionMoment.read(timeline, id));
        const [wish, at] = [{ tokens: budget, reason: 'overflow' } as const, client.now()];
        const compacted = await compactConversation(conversation, wish, { at });
        await session.keepRecords(compactionRecords(conversation.projection, compacted, { wish, at }));
      });
      expect(await objectsOf(id)).toEqual(before);
      expect((await session.assemble()).text).toBe(context);
      await client.closeSession(session);
    }),
    { numRuns: effort(3, 60) },
  );
});
