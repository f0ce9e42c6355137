import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Loaded into a program with `--import`, kills it with SIGKILL at an exact point of its work. The
 * point does not depend on speed. PALIMPSEST_KILL_AT is `WHAT WHEN N`, with WHEN `before` or
 * `after`.
 *
 * It selects the N-th `line` written to an open file (a kept measure) or the N-th `record` of its
 * journal. With `name` it selects the N-th link or rename that gives a whole file its name.
 */
const [what, when, count] = (process.env.PALIMPSEST_KILL_AT ?? '').split(' ');
let left = Number(count);

function passed(kind, moment) {
  if (kind !== what || moment !== when) return;
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
}

const { writevSync } = fs;
fs.writevSync = (...args) => {
  passed('record', 'before');
  const written = writevSync(...args);
  passed('record', 'after');
  return written;
};
for (const call of ['link', 'rename']) {
  const named = fs.promises[call];
  fs.promises[call] = async (...args) => {
    passed('name', 'before');
    await named(...args);
    passed('name', 'after');
  };
}
syncBuiltinESMExports();

const file = await open(new URL(import.meta.url));
const prototype = Object.getPrototypeOf(file);
await file.close();
const { write } = prototype;
prototype.write = async function (...args) {
  passed('line', 'before');
  const written = await write.apply(this, args);
  passed('line', 'after');
  return written;
};
