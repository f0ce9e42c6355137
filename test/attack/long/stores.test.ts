import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import fc from 'fast-check';
import { attack } from '../../support/attack.js';
import { damage, damaged } from '../../support/damage.js';
import { CONFIGS, privateFolder, runFront, startFront } from '../../support/front-process.js';
import { readEdn, submitAndWait, Wire } from '../../support/wire.js';

const DOCUMENTS = 60;
/** Long enough to be recognised, and to make the store larger than its log. */
const textOf = (n: number): string => `what was stored as ${n} `.repeat(40);

let dir: string;
let remove: () => Promise<void>;

const flags = (data: string): readonly string[] => [
  '--config',
  CONFIGS.rocksdb,
  '--data',
  data,
  '--socket',
  join(data, 's'),
];

/** A stopped and a killed node leave different files. Some have their last writes only in a log. */
beforeAll(async () => {
  ({ dir, remove } = await privateFolder());
  const whole = join(dir, 'whole');
  await mkdir(whole, { mode: 0o700 });
  for (const [half, end] of [
    ['SIGTERM', 'stopped'],
    ['SIGKILL', 'killed'],
  ].entries()) {
    const front = await startFront(flags(whole));
    const wire = new Wire({ socketPath: join(whole, 's') });
    const some = Array.from({ length: DOCUMENTS / 2 }, (_, n) => n + (half * DOCUMENTS) / 2);
    for (const n of some) await submitAndWait(wire, `[:xtdb.api/put {:xt/id "d${n}" :n ${n} :text "${textOf(n)}"}]`);
    await wire.close();
    front.run.process.kill(end[0] as NodeJS.Signals);
    await front.run.ended;
  }
});
afterAll(() => remove());

/** A place in the first block of a table file. */
const FIRST_BLOCK = 21;

async function files(data: string): Promise<readonly string[]> {
  const found = await Promise.all(
    ['golden', 'index'].map(async (store) => (await readdir(join(data, store))).map((name) => join(data, store, name))),
  );
  const sizes = await Promise.all(found.flat().map(async (path) => [path, (await stat(path)).size] as const));
  return sizes
    .filter(([, size]) => size > 0)
    .map(([path]) => path)
    .sort();
}

/**
 * Returns the fault of a node's answers from a damaged store. Returns undefined if all are right or
 * the node reports the damage.
 */
async function judge(data: string): Promise<string | undefined> {
  const run = await runFront(flags(data));
  if ((await run.ready) === undefined) {
    const { code, stderr } = await run.ended;
    const said = /^front: ([a-z-]+): /m.exec(stderr)?.[1];
    return said === undefined ? `it ended with ${code} and said ${stderr.slice(-300)}` : undefined;
  }
  const wire = new Wire({ socketPath: join(data, 's') });
  try {
    const found = await wire.post('/query', '{:query {:find [e n t] :where [[e :n n] [e :text t]]}}');
    // The client learns that the data is unreadable.
    if (found.status >= 500) return undefined;
    const rows = readEdn(found.text) as readonly (readonly [string, number, string])[];
    const wrong = rows.filter(([id, n, text]) => id !== `d${n}` || text !== textOf(n));
    if (wrong.length > 0) return `it answers ${JSON.stringify(wrong[0]).slice(0, 200)}`;
    const missing = DOCUMENTS - new Set(rows.map(([id]) => id)).size;
    return missing === 0 ? undefined : `${missing} of ${DOCUMENTS} are missing and nothing says so`;
  } catch {
    return undefined;
  } finally {
    await wire.close();
    run.process.kill('SIGKILL');
    await run.ended;
  }
}

attack('stores', async (tries) => {
  const first = fc.sample(fc.nat(), 10).map((which) => ({ which, ending: '.sst', what: undefined }));
  const any = fc.sample(fc.tuple(fc.nat(), damage), 90).map(([which, what]) => ({ which, ending: '', what }));
  const copy = join(dir, 'copy');
  for (const { which, ending, what } of [...first, ...any]) {
    await cp(join(dir, 'whole'), copy, { recursive: true, filter: (path) => !path.endsWith('/s') });
    const all = (await files(copy)).filter((path) => path.endsWith(ending));
    const path = all[which % all.length] ?? '';
    const bytes = await readFile(path);
    if (what === undefined) bytes.writeUInt8(bytes.readUInt8(FIRST_BLOCK) ^ 1, FIRST_BLOCK);
    await writeFile(path, what === undefined ? bytes : damaged(bytes, what));
    tries.tried(
      `${JSON.stringify(what ?? FIRST_BLOCK).slice(0, 200)} in ${path.slice(copy.length)}`,
      await judge(copy),
    );
    await rm(copy, { recursive: true });
  }
});
