import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FINDINGS } from '../../../src/maintenance/explained-findings.js';
import { findingsOf } from '../../../src/maintenance/findings.js';
import { type InspectedDataFolder, inspectDataFolder } from '../../../src/maintenance/inspect-data-folder.js';
import { NodeError } from '../../../src/node/errors.js';
import { writeState } from '../../../src/node/node-state.js';
import { identifySelf } from '../../../src/process/process-identity.js';
import { loopTroubles } from '../../../src/process/process-reports.js';

describe('findings', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-findings-'));
    await writeFile(join(dataDir, 'palimpsest.json'), '{"format":1}');
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  const running = {
    running: true,
    isDiskFull: false,
    leastRoom: 0,
    phase: 'ready',
    pid: 1,
    supervisorPid: 1,
    supervised: true,
    address: null,
    profile: 'postgres',
    version: '1.24.3',
    startedAt: '2026-11-22T00:00:00.000Z',
    restarts: 0,
    frontExit: null,
    users: 1,
    answers: true,
    ingesterFailed: false,
    ingesterError: null,
    storeFailed: false,
    sharedLog: 'postgresql://db.example/palimpsest',
    log: { name: 'l', reachable: true, submitted: 5_000, completed: 5_000 },
    indexing: null,
  } as const;
  const codesOf = async (node: Readonly<Record<string, unknown>>, more: Partial<InspectedDataFolder> = {}) => {
    const inspected = await inspectDataFolder(dataDir);
    const looked = { ...inspected, ...more, node: { ...running, dataDir, ...node } } as InspectedDataFolder;
    return findingsOf(looked, Date.now()).map(({ code }) => code);
  };

  test('name each trouble of a node, and none of a healthy one', async () => {
    expect(await codesOf({})).toEqual([]);
    expect(await codesOf({ ingesterFailed: true })).toEqual(['ingester-failed']);
    expect(await codesOf({ ingesterFailed: true }, { lacksDocuments: true })).toEqual(['documents-missing']);
    await mkdir(join(dataDir, 'erasures'));
    expect(await codesOf({})).toEqual([]);
    await writeFile(join(dataDir, 'erasures', 'pending.json'), '{}');
    expect(await codesOf({})).toEqual(['erasure-unfinished']);
    await rm(join(dataDir, 'erasures'), { recursive: true });
    expect(await codesOf({ ingesterFailed: true, ingesterError: 'documents-missing: 3' })).toEqual([
      'documents-missing',
    ]);
    expect(await codesOf({ ingesterFailed: true, ingesterError: 'store: IO error' })).toEqual(['store-failed']);
    const ended = { code: 0, signal: null, at: '2026-11-22T00:00:00.000Z', reason: 'documents-missing: 3' };
    expect(await codesOf({ phase: 'restarting', answers: false, frontExit: ended })).toEqual(['documents-missing']);
    expect(await codesOf({ frontExit: ended })).toEqual([]);
    expect(await codesOf({ storeFailed: true, isDiskFull: true })).toEqual(['disk-full', 'store-failed']);
    expect(await codesOf({ log: { ...running.log, reachable: false } })).toEqual(['log-unreachable']);
    expect(await codesOf({ log: { ...running.log, completed: 3_999 } })).toEqual(['log-behind']);
    expect(await codesOf({ log: { ...running.log, completed: 4_000 } })).toEqual([]);
    expect(await codesOf({ answers: false, supervised: false })).toEqual(['node-unsupervised', 'node-silent']);
  });

  test.each(['log-missing', 'log-denied', 'log-unreachable', 'data-newer', 'no-space'] as const)(
    'explain a start that failed with %s by its output',
    async (code) => {
      const failure = { code, message: `what was said of ${code}` };
      const found = findingsOf(
        {
          ...(await inspectDataFolder(dataDir)),
          node: { dataDir, running: false, isDiskFull: false, leastRoom: 0, failure },
        },
        0,
      );
      expect(found).toMatchObject([{ code, detail: failure.message, weight: 'repair', next: FINDINGS[code].next }]);
    },
  );

  test('count a failed start of our node only if that node is in use', async () => {
    const failure = { code: 'no-java', message: 'there is none' };
    const looked = {
      ...(await inspectDataFolder(dataDir)),
      node: { dataDir, running: false, isDiskFull: true, leastRoom: 0, failure },
    } as const;
    expect(findingsOf(looked, 0).map(({ code }) => code)).toEqual(['disk-full', 'no-java']);
    const address = { kind: 'url', origin: 'http://node.example' } as const;
    expect(findingsOf(looked, 0, { asked: [{ address, health: 'ready', why: 'ready', status: undefined }] })).toEqual(
      [],
    );
  });

  test('report a failure unknown to this version as a failed start', async () => {
    const self = await identifySelf();
    await writeState(join(dataDir, 'node.json'), {
      format: 1,
      phase: 'failed',
      supervisor: { ...self, pid: 4_194_304 },
      jvm: null,
      address: null,
      profile: 'rocksdb',
      version: null,
      startedAt: new Date().toISOString(),
      restarts: 0,
      frontExit: null,
      failure: { code: 'never-heard-of', message: 'of another version' },
    });
    expect(findingsOf(await inspectDataFolder(dataDir), 0)).toMatchObject([
      { code: 'start-failed', detail: 'of another version' },
    ]);
  });

  test('match the entries of the runbook one to one, and every alarm leads to entries', async () => {
    const runbook = await readFile('docs/runbook.md', 'utf8');
    const entries = [...runbook.matchAll(/^### (\S+)\n\n(.+)$/gm)];
    expect(entries.map(([, code = '']) => code).sort()).toEqual(Object.keys(FINDINGS).sort());
    const page = await readFile('docs/watching.md', 'utf8');
    const alarms = page.slice(page.indexOf('\n## Alarms\n'));
    const rows = alarms.split('\n').filter((line) => line.startsWith('| `'));
    expect(rows.length).toBeGreaterThan(10);
    for (const row of rows) {
      const named = [...row.matchAll(/\(runbook\.md#([\w-]+)\)/g)].map(([, code]) => code);
      expect(named.length).toBeGreaterThan(0);
      for (const code of named) expect(Object.keys(FINDINGS)).toContain(code);
    }
  });

  test('report missing Java before a start fails, but not if the node runs, is unused, or reported it', async () => {
    const java = new NodeError('no-java', 'found none in the PATH');
    const stopped = { dataDir, running: false, isDiskFull: false, leastRoom: 0, failure: null } as const;
    const looked = { ...(await inspectDataFolder(dataDir)), node: stopped };
    expect(findingsOf(looked, 0)).toEqual([]);
    expect(findingsOf(looked, 0, { java })).toMatchObject([
      { code: 'no-java', weight: 'repair', detail: java.message },
    ]);
    const failed = {
      ...looked,
      node: { ...stopped, failure: { code: 'no-java', message: 'the start said it' } },
    } as const;
    expect(findingsOf(failed, 0, { java })).toMatchObject([{ code: 'no-java', detail: 'the start said it' }]);
    const runs = { ...looked, node: { ...running, dataDir } } as InspectedDataFolder;
    expect(findingsOf(runs, 0, { java })).toEqual([]);
    expect(FINDINGS['loop-bypassed'].next).not.toContain('nothing is lost');
  });

  test('report a bypassed loop while its harness runs, and for an hour after its last such call', async () => {
    const [at, hour] = [Date.parse('2026-11-22T10:00:00.000Z'), 3_600_000];
    await mkdir(join(dataDir, 'loops'));
    const report = { what: 'pi', session: 's', passedThrough: 2, at: new Date(at).toISOString(), reason: 'late' };
    const files = {
      running: { ...report, ...(await identifySelf()) },
      ended: { ...report, pid: process.pid, started: 'another boot:1' },
      former: { ...report, pid: process.pid },
    };
    for (const [name, file] of Object.entries(files))
      await writeFile(join(dataDir, 'loops', `${name}.json`), JSON.stringify(file));
    const shown = async (now: number) => (await loopTroubles(dataDir, now)).map(({ isRunning }) => isRunning).sort();
    expect(await shown(at + hour - 1)).toEqual([false, false, true]);
    expect(await shown(at + hour)).toEqual([true]);
  });
});
