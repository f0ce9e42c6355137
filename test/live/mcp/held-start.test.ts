import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stopNode } from '../../../src/index.js';
import { inspectJournals } from '../../../src/journal/journals.js';
import { dataFolderAt } from '../../../src/node/data-folder.js';
import { clientFolder } from '../../../src/process/data-folder.js';
import { withNamedLock } from '../../../src/process/lock.js';
import { type Agent, stdioAgent } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';

/** A call of every tool, in an order in which each succeeds. */
const CALLS: readonly (readonly [tool: string, args: Readonly<Record<string, unknown>>, answer: RegExp])[] = [
  ['ls', { path: '.' }, /a\.txt/],
  ['read', { path: 'a.txt' }, /alpha/],
  ['grep', { pattern: 'alp' }, /a\.txt/],
  ['find', { pattern: '*.txt' }, /a\.txt/],
  ['write', { path: 'new.txt', content: 'written\n' }, /new\.txt/],
  ['edit', { path: 'a.txt', edits: [{ oldText: 'alpha', newText: 'omega' }] }, /a\.txt/],
  ['tree', { path: '.' }, /a\.txt/],
  ['deactivate', { ids: ['a.txt'] }, /a\.txt/],
  ['activate', { ids: ['a.txt'] }, /a\.txt/],
  ['pin', { ids: ['a.txt'] }, /a\.txt/],
  ['unpin', { ids: ['a.txt'] }, /a\.txt/],
  ['context', { full: true }, /omega/],
  ['recall', { text: 'omega' }, /not ready yet/],
];

describe('tools while the node of the data folder starts or is built [issue: a start never costs a call]', () => {
  let folder: string;
  let root: string;
  let data: string;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-held-')));
    root = join(folder, 'project');
    data = join(folder, 'data');
    await mkdir(root);
    await mkdir(data);
    await writeFile(join(root, 'a.txt'), 'alpha\n');
  });
  afterAll(async () => {
    await stopNode(data);
    await rm(folder, { recursive: true, force: true });
  });

  const pending = async (): Promise<number> => {
    const journals = await inspectJournals(clientFolder(data, undefined));
    return journals.reduce((sum, journal) => sum + journal.pending, 0);
  };

  test('every tool answers from the journal, and the node gets all of it later', async () => {
    let agent: Agent | undefined;
    try {
      // A process that starts or builds the node holds this lock for the whole time.
      await withNamedLock(dataFolderAt(data).startLock, { limitMs: 10_000 }, async () => {
        const flags = ['--data', data, '--log-level', 'silent'];
        const held = await stdioAgent(root, flags, { XTDB_URL: '' });
        agent = held;
        const { tools } = await held.client.listTools();
        expect(CALLS.map(([tool]) => tool).sort()).toEqual(tools.map(({ name }) => name).sort());
        for (const [tool, args, answer] of CALLS) {
          const { text, isError } = await held.call(tool, args);
          expect([tool, isError, text]).toEqual([tool, false, expect.stringMatching(answer)]);
        }
        await expect(readFile(dataFolderAt(data).stateFile)).rejects.toMatchObject({ code: 'ENOENT' });
        expect(await pending()).toBeGreaterThanOrEqual(CALLS.length);
      });
      // After the release, the agent's own process starts the node and delivers without a call.
      expect(await until(pending, (count) => count === 0)).toBe(0);
    } finally {
      await agent?.close();
    }
  });
});
