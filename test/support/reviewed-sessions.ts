import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallReport } from '../../src/client/session/call-report.js';
import type { ContextClientOptions } from '../../src/client/session/client-options.js';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { ContextSession } from '../../src/client/session/context-session.js';
import type { ObjectId } from '../../src/objects/ids.js';
import { mentions, openClient, wholeRead } from './context.js';
import { temporaryRoot } from './mcp-clients.js';

/**
 * Hostile recorded output: a terminal title, colours, a cleared screen, an 8-bit control and a
 * reversed word.
 */
export const HOSTILE =
  '\u001b]0;title\u0007\u001b[2J\u001b[31mred\u001b[0m \u009b5m over\rwritten \u202eesrever\u202c\n';

/** Two sessions over one folder, for later reviews. */
export interface ReviewedSessions {
  readonly root: string;
  readonly client: ContextClient;
  readonly first: ContextSession;
  readonly second: ContextSession;
  readonly file: ObjectId;
  readonly stub: ObjectId;
  readonly hostileCall: ObjectId;
  /** The context that was handed out in turn 2 of the first session. */
  readonly handedOut: string;
  close(): Promise<void>;
}

const call = (report: Partial<CallReport>): CallReport => ({
  tool: 'read',
  args: {},
  status: 'ok',
  content: '',
  answer: (id) => `answer of ${id}`,
  ...report,
});

/**
 * Creates the sessions. The first reads `a.ts` in turn 1. In turn 2 it sees the file changed, pins
 * it and finds `b.ts`. It also runs a command with hostile output. In turn 3 it deactivates `a.ts`.
 * The second session reads the changed file.
 */
export async function reviewedSessions(
  name: string,
  options: Partial<ContextClientOptions> = {},
): Promise<ReviewedSessions> {
  const { root, remove } = await temporaryRoot();
  const client = await openClient(root, options);
  const write = async (file: string, text: string, second: number): Promise<void> => {
    await writeFile(join(root, file), text);
    // Whole seconds an hour ago, so that every version has its own time for queries.
    const time = Math.floor(Date.now() / 1_000) - 3_600 + second;
    await utimes(join(root, file), time, time);
  };
  const record = async (session: ContextSession, report: Partial<CallReport>) => {
    const recorded = await session.recordCall(call(report));
    await recorded.applied;
    return recorded.callId;
  };
  const read = async (session: ContextSession, content: string) =>
    record(session, { args: { path: 'a.ts' }, content, readings: [await wholeRead(client, 'a.ts')] });

  const first = await client.openSession({ id: `${name}-first` });
  await first.setSystemPrompt('You are careful.');
  await first.reportMessage({ role: 'user', text: 'Look at a.ts' });
  await write('a.ts', 'one\nshared\n', 0);
  await read(first, 'one\nshared\n');
  await first.reportMessage({ role: 'user', text: 'Change it' });
  await write('a.ts', 'two\nshared\n', 10);
  await read(first, 'two\nshared\n');
  const { id: file } = await client.files.locate('a.ts');
  await record(first, {
    tool: 'pin',
    args: { ids: ['a.ts'] },
    content: 'pinned',
    plan: await first.planVerb('pin', [file]),
  });
  await write('b.ts', 'never read', 20);
  await record(first, { tool: 'ls', args: { path: '.' }, content: 'b.ts', mentions: await mentions(client, ['b.ts']) });
  const { id: stub } = await client.files.locate('b.ts');
  const hostileCall = await record(first, {
    tool: 'bash',
    args: { command: `printf '${HOSTILE}'` },
    content: HOSTILE,
    status: 'fail',
  });
  const { text: handedOut } = await first.assemble({ deliver: 'library' });
  await first.reportMessage({ role: 'user', text: 'Now drop it.' });
  await record(first, {
    tool: 'deactivate',
    args: { ids: ['a.ts'] },
    content: 'done',
    plan: await first.planVerb('deactivate', [file]),
  });
  await write('a.ts', 'three\nshared\n', 30);
  const second = await client.openSession({ id: `${name}-second` });
  await second.reportMessage({ role: 'user', text: 'Look as well' });
  await read(second, 'three\nshared\n');
  await Promise.all([client.closeSession(first), client.closeSession(second)]);
  return {
    root,
    client,
    first,
    second,
    file,
    stub,
    hostileCall,
    handedOut,
    close: async () => {
      await client.close();
      await rm(root, { recursive: true, force: true });
      await remove();
    },
  };
}
