import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CONFIGS, frontCommand } from '../../support/front-process.js';

/** A checkout of XTDB's repository at tag 1.24.3, whose tests and remote client are run. */
const source = process.env.PALIMPSEST_XTDB_SOURCE;
const here = join(import.meta.dirname, '..', '..', 'xtdb-api');
const run = promisify(execFile);

interface Outcome {
  readonly passed: number;
  readonly other: readonly {
    readonly test: string;
    readonly type: 'fail' | 'error';
    readonly expected: string;
    readonly actual: string;
  }[];
}

let jars: string;
beforeAll(async () => {
  if (source === undefined) return;
  jars = await mkdtemp(join(tmpdir(), 'palimpsest-xtdb-api-'));
  await run('mvn', [
    '-q',
    '-B',
    '-f',
    join(here, 'pom.xml'),
    'dependency:copy-dependencies',
    `-DoutputDirectory=${jars}`,
  ]);
});
afterAll(async () => {
  if (jars !== undefined) await rm(jars, { recursive: true, force: true });
});

/** Runs a namespace of XTDB's tests, each test on a separate front. */
async function outcome(namespace: string): Promise<Outcome> {
  const folders = [
    'test/src',
    'test/test',
    'test/resources',
    'test/test-resources',
    'modules/http-client/src',
    'modules/http-server/test',
    'labs/rdf/src',
  ];
  const classPath = [join(here, 'src'), ...folders.map((folder) => join(source ?? '', folder)), join(jars, '*')].join(
    delimiter,
  );
  const [java, ...args] = await frontCommand(['--config', CONFIGS.memory, '--port', '0'], [`-Djava.io.tmpdir=${jars}`]);
  const { stdout } = await run(java, ['-cp', classPath, 'clojure.main', '-m', 'report', namespace], {
    env: { ...process.env, FRONT_COMMAND: JSON.stringify([java, ...args]) },
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
}

/** Tests that do not pass, and why that is right. */
const REFUSED = {
  api: {
    'test-tx-fn-replacing-arg-docs-866': 'defines transaction functions',
    'test-tx-log': 'defines transaction functions',
    'test-listen-for-indexed-txs': 'asks for what no remote client has',
  },
  json: {
    'test-transaction-functions': 'defines transaction functions',
    'test-object-mapping': 'submits a byte array, which EDN has no form for, past the HTTP API',
  },
} as const;

const namesOf = ({ other }: Outcome): readonly string[] => [...new Set(other.map(({ test: name }) => name))].sort();

(source === undefined ? describe.skip : describe)(
  'XTDB’s own tests of its HTTP API (PALIMPSEST_XTDB_SOURCE names its checkout)',
  () => {
    test('pass through its remote client, except deliberate refusals', async () => {
      const found = await outcome('xtdb.api-test');
      expect({ names: namesOf(found), found }).toEqual({ names: Object.keys(REFUSED.api).sort(), found });
      expect(found.passed).toBeGreaterThan(120);
    });

    test('pass in JSON, except deliberate refusals', async () => {
      const found = await outcome('xtdb.http-server.json-test');
      expect({ names: namesOf(found), found }).toEqual({ names: Object.keys(REFUSED.json).sort(), found });
      expect(found.passed).toBeGreaterThan(35);
    });
  },
);
