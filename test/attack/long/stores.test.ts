import { cp, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import fc from 'fast-check';
import { attack } from '../../support/attack.js';
import { CONFIGS, privateFolder, runFront, startFront } from '../../support/front-process.js';
import { readEdn, submitAndWait, Wire } from '../../support/wire.js';

const DOCUMENTS = 60;
/** Long enough to be recognised, and to make the store more than its log. */
const textOf = (n: number): string => `what was stored as ${n} `.repeat(40);

let dir: string;
let remove: () => Promise<void>;

const flags = (data: string): readonly string[] => ['--config', CONFIGS.rocksdb, '--data', data, '--socket', join(data, 's')];

/** A node that was stopped and one that was killed leave different files: some have their last writes in a log alone. */
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

/** A place in what a file of a table holds first. */
const FIRST_BLOCK = 21;

type Damage = { readonly part: number; readonly at: number; readonly kind: 'flip' | 'zeros' | 'cut' | 'gone' };

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

async function damage(path: string, { at, kind }: Damage): Promise<void> {
  if (kind === 'gone') return rm(path);
  const file = await open(path, 'r+');
  const { size } = await file.stat();
  const place = at % size;
  if (kind === 'cut') await file.truncate(place);
  else {
    const bytes = Buffer.alloc(kind === 'zeros' ? Math.min(512, size - place) : 1);
    if (kind === 'flip') {
      await file.read(bytes, 0, 1, place);
      bytes.writeUInt8(bytes.readUInt8() ^ (1 << (at % 8)));
    }
    await file.write(bytes, 0, bytes.length, place);
  }
  await file.close();
}

/** What is wrong with what a node answers out of a damaged store; undefined when all of it is right, or when it says that it is damaged. */
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
    // Whoever asks is told that it cannot be read.
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
  const kinds = fc.constantFrom<Damage['kind']>('flip', 'flip', 'flip', 'zeros', 'cut', 'gone');
  const damages = fc.sample(fc.record({ part: fc.nat(), at: fc.nat(), kind: kinds }), tries.size(2, 90));
  const copy = join(dir, 'copy');
  const first = fc.sample(fc.nat(), tries.size(1, 10)).map((part): Damage => ({ part, at: FIRST_BLOCK, kind: 'flip' }));
  for (const one of [...first, ...damages]) {
    await cp(join(dir, 'whole'), copy, { recursive: true, filter: (path) => !path.endsWith('/s') });
    const all = await files(copy);
    const some = one.at === FIRST_BLOCK ? all.filter((name) => name.endsWith('.sst')) : all;
    const path = some[one.part % some.length] ?? '';
    await damage(path, one);
    tries.tried(`${one.kind} at ${one.at} of ${path.slice(copy.length)}`, await judge(copy));
    await rm(copy, { recursive: true });
  }
});
