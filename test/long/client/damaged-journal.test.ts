import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, isAbsolute, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { inspectJournals } from '../../../src/journal/journals.js';
import { filesystemId, sessionId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { clientFolder } from '../../../src/process/data-folder.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { stepId } from '../../../src/store/step-part.js';
import { testAddress, wholeRead } from '../../support/context.js';
import { type Damage, damage, damaged } from '../../support/damage.js';
import { effort } from '../../support/effort.js';
import { Road } from '../../support/road.js';
import { runCli } from '../../support/run-cli.js';
import { callReport } from '../../support/tracked-project.js';

const STEPS = 30;

/** The work that a process has acknowledged during an outage of the database. */
interface Told {
  /** The answers of calls by their ids. */
  readonly calls: Map<string, string>;
  readonly messages: Set<string>;
  readonly sessions: readonly string[];
}

describe('a damaged journal [decision 0011]', () => {
  let root: string;
  const clients: ContextClient[] = [];
  const roots: string[] = [];
  /** Clients that never reach a database. Closing one takes seconds, so they close together. */
  const writers: ContextClient[] = [];
  const filesystem = filesystemId(`fs-${randomUUID()}`);

  const open = async (dataDir: string, notices: string[] = []): Promise<ContextClient> => {
    const onNotice = (line: string): unknown => notices.push(line);
    const client = await ContextClient.create({
      address: testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      dataDir,
      track: false,
      onNotice,
    });
    clients.push(client);
    return client;
  };

  /**
   * Runs two sessions side by side, 30 steps each, during an outage. Returns a data folder with the
   * journal as a kill would leave it.
   */
  const deadJournal = async (name: string): Promise<{ readonly dataDir: string; readonly told: Told }> => {
    const address = { kind: 'unix', socketPath: join(root, 'nobody.sock') } as const;
    const before = join(root, `${basename(name)}-before`);
    const client = await ContextClient.create({
      address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      dataDir: before,
      track: false,
    });
    writers.push(client);
    const sessions = [await client.openSession(), await client.openSession()];
    const told: Told = { calls: new Map(), messages: new Set(), sessions: sessions.map(({ id }) => id) };
    for (let i = 1; i <= STEPS; i++) {
      for (const session of sessions) await work(client, session, { i, told });
    }
    const dataDir = isAbsolute(name) ? name : join(root, name);
    cpSync(join(before, 'journal'), join(dataDir, 'journal'), { recursive: true });
    for (const file of readdirSync(join(dataDir, 'journal')))
      if (file.endsWith('.lock')) truncateSync(join(dataDir, 'journal', file));
    return { dataDir, told };
  };

  const work = async (
    client: ContextClient,
    session: ContextSession,
    { i, told }: { readonly i: number; readonly told: Told },
  ) => {
    if (i % 7 === 1) {
      const text = `message ${i} in ${session.id}`;
      await session.reportMessage({ role: 'user', text });
      told.messages.add(text);
      return;
    }
    const file = `file-${i}.ts`;
    if (i % 5 === 0) await writeFile(join(root, file), `const a = ${i};\n`);
    const readings = i % 5 === 0 ? [await wholeRead(client, file)] : [];
    const pinned = session.state.activeIds.at(0);
    const plan = i % 6 === 0 && pinned !== undefined ? { plan: await session.planVerb('pin', [pinned]) } : {};
    const { callId, answer } = await session.recordCall(
      callReport({ tool: 'bash', content: `output ${i} of ${session.id}`, readings, ...plan }),
    );
    told.calls.set(callId, answer);
  };

  const segment = (dataDir: string): string => {
    const [file = ''] = readdirSync(join(dataDir, 'journal')).filter((one) => one.endsWith('.wal'));
    return join(dataDir, 'journal', file);
  };

  const isLost = ({ event }: Step): boolean => event?.kind === 'lost';

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-damaged-')));
    roots.push(root);
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
  });
  afterAll(async () => {
    await Promise.all(writers.map((client) => client.close().catch(() => undefined)));
    await Promise.all(roots.map((one) => rm(one, { recursive: true, force: true })));
  });

  test('loses one step to a flipped byte, reported in session, verify and notice; its id is never reused', async () => {
    const { dataDir, told } = await deadJournal('flipped');
    const [first = '', second = ''] = told.sessions;
    const path = segment(dataDir);
    const bytes = readFileSync(path);
    bytes.writeUInt8(0, bytes.indexOf(`output 20 of ${first}`));
    writeFileSync(path, bytes);
    expect(await inspectJournals(dataDir)).toMatchObject([
      { state: 'corrupt', loss: { records: [expect.anything()], isUncounted: false } },
    ]);

    const notices: string[] = [];
    const client = await open(dataDir, notices);
    const session = await client.openSession({ id: first });
    expect(notices).toEqual([expect.stringContaining(`step 20 of session ${first}`)]);
    expect(notices[0]).toContain(`${path} at byte`);
    const steps = await (await client.snapshot()).steps(session.id);
    expect(steps.map(({ seq }) => seq)).toEqual(Array.from({ length: STEPS }, (_, i) => i + 1));
    expect(steps.filter(isLost).map(({ seq }) => seq)).toEqual([20]);
    expect(steps[19]?.event?.detail).toContain('at byte');
    expect((await client.openSession({ id: second })).state.seq).toBe(STEPS);

    const { callId } = await session.recordCall(callReport({ tool: 'bash', content: 'after' }));
    expect(told.calls.has(callId)).toBe(false);
    expect((await session.assemble()).text).toContain('after');
    const store = await client.delivered();
    expect(await verifySession(store, first)).toMatchObject({
      ok: false,
      parts: { damages: [{ part: stepId(sessionId(first), 20), what: 'lost' }] },
    });
    expect(await verifySession(store, second)).toMatchObject({ ok: true });
    expect((await readdir(join(dataDir, 'journal'))).filter((one) => one.endsWith('.damaged'))).toHaveLength(1);
  });

  test('is reported by exit codes, is rescued on request, and loses no file', async () => {
    const port = await Road.fromPort(root);
    const data = join(root, 'data');
    const folder = clientFolder(data, port.url);
    const { told } = await deadJournal(folder);
    const [session = ''] = told.sessions;
    const path = segment(folder);
    const bytes = readFileSync(path);
    bytes.fill(0, bytes.indexOf(`output 20 of ${session}`), bytes.indexOf(`output 20 of ${session}`) + 10);
    writeFileSync(path, bytes);
    const run = (...args: readonly string[]) => runCli([...args, '--data', data], { XTDB_URL: port.url });
    try {
      expect(await run('doctor')).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/DAMAGED: .*\.wal at byte \d+ .*cannot be read/),
      });
      const plan = await run('journal', 'salvage');
      expect(plan).toMatchObject({ code: 0, stdout: expect.stringContaining(`step 20 of session ${session}`) });
      expect(plan.stdout).toContain('No changes made');
      expect(readFileSync(path)).toEqual(bytes);
      // The database needs longer for all of it than other commands wait for a session's remaining
      // steps.
      port.delayMs = 60;
      expect(await run('journal', 'salvage', '--apply')).toMatchObject({ code: 0, stderr: '' });
      port.delayMs = 0;
      expect(readdirSync(join(folder, 'journal', 'settled'))).toEqual([`${basename(path)}.damaged`]);
      expect(readFileSync(join(folder, 'journal', 'settled', `${basename(path)}.damaged`))).toEqual(bytes);
      expect((await run('journal', 'salvage')).stdout).toContain('no journal is damaged');
      expect((await run('doctor')).code).toBe(0);
      expect(await run('verify', session)).toMatchObject({
        code: 1,
        stdout: expect.stringContaining(`LOST ${stepId(sessionId(session), 20)}`),
      });
      expect((await run('verify', told.sessions[1] ?? '')).code).toBe(0);
    } finally {
      await port.close();
    }
  });

  test('delivers every readable step once after random damage, marks the rest as lost, and repeats no id', async () => {
    let runs = 0;
    const run = async (what: Damage): Promise<void> => {
      const { dataDir, told } = await deadJournal(`run-${++runs}`);
      const path = segment(dataDir);
      writeFileSync(path, damaged(readFileSync(path), what));
      const notices: string[] = [];
      const client = await open(dataDir, notices);
      await client.backpressure(0, 60_000);
      const snapshot = await client.snapshot();
      const known = new Map((await client.listSessions()).map(({ id }) => [id as string, id]));
      expect([...known.keys()].filter((id) => told.sessions.some((one) => id.startsWith(`${one}.fork`)))).toEqual([]);
      for (const id of told.sessions) {
        const found = known.get(id);
        const steps = found === undefined ? [] : await snapshot.steps(found);
        for (const { message } of steps) if (message !== undefined) expect(told.messages).toContain(message.text);
        const calls = steps.flatMap(({ call }) => call?.id ?? []);
        for (const call of calls) expect(told.calls.has(call)).toBe(true);
        expect(new Set(calls).size).toBe(calls.length);
        const lost = steps.filter(isLost);
        if (lost.length > 0) expect(notices.join('\n')).toContain(`of session ${id}`);
        if (steps.length < STEPS && what.kind !== 'truncate') expect(notices).not.toEqual([]);
        const session = await client.openSession({ id });
        expect(session.state.seq).toBe(steps.length);
        const { callId, applied } = await session.recordCall(callReport({ tool: 'bash', content: 'after' }));
        if (what.kind !== 'truncate') expect(told.calls.has(callId)).toBe(false);
        await applied;
        await session.assemble();
        await client.closeSession(session);
        const { parts } = await verifySession(await client.delivered(), id);
        expect(parts.damages.map(({ part, what: state }) => [part, state])).toEqual(
          lost.map(({ seq }) => [stepId(sessionId(id), seq), 'lost']),
        );
      }
      expect((await client.close()).unflushed).toBe(0);
    };
    await fc.assert(fc.asyncProperty(damage, run), {
      numRuns: effort(2, 40),
      endOnFailure: true,
      // The beginning of both sessions is gone.
      examples: [
        [{ kind: 'zero', at: 0, length: 0.2, to: 0, noise: new Uint8Array(4) }],
        // A later step pins what only a lost one had brought.
        [{ kind: 'zero', at: 0, length: 0.1065, to: 0, noise: new Uint8Array(4) }],
      ],
    });
  });
});
