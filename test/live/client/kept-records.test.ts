import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { AmplifierContext } from '../../../src/contracts/amplifier/amplifier-context.js';
import { HarnessSession } from '../../../src/harness/harness-session.js';
import { type ContextRecord, RECORD_KINDS } from '../../../src/objects/context-record.js';
import { hashText } from '../../../src/objects/hashes.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { openClient } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

let clients: readonly [ContextClient, ContextClient];
let remove: () => Promise<void>;

beforeAll(async () => {
  const folder = await temporaryRoot();
  remove = folder.remove;
  // Without a data folder the database alone knows the owner of a session.
  clients = [await openClient(folder.root), await openClient(folder.root)];
});

afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await remove();
});

const note = (session: SessionId, text: string): ContextRecord => ({
  kind: 'note',
  owner: { session },
  turn: 1,
  seq: 1,
  at: Date.now(),
  basis: null,
  body: { name: text, note: 'fact', text },
});

async function recorded(session: SessionId): Promise<readonly string[]> {
  const snapshot = await (await clients[1].delivered()).latest();
  const records = await snapshot.records(session, { kinds: RECORD_KINDS });
  return records.map(({ kind, body }) => ('type' in body ? `${kind} ${String(body.type)}` : kind));
}

describe('records of a session that another writer has continued', () => {
  test('are refused as a whole; those of the other writer are stored', async () => {
    const [mine, theirs] = clients;
    const session = await mine.openSession();
    await session.reportMessage({ role: 'user', text: 'mine' });
    await session.keepRecords([note(session.id, 'before')]);
    const text = 'long '.repeat(1_000);
    const taken = await theirs.openSession({ id: session.id, takeOver: true });
    await expect(session.keepRecords([note(session.id, 'after')], [text])).rejects.toMatchObject({
      code: 'taken-over',
    });
    expect(await recorded(session.id)).toEqual(['note']);
    expect((await (await (await theirs.delivered()).latest()).texts([hashText(text)])).size).toBe(0);
    await taken.reportMessage({ role: 'user', text: 'theirs' });
    await taken.keepRecords([note(session.id, 'theirs')]);
    expect(await recorded(session.id)).toEqual(['note', 'note']);
  });

  test('include no Amplifier view and no cleared list', async () => {
    const [mine, theirs] = clients;
    const session = await mine.openSession();
    const context = new AmplifierContext(mine, new HarnessSession(mine, session, { delivered: 'library' }));
    const messages = Array.from({ length: 12 }, (_, n) => [
      { id: `q${n}`, message: { role: 'user' as const, content: `question ${n} ${'why '.repeat(100)}` } },
      { id: `a${n}`, message: { role: 'assistant' as const, content: `answer ${n} ${'so '.repeat(100)}` } },
    ]).flat();
    await context.add(messages);
    const before = await recorded(session.id);
    const taken = await theirs.openSession({ id: session.id, takeOver: true });
    await expect(context.view({ budget: 900 })).rejects.toMatchObject({ code: 'taken-over' });
    await expect(context.clear()).rejects.toMatchObject({ code: 'taken-over' });
    expect(await recorded(session.id)).toEqual(before);
    const other = new AmplifierContext(theirs, new HarnessSession(theirs, taken, { delivered: 'library' }));
    expect(await other.messages()).toHaveLength(messages.length);
  });
});
