import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { importedSessions } from '../../../src/host/imported-sessions.js';
import { ownId } from '../../../src/host/own-id.js';
import { sessionId } from '../../../src/objects/ids.js';
import { chooseSession } from '../../../src/own-sessions/choose-session.js';
import { importSession } from '../../../src/own-sessions/import-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { type AgentMachine, agentMachine, claudeSession } from '../../support/agent-machine.js';
import { openClient, testAddress } from '../../support/context.js';
import { RecordingLines, suiteDatabase } from '../../support/replays.js';
import { callReport } from '../../support/tracked-project.js';

let machine: AgentMachine;
let xtdb: XtdbClient;
let store: ObjectStore;
let native: string;
let sessions = 0;
beforeEach(async () => {
  machine = await agentMachine();
  xtdb = new XtdbClient(testAddress());
  store = new ObjectStore(xtdb);
  sessions += 1;
  native = `own-${process.pid}-${Date.now()}-${sessions}`;
});
afterEach(async () => {
  await xtdb.close();
  await machine.remove();
});

const dataDir = (): string => join(machine.home, 'data');

/** Writes a recording of the session and opens it. */
async function open(lines: RecordingLines, cut = 0) {
  const text = lines.text.replaceAll('"s-1"', JSON.stringify(native));
  const path = await machine.write('elsewhere/a.jsonl', cut === 0 ? text : text.slice(0, -cut));
  const chosen = await chooseSession(path, { sessions: [], mask: async () => undefined });
  const database = { ...suiteDatabase(), dataDir: dataDir() };
  return importSession(chosen, { database, store });
}

const steps = async (id: string) => (await store.latest()).steps(sessionId(id));
const looks = (): RecordingLines => new RecordingLines().user('look').reads('t1', '/p/a.ts', 'one\ntwo\n');

describe('a session of an agent that is opened', () => {
  test('is imported under the agent’s own id, with its title, and its contexts come from the transcript', async () => {
    const { session, outcome } = await open(claudeSession());
    expect([session, outcome]).toEqual([native, 'imported']);
    const records = await (await store.latest()).assemblies(session);
    expect(records.map(({ delivered }) => delivered)).toEqual(['replay', 'replay']);
    expect((await importedSessions(dataDir())).get(session)).toMatchObject({
      agent: 'Claude Code',
      title: 'Sort the shelf by title',
      folder: '/p',
    });
  });

  test('gets no step twice if its recording was merely rewritten', async () => {
    await open(claudeSession());
    expect((await open(claudeSession())).outcome).toBe('continued');
    expect((await steps(native)).length).toBe(4);
  });

  test('is continued when its recording has grown, even from the middle of a call or an answer', async () => {
    const whole = looks().says('read').calls('t2', 'Bash', { command: 'true' }).answers('t2', 'done').says('all done');
    const { length } = whole.lines;
    const texts = [];
    for (let count = 1; count <= length; count += 1) {
      const part = { text: `${whole.lines.slice(0, count).join('\n')}\n` } as RecordingLines;
      const { session, outcome } = await open(part);
      expect([session, outcome]).toEqual([native, count === 1 ? 'imported' : 'continued']);
      texts.push((await steps(native)).length);
    }
    const all = await steps(native);
    const [read, ran] = ['t1', 't2'].map((call) => `${call}@${native}`);
    const said = all.map(({ message, call }) => message?.text ?? call?.id);
    expect(said).toEqual(['look', '', read, 'read', '', ran, 'all done']);
    expect(texts).toEqual([...texts].sort((a, b) => a - b));
  });

  test('is continued if an earlier version wrote a call without a result after the compaction', async () => {
    const began = looks().calls('t2', 'Edit', { file_path: '/p/a.ts', old_string: 'one', new_string: 'eins' });
    await open(began);
    // The steps that an earlier version wrote next.
    const client = await openClient(machine.home, { dataDir: dataDir(), shareSessions: true });
    const old = await client.openSession({ id: native });
    await old.recordEvent({ kind: 'compacted', detail: 'We looked.' });
    const lost = callReport({ tool: 'edit', callId: `t2@${native}`, status: 'fail', content: '', answer: () => '' });
    await (await old.recordCall(lost)).applied;
    await old.reportMessage({ role: 'user', text: 'go on', opensTurn: true });
    await client.close();
    const { session, outcome } = await open(began.compacts('We looked.').user('go on').says('done'));
    expect([session, outcome]).toEqual([native, 'continued']);
    const said = (await steps(native)).map(({ message, call, event }) => event?.kind ?? call?.id ?? message?.text);
    expect(said).toEqual(['look', '', `t1@${native}`, '', 'compacted', `t2@${native}`, 'go on', 'done']);
  });

  test('becomes another session if an imported part of its recording changed', async () => {
    await open(looks().says('one way'));
    const { session, outcome } = await open(looks().says('another way').user('and now?').says('so'));
    expect([session, outcome]).toEqual([`${native}+2`, 'anew']);
    expect((await steps(native)).at(-1)?.message?.text).toBe('one way');
    expect((await steps(session)).at(-1)?.message?.text).toBe('so');
  });

  test('stays as it is if Palimpsest recorded it itself', async () => {
    await open(claudeSession());
    await machine.write('data/imported-sessions.json', '{"version":1,"sessions":{}}');
    const { session, outcome } = await open(claudeSession().user('more').says('no'));
    expect([session, outcome]).toEqual([native, 'recorded']);
    expect((await steps(native)).length).toBe(4);
  });
});

describe('our id of an agent’s session', () => {
  test.each([
    ['5f0c1a52-7a3e', '5f0c1a52-7a3e'],
    ['ses_01ab', 'ses_01ab'],
    ['main/agent-a1', 'main-agent-a1'],
    ['_x', 'x'],
  ])('of %s is %s', (given, id) => {
    expect(ownId(given)).toBe(id);
  });

  test('is a hash if the agent’s id has no allowed character or is too long', () => {
    for (const given of ['///', 'x'.repeat(300)]) expect(ownId(given)).toMatch(/^r[0-9a-f]{10}$/);
  });
});
