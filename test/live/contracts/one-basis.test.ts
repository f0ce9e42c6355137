import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { bundleAt } from '../../../src/contracts/agent-context/export-bundle.js';
import { AmplifierContext } from '../../../src/contracts/amplifier/amplifier-context.js';
import { messagesView } from '../../../src/contracts/amplifier/amplifier-view.js';
import { listedEntries } from '../../../src/contracts/amplifier/message-list.js';
import { exportSession } from '../../../src/contracts/cortexfs/export-session.js';
import { messageLines } from '../../../src/contracts/cortexfs/message-lines.js';
import type { Entry } from '../../../src/contracts/projection/entry.js';
import { HOUSE_COUNTER, readProjection } from '../../../src/contracts/projection/read-projection.js';
import { NO_VIEW } from '../../../src/contracts/projection/shrink-view.js';
import { TyrumReports } from '../../../src/contracts/tyrum/read-reports.js';
import { sentEntries } from '../../../src/contracts/tyrum/visible-prompt.js';
import { HarnessSession } from '../../../src/harness/harness-session.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { chatObjectId, sessionId, sessionObjectId } from '../../../src/objects/ids.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { historyOf } from '../../support/object-history.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

const name = `surfaces-${randomUUID()}`;
const session = sessionId(`${name}-first`);
let sessions: ReviewedSessions;
let root = '';

beforeAll(async () => {
  sessions = await reviewedSessions(name);
  root = await mkdtemp(join(tmpdir(), 'palimpsest-surfaces-'));
  const owned = { owner: { session }, basis: null, kind: 'approval', turn: 2, seq: 7 } as const;
  const store = await sessions.client.delivered();
  await store.putRecords([
    { ...owned, at: Date.now(), body: { approval: 'ap', state: 'pending', text: 'rm b.ts', tool: 'bash' } },
  ]);
});

afterAll(async () => {
  await rm(root, { recursive: true, force: true });
  await sessions?.close();
});

const spoken = (entries: readonly Entry[]): readonly Entry[] => entries.filter(({ kind }) => kind !== 'approval');
const objects = async () => {
  const snapshot = await (await sessions.client.delivered()).latest();
  const ids = [sessionObjectId(session), chatObjectId(session), sessions.file, sessions.hostileCall];
  return Promise.all(ids.map((id) => historyOf(snapshot, id)));
};

test.each(['turn:2', undefined])('shows one session at one basis through four contracts: %s', async (moment) => {
  const before = await objects();
  const timeline = await Timeline.open(await sessions.client.delivered(), sessions.client.files);
  const when = askedMoment({ at: moment });
  const projection = await readProjection(timeline, session, { when });
  const { entries, digest, turn, seq, counter } = projection;
  const said = spoken(entries);
  const identity = said.map(({ id, sha256 }) => [id, sha256]);

  // CortexFS: a line for each message, call and result, none for the prompt.
  const folder = join(root, moment === undefined ? 'now' : 'then');
  const exported = await exportSession(timeline, folder, { session, when });
  expect([exported.projection.digest, exported.projection.seq]).toEqual([digest, seq]);
  const lines = messageLines(entries);
  expect((await readFile(join(folder, 'messages.jsonl'), 'utf8')).split('\n').slice(0, -1)).toEqual(
    lines.map(({ text }) => text),
  );
  const isShown = (entry: Entry): boolean => !(entry.kind === 'system' && entry.isPrompt);
  expect(new Set(lines.map(({ entry }) => entry))).toEqual(new Set(said.filter(isShown).map(({ id }) => id)));
  expect(exported.projection.counter.name).toBe(counter.name);

  // Agent Context: an item for each entry, by its id, with its hash and tokens.
  const bundle = await bundleAt(timeline, session, { when });
  expect(bundle.envelope.metadata).toMatchObject({
    digest: `sha256:${digest}`,
    turn,
    step: seq,
    counter: counter.name,
    entries: entries.length,
  });
  const items = new Map(bundle.items.map((item) => [item.item_id, item.metadata]));
  expect(said.map(({ id }) => [id, (items.get(id) as { readonly sha256?: string } | undefined)?.sha256])).toEqual(
    identity,
  );

  // Amplifier: a message for each entry, whose text has its hash.
  const kept = { bySeq: new Map(), prompts: [], from: 0 };
  const wish = { budget: 1_000_000 };
  const { view, messages } = messagesView(listedEntries(projection, kept), {
    kept,
    wish,
    counter: HOUSE_COUNTER,
    state: NO_VIEW,
  });
  expect(view.items.map((item) => (item.kind === 'entry' ? [item.entry.id, hashText(item.text)] : []))).toEqual(
    identity,
  );
  expect(messages.map(({ message }) => hashText(String(message.content)))).toEqual(
    identity.map(([, sha256]) => sha256),
  );

  // Tyrum: the same entries; a collapsed result is its line. A report belongs to a turn of the
  // projection.
  const sent = sentEntries(projection);
  expect(spoken(sent).map(({ id, sha256 }) => [id, sha256])).toEqual(identity);
  expect(sent.filter(({ kind }) => kind === 'approval').map(({ id }) => id)).toEqual(
    projection.running?.approvals ?? [],
  );
  const [report] = (await new TyrumReports(timeline, countHere).list({ conversation: session })).filter(
    ({ turn: of }) => of === `${session}@turn:2`,
  );
  const called = entries.flatMap((entry) => (entry.kind === 'result' && entry.turn <= 2 ? [entry.native] : []));
  expect(new Set(report?.report.tool_calls.map(({ tool_call_id: id }) => id))).toEqual(new Set(called));

  expect(await objects()).toEqual(before);
});

test('shows the same messages through Amplifier for a session recorded elsewhere', async () => {
  const timeline = await Timeline.open(await sessions.client.delivered());
  const { entries } = await readProjection(timeline, session);
  const opened = await sessions.client.openSession({ id: session });
  const context = new AmplifierContext(
    sessions.client,
    new HarnessSession(sessions.client, opened, { delivered: 'library' }),
  );
  const messages = await context.messages();
  expect(messages.map(({ content }) => hashText(String(content)))).toEqual(spoken(entries).map(({ sha256 }) => sha256));
  await sessions.client.closeSession(opened);
});
