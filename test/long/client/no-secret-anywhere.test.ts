import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { stopNode } from '../../../src/index.js';
import { type AgentMachine, agentMachine } from '../../support/agent-machine.js';
import { askHere } from '../../support/ask-here.js';
import { everyPlace, filesBelow, type Place, textsIn } from '../../support/every-byte.js';
import { type OtlpReceiver, startReceiver } from '../../support/otlp-receiver.js';
import { runCli } from '../../support/run-cli.js';
import { recordSeeded, SEEDED } from '../../support/seeded-sessions.js';

/** A private key has several lines, and each is a secret. */
const SECRETS = new Map(SEEDED.flatMap(({ secret, kind }) => secret.split('\n').map((line) => [line, kind] as const)));

/** Returns the secrets in some places, each with its kind and place. */
const leftIn = (places: readonly Place[]): readonly string[] =>
  places.flatMap(([name, bytes]) =>
    [...textsIn(bytes, SECRETS.keys())].map((secret) => `${SECRETS.get(secret)} in ${name}: ${secret}`),
  );

/** Commands that run as the built program, because they are more than questions. */
const ABOUT_MACHINE = [['doctor', '--no-agents'], ['disk'], ['costs'], ['node', 'status'], ['node', 'logs']];
/** Questions about a data folder, and about each of its sessions. `S` is the session. */
const ABOUT_ALL = [
  ['sessions'],
  ['log'],
  ['search', 'first line'],
  ['search', 'key', '--limit', '200'],
  ['query', '{:find [?e ?t] :where [[?e :type ?t]]}'],
];
const ABOUT_SESSION = [
  ['log', 'S'],
  ['context', 'S', '--assemble'],
  ['report', 'list', 'S'],
  ['report', 'detail', 'S', '--assemble'],
  ['report', 'state', 'S'],
  ['diff', 'S'],
  ['show', 'chat:S'],
  ['note', 'S'],
];
const FORMATS = ['bundle', 'html', 'agent-context', 'atif', 'cortexfs'];

describe('sessions that read, wrote and said 200 secrets of 40 kinds', () => {
  let machine: AgentMachine;
  let receiver: OtlpReceiver;
  const dataDir = (mask: string): string => join(machine.home, mask);

  beforeAll(async () => {
    machine = await agentMachine();
    receiver = await startReceiver();
  });
  afterAll(async () => {
    await Promise.all(['known', 'off'].map((mask) => stopNode(dataDir(mask))));
    await receiver.close();
    await machine.remove();
  });

  /** Returns what commands print and write about the sessions. */
  async function outputs(mask: string, sessions: readonly string[]): Promise<readonly Place[]> {
    const written = join(machine.home, `out-${mask}`);
    await mkdir(written);
    const said: Place[] = [];
    const add = async (run: typeof runCli, args: readonly string[]): Promise<void> => {
      const { code, stdout, stderr } = await run([...args, '--data', dataDir(mask)], machine.env);
      expect({ args, code, stderr }).toMatchObject({ args, code: 0 });
      said.push([args.join(' '), Buffer.from(`${stdout}\n${stderr}`)]);
    };
    for (const args of ABOUT_MACHINE) await add(runCli, [...args, '--json']);
    const questions = sessions.flatMap((session) =>
      ABOUT_SESSION.map((args) => args.map((one) => one.replace(/(?<![a-z])S$/, session))),
    );
    for (const args of [...ABOUT_ALL, ...questions]) await add(askHere, [...args, '--json']);
    for (const session of sessions) {
      await add(runCli, ['erase', '--session', session, '--plan']);
      await add(runCli, ['verify', session]);
      await add(askHere, ['log', session]);
      await add(askHere, ['context', session, '--assemble']);
      for (const format of FORMATS)
        await add(askHere, ['export', session, join(written, `${session}.${format}`), '--format', format]);
    }
    return [...said, ...filesBelow(written)];
  }

  test('leave none of them in any byte of the data folder, the outputs and the traces', async () => {
    const mask = 'known';
    await mkdir(dataDir(mask), { mode: 0o700 });
    const sessions = await recordSeeded({ machine, dataDir: dataDir(mask), mask, receiver });
    const said = await outputs(mask, sessions);
    await stopNode(dataDir(mask));
    const before = filesBelow(dataDir(mask));
    // Moves everything from the write-ahead logs into compressed tables.
    expect(await runCli(['erase', '--sweep', '--data', dataDir(mask)], machine.env)).toMatchObject({ code: 0 });
    await stopNode(dataDir(mask));
    const kept = [...before, ...(await everyPlace(dataDir(mask)))];
    const traces: Place = ['traces', Buffer.concat(receiver.bodies)];
    const places = [...kept, ...said, traces];
    expect(leftIn(places)).toEqual([]);
    const sizeOf = (part: string): number =>
      places.filter(([name]) => name.includes(part)).reduce((sum, [, bytes]) => sum + bytes.length, 0);
    for (const part of ['the tables', 'search/', 'gateway/', 'tools.log', '.bundle', '.html', 'traces', 'log tools'])
      expect([part, sizeOf(part) > 1_000]).toEqual([part, true]);
    const marked = places.filter(([, bytes]) => bytes.includes('⟦masked:')).map(([name]) => name);
    expect(marked).toEqual(expect.arrayContaining(['the tables', 'harness.bundle', 'replayed.html', 'log tools']));
  });

  test('leave all of them if nothing is masked, which shows that the scan finds secrets', async () => {
    const mask = 'off';
    await mkdir(dataDir(mask), { mode: 0o700 });
    const [session = ''] = await recordSeeded({ machine, dataDir: dataDir(mask), mask, receiver });
    const written = join(machine.home, 'control');
    await mkdir(written);
    for (const format of ['bundle', 'html']) {
      const args = ['export', session, join(written, format), '--format', format, '--data', dataDir(mask)];
      expect(await askHere(args, machine.env)).toMatchObject({ code: 0 });
    }
    await stopNode(dataDir(mask));
    const whole = Buffer.concat(filesBelow(dataDir(mask)).map(([, bytes]) => bytes));
    for (const [name, bytes] of [['data folder', whole] as const, ...filesBelow(written)])
      expect([name, textsIn(bytes, SECRETS.keys()).size]).toEqual([name, SECRETS.size]);
  });
});
