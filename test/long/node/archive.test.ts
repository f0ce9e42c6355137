import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ensureInstallation } from '../../../src/node/install.js';
import { findJava } from '../../../src/node/java.js';
import { CONFIGS } from '../../support/front-process.js';
import { until } from '../../support/until.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'palimpsest-build-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test('keeps compiled jars when the archive is cancelled or fails, and removes builds unused for a week', async () => {
  const java = await findJava({});
  const command = join(dir, 'java');
  const begun = join(dir, 'begun');
  // The first attempt to make the archive never ends; each later attempt fails.
  await writeFile(
    command,
    `#!/bin/sh\ncase "$*" in *ArchiveClassesAtExit*) ` +
      `if [ -e '${begun}' ]; then exit 1; fi; touch '${begun}'; exec sleep 600;; ` +
      `esac\nexec '${java.command}' "$@"\n`,
  );
  await chmod(command, 0o755);
  const cacheDir = join(dir, 'cache');
  const said: string[] = [];
  const build = (signal?: AbortSignal) =>
    ensureInstallation({
      java: { ...java, command },
      frontDir: join(CONFIGS.memory, '..'),
      memoryConfig: CONFIGS.memory,
      cacheDir,
      signal,
      onProgress: (line) => said.push(line),
    });
  const stop = new AbortController();
  const cancelled = expect(build(stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  await until(
    () => stat(begun).catch(() => undefined),
    (file) => file !== undefined,
  );
  stop.abort();
  await cancelled;
  said.length = 0;
  const second = await build();
  expect(second.archive).toBeNull();
  expect(said).toEqual([
    expect.stringMatching(/^Making the class-data/),
    expect.stringMatching(/^There is no class-data/),
  ]);
  for (const [name, days] of [['node-aaaaaaaaaaaaaaaa', 8] as const, ['node-bbbbbbbbbbbbbbbb', 1] as const]) {
    await mkdir(join(cacheDir, name));
    const used = new Date(Date.now() - days * 86_400_000);
    await utimes(join(cacheDir, name), used, used);
  }
  said.length = 0;
  expect(await build()).toEqual(second);
  expect(said).toEqual([]);
  expect((await readdir(cacheDir)).sort()).toEqual([`node-${second.key}`, 'node-bbbbbbbbbbbbbbbb'].sort());
});
