import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CallReport } from '../../../src/client/session/call-report.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import {
  chatObjectId,
  filesystemId,
  type ObjectId,
  sessionObjectId,
  systemPromptObjectId,
} from '../../../src/objects/ids.js';
import { restoreVersion } from '../../../src/objects/seal.js';
import { applyStep, emptySession, type SessionState } from '../../../src/session/session-state.js';
import { stepId } from '../../../src/store/step-part.js';
import type { StoreSnapshot } from '../../../src/store/store-snapshot.js';
import type { Basis } from '../../../src/xtdb/db-snapshot.js';
import { openClient, wholeRead } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';
import { windowOf } from '../../support/result-window.js';

const call = (report: Partial<CallReport> = {}): CallReport => ({
  tool: 'bash',
  args: {},
  status: 'ok',
  content: 'output',
  answer: (id) => `answer of ${id}`,
  ...report,
});

/** Records calls and waits until the database has them. */
async function calls(
  session: ContextSession,
  count: number,
  report: Partial<CallReport> = {},
): Promise<readonly ObjectId[]> {
  const ids: ObjectId[] = [];
  for (let i = 0; i < count; i++) {
    const recorded = await session.recordCall(call(report));
    await recorded.applied;
    ids.push(recorded.callId);
  }
  return ids;
}

const say = (session: ContextSession, role: 'user' | 'assistant', text: string) =>
  session.reportMessage({ role, text });

/** The content of a session, without its name. */
const contents = (state: SessionState) => ({
  turns: state.turns,
  sets: state.sets,
  window: windowOf(state),
  seq: state.seq,
  turn: state.turn,
});

/** The session at a step, folded again from the database. */
async function foldedTo(snapshot: StoreSnapshot, session: ContextSession, seq: number): Promise<SessionState> {
  const steps = await snapshot.steps(session.id);
  return steps.slice(0, seq).reduce(applyStep, emptySession(session.id));
}

/**
 * Checks that every stored version of chat and session equals the steps up to it, with its hashes.
 */
async function expectTrueHistory(client: ContextClient, session: ContextSession): Promise<void> {
  const snapshot = await client.store.now();
  for (const id of [chatObjectId(session.id), sessionObjectId(session.id)]) {
    const history = await historyOf(snapshot, id);
    expect(history.length).toBeGreaterThan(0);
    for (const { version, marks } of history) {
      const state = await foldedTo(snapshot, session, marks.upto ?? -1);
      if (version?.type === 'chat') expect(version.turns).toEqual(state.turns);
      else
        expect(version).toMatchObject({
          session_index: state.sets.index,
          active_set: state.sets.active,
          pinned_set: state.sets.pinned,
        });
    }
    const now = await snapshot.get(id);
    expect(restoreVersion(now?.version as never)).toEqual(now?.version);
  }
  const { sets, seq } = await snapshot.sets(session.id);
  expect({ sets, seq }).toEqual({ sets: session.state.sets, seq: session.state.seq });
}

