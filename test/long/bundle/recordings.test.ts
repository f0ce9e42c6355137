import { appendFile, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BundleError } from '../../../src/bundle/bundle-error.js';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { importBundle } from '../../../src/bundle/import-bundle.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { findCorpus } from '../../../src/lab/replay/find-recordings.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { effort } from '../../support/effort.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { fixtures, replay } from '../../support/replays.js';
import { openTestClient } from '../../support/xtdb.js';

/**
 * A folder of recordings, as for `npm run replay:corpus`; default: the small recordings of this
 * repository.
 */
const corpus = process.env.PALIMPSEST_CORPUS ?? '';
/** A file that gets a line of figures for each session. */
const figures = process.env.PALIMPSEST_CORPUS_FIGURES;

async function recordings(): Promise<readonly (readonly [name: string, paths: readonly string[]])[]> {
  if (corpus !== '') return (await findCorpus(corpus)).files.map(({ name, path }) => [name, [path]] as const);
  return Promise.all(
    [...(await fixtures())].map(
      async ([format, [path = '']]) =>
        [format, (await findCorpus(dirname(path))).files.map((file) => file.path)] as const,
    ),
  );
}

const all = await recordings();
const cases = all.slice(0, effort(4, all.length));

const nodes: OwnNode[] = [];
const clients: XtdbClient[] = [];
let here: ObjectStore;
/** The databases for imports. A session that one database refuses is imported into the next. */
const targets: { readonly store: ObjectStore; readonly clientDir: string }[] = [];
let files: Awaited<ReturnType<typeof temporaryRoot>>;

beforeAll(async () => {
  const client = openTestClient();
  clients.push(client);
  here = new ObjectStore(client);
  [files] = await Promise.all([temporaryRoot(), another(), another()]);
});
afterAll(async () => {
  await Promise.all([here, ...targets.map(({ store }) => store)].map((store) => store.close()));
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all([...nodes.map((node) => node.stop()), files.remove()]);
});

/** Adds a database for imports. */
async function another(): Promise<void> {
  const node = await ownNode();
  const client = new XtdbClient(node.address);
  nodes.push(node);
  clients.push(client);
  targets.push({ store: new ObjectStore(client), clientDir: node.dataDir });
}

/**
 * Imports a session into the first database that accepts it. A database with later versions of a
 * file refuses contexts that it could not rebuild. Undefined if all refuse.
 */
async function taken(file: string, from = 0): Promise<ObjectStore | undefined> {
  for (const { store, clientDir } of targets.slice(from)) {
    const imported = await importBundle(store, file, { clientDir }).catch((error: unknown) => {
      if (!(error instanceof BundleError) || error.code !== 'conflict') throw error;
      return undefined;
    });
    if (imported !== undefined) return store;
  }
  if (corpus === '' || from > 0) return undefined;
  // Of a whole corpus, every session must be imported, if necessary into its own database.
  await another();
  return taken(file, targets.length - 1);
}

test('the folder has recordings', () => {
  expect(cases.length).toBeGreaterThan(0);
});

test.each(cases)(
  '%s: every replayed session verifies in its new database and exports the same',
  async (format, paths) => {
    let [contexts, handedOut] = [0, 0];
    for (const path of paths) {
      const report = await replay(path);
      for (const { session } of report.sessions) {
        const write = async (store: ObjectStore, name: string) => {
          const file = join(
            files.root,
            `${format.replaceAll(/[^\w.-]/g, '_')}-${session.replaceAll(/[^\w.-]/g, '_')}-${name}`,
          );
          const { manifest } = await exportBundle(await Timeline.open(store), { session: session as SessionId, file });
          return { file, bytes: await readFile(file), manifest };
        };
        const origin = await verifySession(here, session);
        expect([session, origin.ok, origin.contexts.unequal]).toEqual([session, true, []]);
        handedOut += origin.contexts.total;
        const bundle = await write(here, 'out');
        const there = await taken(bundle.file);
        if (there === undefined) {
          expect(corpus).toBe('');
          for (const { store } of targets)
            await expect(verifySession(store, session)).rejects.toMatchObject({ code: 'unknown-session' });
          continue;
        }
        const verified = await verifySession(there, session);
        expect([session, verified.ok, verified.contexts.unequal]).toEqual([session, true, []]);
        expect(verified.contexts.total).toBe(origin.contexts.total);
        contexts += verified.contexts.equal;
        expect((await write(there, 'back')).bytes.equals(bundle.bytes)).toBe(true);
        const { documents, texts, transactions, objects, parts, bytes } = bundle.manifest;
        const row = {
          format,
          contexts: verified.contexts.equal,
          steps: parts.step,
          files: objects.file,
          documents,
          texts,
          transactions,
          bytes,
          packed: bundle.bytes.length,
        };
        if (figures !== undefined)
          await appendFile(
            figures,
            `${JSON.stringify({ ...row, database: targets.findIndex(({ store }) => store === there) })}\n`,
          );
      }
    }
    if (corpus === '') expect(contexts).toBeGreaterThan(0);
    else expect(contexts).toBe(handedOut);
  },
);