describe('a fork of a session [decision F2]', () => {
  let root: string;
  let client: ContextClient;
  let parent: ContextSession;
  const filesystem = filesystemId(`fs-${randomUUID()}`);

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-fork-')));
    client = await openClient(root, { filesystemId: filesystem });
    parent = await client.openSession();
  });

  afterEach(async () => {
    await client.close();
    await rm(root, { recursive: true, force: true });
  });

  const readFileWhole = async (session: ContextSession, name: string, content: string): Promise<ObjectId> => {
    await writeFile(join(root, name), content);
    const readings = [await wholeRead(client, name)];
    const { applied } = await session.recordCall(call({ tool: 'read', args: { path: name }, content, readings }));
    const [id] = [...(await applied).outcomes.keys()];
    return id as ObjectId;
  };

  test('at the end has chat, sets and prompt of its parent under its own ids, and names its origin', async () => {
    await parent.setSystemPrompt('You are careful.');
    await say(parent, 'user', 'read it');
    const file = await readFileWhole(parent, 'a.ts', 'const x = 1;');
    const pin = await parent.planVerb('pin', [file]);
    await parent.recordCall(call({ tool: 'pin', plan: pin }));
    const before = contents(parent.state);
    const fork = await client.forkSession(parent.id);
    expect(fork.id).not.toBe(parent.id);
    expect(contents(fork.state)).toEqual(before);
    expect(fork.state.isPinned(file)).toBe(true);
    const snapshot = await client.store.now();
    const { version, marks } = (await snapshot.get(sessionObjectId(fork.id))) ?? {};
    expect(marks?.parent).toEqual({ session: parent.id, seq: 3 });
    expect(version).toMatchObject({
      session_id: fork.id,
      chat_ref: chatObjectId(fork.id),
      session_index: before.sets.index,
    });
    expect(Object.keys(version ?? {})).not.toContain('parent');
    expect((await snapshot.get(chatObjectId(fork.id)))?.version).toMatchObject({
      session_ref: sessionObjectId(fork.id),
      turn_count: 1,
    });
    expect((await snapshot.get(systemPromptObjectId(fork.id)))?.version.content).toBe('You are careful.');
    const [ours, theirs] = [await fork.assemble(), await parent.assemble()];
    expect(ours.text).toBe(theirs.text);
    await expectTrueHistory(client, fork);
  });

  test('writes three heads and no step', async () => {
    await say(parent, 'user', 'work');
    await calls(parent, 30);
    const fork = await client.forkSession(parent.id);
    const steps = await (await client.store.now()).steps(fork.id);
    expect(steps.map(({ session, seq }) => [session, seq])).toEqual(
      Array.from({ length: 31 }, (_, i) => [fork.id, i + 1]),
    );
    const written = await (await client.store.now()).times(
      [1, 31].flatMap((seq) => [stepId(parent.id, seq), stepId(fork.id, seq)]),
    );
    expect([...written.keys()]).toEqual([1, 31].map((seq) => stepId(parent.id, seq)));
    const history = await historyOf(await client.store.now(), sessionObjectId(parent.id));
    expect(history.every(({ marks }) => marks.epoch === 1)).toBe(true);
  });

  test('is independent of its parent: neither sees the other’s steps', async () => {
    await say(parent, 'user', 'start');
    const shared = await readFileWhole(parent, 'shared.ts', 'shared');
    const fork = await client.forkSession(parent.id);
    const mine = await readFileWhole(fork, 'mine.ts', 'mine');
    const off = await fork.planVerb('deactivate', [shared]);
    await fork.recordCall(call({ tool: 'deactivate', plan: off }));
    await say(parent, 'user', 'and now something else');
    const theirs = await readFileWhole(parent, 'theirs.ts', 'theirs');
    expect([fork.state.has(mine), fork.state.has(theirs), fork.state.isActive(shared)]).toEqual([true, false, false]);
    expect([parent.state.has(mine), parent.state.has(theirs), parent.state.isActive(shared)]).toEqual([
      false,
      true,
      true,
    ]);
    expect(fork.resolve('theirs.ts').kind).toBe('unknown');
    expect([fork.state.turn, parent.state.turn]).toEqual([1, 2]);
    await expectTrueHistory(client, fork);
    await expectTrueHistory(client, parent);
    await say(fork, 'user', 'a turn of its own');
    await expectTrueHistory(client, fork);
  });

  test('has the prompt that was set before the next step, even within one millisecond', async () => {
    const at = Date.now();
    const frozen = await openClient(root, { filesystemId: filesystem, clock: () => at });
    try {
      const session = await frozen.openSession();
      await say(session, 'user', 'one');
      await session.setSystemPrompt('first');
      await say(session, 'user', 'two');
      await session.setSystemPrompt('second');
      await say(session, 'user', 'three');
      for (const [upto, prompt] of [
        [0, null],
        [1, 'first'],
        [2, 'second'],
        [3, 'second'],
      ] as const) {
        const fork = await frozen.forkSession(session.id, { at: upto });
        const stored = await (await frozen.store.latest()).get(systemPromptObjectId(fork.id));
        expect([upto, stored?.version.content]).toEqual([upto, prompt]);
      }
    } finally {
      await frozen.close();
    }
  });

  test('of a fork has the prompt of the ancestor with the first unshared step', async () => {
    const first = await client.openSession();
    await say(first, 'user', 'one');
    await first.setSystemPrompt('first');
    await say(first, 'user', 'two');
    await first.setSystemPrompt('second');
    await say(first, 'user', 'three');
    const second = await client.forkSession(first.id);
    await second.setSystemPrompt('third');
    await say(second, 'user', 'four');
    for (const [upto, prompt] of [
      [0, null],
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
      [4, 'third'],
    ] as const) {
      const third = await client.forkSession(second.id, { at: upto });
      const stored = await (await client.store.latest()).get(systemPromptObjectId(third.id));
      expect([upto, stored?.version.content]).toEqual([upto, prompt]);
      const context = await third.assemble();
      expect(context.text.includes('second')).toBe(prompt === 'second');
    }
  });

  test('in the middle of a turn begins there and omits later steps and prompts', async () => {
    await parent.setSystemPrompt('first');
    await say(parent, 'user', 'one');
    await calls(parent, 3);
    const then = contents(parent.state);
    await calls(parent, 2);
    await parent.setSystemPrompt('second');
    await say(parent, 'user', 'two');
    const fork = await client.forkSession(parent.id, { at: 4 });
    expect(contents(fork.state)).toEqual(then);
    expect((await fork.assemble()).text.startsWith('first\n')).toBe(true);
    const [next] = await calls(fork, 1);
    expect(next).toBe(`${fork.id}:5`);
    expect(fork.state.turns).toHaveLength(1);
    await expectTrueHistory(client, fork);
    const late = await client.forkSession(parent.id, { at: 6 });
    expect((await late.assemble()).text.startsWith('second\n')).toBe(true);
    const empty = await client.forkSession(parent.id, { at: 0 });
    expect(contents(empty.state)).toEqual(contents(emptySession(empty.id)));
    await calls(empty, 2);
    await expectTrueHistory(client, empty);
  });

  test('of a fork shares the steps of both, also from before the first fork’s start', async () => {
    await say(parent, 'user', 'root');
    await calls(parent, 4);
    const middle = await client.forkSession(parent.id, { at: 3 });
    await calls(middle, 4);
    await calls(parent, 4);
    const leaf = await client.forkSession(middle.id, { at: 6 });
    expect(leaf.state.turns[0]?.messages[1]?.toolcall_refs).toEqual([
      `${parent.id}:2`,
      `${parent.id}:3`,
      `${middle.id}:4`,
      `${middle.id}:5`,
      `${middle.id}:6`,
    ]);
    const early = await client.forkSession(middle.id, { at: 2 });
    expect(early.state.turns[0]?.messages[1]?.toolcall_refs).toEqual([`${parent.id}:2`]);
    for (const session of [leaf, early, middle, parent]) await calls(session, 2);
    for (const session of [leaf, early, middle, parent]) await expectTrueHistory(client, session);
    const snapshot = await client.store.now();
    expect((await snapshot.step(leaf.id, 2))?.session).toBe(leaf.id);
    expect((await snapshot.step(leaf.id, 5))?.call?.id).toBe(`${middle.id}:5`);
    expect((await snapshot.step(leaf.id, 7))?.call?.id).toBe(`${leaf.id}:7`);
    expect(await snapshot.step(leaf.id, 9)).toBeUndefined();
    expect((await snapshot.get(sessionObjectId(early.id)))?.marks.parent).toEqual({ session: middle.id, seq: 2 });
  });

  test('counts its parent’s tool results as its own: the window closes on them [§4.3, decision B2]', async () => {
    await say(parent, 'user', 'work');
    const theirs = await calls(parent, 5);
    const fork = await client.forkSession(parent.id);
    expect(fork.state.sets.active).toEqual(theirs);
    const [mine] = await calls(fork, 1);
    expect(fork.state.sets.active).toEqual([...theirs.slice(1), mine]);
    expect(parent.state.sets.active).toEqual(theirs);
    for (const turn of ['two', 'three', 'four']) await say(fork, 'user', turn);
    expect(fork.state.sets.active).toEqual([]);
  });

  test('marks an id that its parent used, even if the parent repeats it later [decision B2]', async () => {
    const id = `call-${randomUUID()}`;
    await calls(parent, 1, { callId: id });
    const fork = await client.forkSession(parent.id);
    expect(await calls(parent, 1, { callId: id })).toEqual([`${id}~2`]);
    const later = `call-${randomUUID()}`;
    await calls(parent, 1, { callId: later });
    expect(await calls(fork, 2, { callId: id })).toEqual([`${id}@${fork.id}`, `${id}@${fork.id}~2`]);
    expect(await calls(fork, 2, { callId: later })).toEqual([`${later}@${fork.id}`, `${later}@${fork.id}~2`]);
    await expectTrueHistory(client, fork);
  });

  test('across snapshots stores only the index entries after its parent’s snapshots [decision G3]', async () => {
    await say(parent, 'user', 'long');
    await calls(parent, 119);
    const fork = await client.forkSession(parent.id, { at: 110 });
    await calls(parent, 90);
    await calls(fork, 95);
    const snapshot = await client.store.now();
    expect((await snapshot.sets(fork.id)).indexedAtSnapshot).toBe(199);
    expect((await snapshot.sets(parent.id)).indexedAtSnapshot).toBe(199);
    const index = (await snapshot.sets(fork.id)).sets.index;
    expect(index.slice(98, 111)).toEqual([
      ...Array.from({ length: 11 }, (_, i) => `${parent.id}:${i + 100}`),
      `${fork.id}:111`,
      `${fork.id}:112`,
    ]);
    await expectTrueHistory(client, fork);
    await expectTrueHistory(client, parent);
    const leaf = await client.forkSession(fork.id, { at: 150 });
    await calls(leaf, 60);
    expect((await (await client.store.now()).sets(leaf.id)).indexedAtSnapshot).toBe(199);
    await expectTrueHistory(client, leaf);
  });

  test('resumes unchanged in another client, with its context rebuilt as of any moment [decision E7]', async () => {
    await parent.setSystemPrompt('prompt');
    await say(parent, 'user', 'x'.repeat(5_000));
    await readFileWhole(parent, 'b.ts', 'b'.repeat(4_000));
    const fork = await client.forkSession(parent.id);
    const first = await fork.assemble();
    await say(fork, 'user', 'go on');
    await readFileWhole(fork, 'b.ts', 'changed');
    const state = contents(fork.state);
    const { text } = await fork.assemble();
    await client.closeSession(fork);
    const other = await openClient(root, { filesystemId: filesystem });
    try {
      const again = await other.openSession({ id: fork.id });
      expect(contents(again.state)).toEqual(state);
      expect((await again.assemble()).text).toBe(text);
      const { validTime, txId } = first.record.basis as Basis;
      expect((await other.contextAsOf(fork.id, { validTime, txId: txId as number }))?.text).toBe(first.text);
      await say(again, 'user', 'more');
      await expectTrueHistory(other, again);
      const head = (await (await other.store.now()).get(chatObjectId(fork.id)))?.marks;
      expect(head?.parent).toEqual({ session: parent.id, seq: 2 });
    } finally {
      await other.close();
    }
  });

  test('at the end of a turn has the parent’s state there, and cannot begin at an unfinished turn’s end', async () => {
    await say(parent, 'user', 'one');
    await calls(parent, 2);
    const then = contents(parent.state);
    await say(parent, 'user', 'two');
    await calls(parent, 1);
    const fork = await client.forkSession(parent.id, { at: 'turn:1' });
    expect(contents(fork.state)).toEqual(then);
    expect(contents((await client.forkSession(parent.id, { at: 'turn:1.1' })).state).seq).toBe(1);
    expect(
      contents((await client.forkSession(parent.id, { at: new Date(parent.state.lastAt + 1).toISOString() })).state),
    ).toEqual(contents(parent.state));
    await expect(client.forkSession(parent.id, { at: 'turn:2' })).rejects.toMatchObject({
      code: 'turn-running',
      message: expect.stringMatching(
        /open in this process; name a step of it \(step:5\), or a turn before it \(turn:1\)/,
      ),
    });
    await client.closeSession(parent);
    expect(contents((await client.forkSession(parent.id, { at: 'turn:2' })).state).seq).toBe(5);
    await expect(client.forkSession(parent.id, { at: 'turn:3' })).rejects.toMatchObject({ code: 'beyond-end' });
    await expect(client.forkSession(parent.id, { at: 'yesterday' })).rejects.toMatchObject({
      code: 'malformed-moment',
    });
    await expect(client.forkSession(parent.id, { at: '2001-01-01' })).rejects.toMatchObject({ code: 'not-yet' });
    await expect(client.forkSession(`none-${randomUUID()}`, { at: 'turn:1' })).rejects.toMatchObject({
      code: 'unknown-session',
    });
  });

  test('is refused for a missing parent, a missing step, or a taken id', async () => {
    await say(parent, 'user', 'hello');
    await expect(client.forkSession(`none-${randomUUID()}`)).rejects.toMatchObject({ code: 'unknown-session' });
    for (const at of [2, -1, 0.5])
      await expect(client.forkSession(parent.id, { at })).rejects.toMatchObject({ code: 'sequence-gap' });
    await expect(client.forkSession(parent.id, { id: parent.id })).rejects.toMatchObject({ code: 'session-exists' });
    const other = await client.openSession();
    await client.closeSession(other);
    await expect(client.forkSession(parent.id, { id: other.id })).rejects.toMatchObject({ code: 'session-exists' });
    const named = await client.forkSession(parent.id, { id: `fork-${randomUUID()}` });
    expect(named.state.seq).toBe(1);
  });

  test('appears in the list of sessions with turns, steps, parent and last activity, in one query', async () => {
    await say(parent, 'user', 'one');
    await calls(parent, 2);
    await say(parent, 'user', 'two');
    const fork = await client.forkSession(parent.id, { at: 2 });
    const lastAt = fork.state.lastAt;
    await client.closeSession(fork);
    await calls(parent, 1);
    const listed = await client.listSessions();
    const find = (id: string) => listed.find((summary) => summary.id === id);
    expect(find(parent.id)).toEqual({
      id: parent.id,
      turns: 2,
      steps: 5,
      lastActivity: new Date(parent.state.lastAt),
      openHere: true,
    });
    expect(find(fork.id)).toMatchObject({
      turns: 1,
      steps: 2,
      parent: { session: parent.id, seq: 2 },
      openHere: false,
    });
    expect(find(fork.id)?.lastActivity.getTime()).toBeGreaterThan(lastAt);
    const times = listed.map(({ lastActivity }) => lastActivity.getTime());
    expect(times).toEqual([...times].sort((a, b) => b - a));
  });
});
