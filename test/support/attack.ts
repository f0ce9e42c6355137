import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from '@jest/globals';
import { effort } from './effort.js';
import type { Serve } from './mcp-clients.js';

/** Observations of a session beside an attack. */
interface Beside {
  /** The start of each read, and its milliseconds. */
  readonly reads: readonly (readonly [number, number])[];
  readonly wrong: readonly string[];
  readonly lost: readonly string[];
}

/** An attacked server, and a folder inside its roots for the session beside the attacker's. */
export interface Attacked {
  readonly serve: Pick<Serve, 'url' | 'token'>;
  readonly root: string;
}

/** Maximum milliseconds for 95 of 100 reads beside an attack, on an otherwise idle machine. */
const MOST_P95_MS = 100;
const PAUSE_MS = 25;
const SHOWN = 20;

const isLong = effort(0, 1) === 1;
const p95 = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[Math.ceil(all.length * 0.95) - 1] ?? 0;

/**
 * Starts a session beside the attacker's. Returns a function that ends it and returns its
 * observations.
 */
async function besides({ serve, root }: Attacked): Promise<() => Promise<Beside>> {
  const program = join(import.meta.dirname, '..', 'attack', 'second-session.mjs');
  const child = spawn(process.execPath, [program, serve.url, join(root, 'beside'), String(PAUSE_MS)], {
    env: { ...process.env, NODE_OPTIONS: '', PALIMPSEST_TEST_TOKEN: serve.token ?? '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  await Promise.race([once(lines, 'line'), once(child, 'exit')]);
  const last = once(lines, 'line') as Promise<[string]>;
  return async () => {
    child.stdin.end();
    const [line] = await Promise.race([
      last,
      once(child, 'exit').then(([code]) => {
        throw new Error(`the session beside the attack ended with ${code}`);
      }),
    ]);
    return JSON.parse(line) as Beside;
  };
}

/** Applies `work` to each item of a list, `atOnce` at a time. */
export async function several<T>(
  all: readonly T[],
  atOnce: number,
  work: (one: T, n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < all.length; n = next++) await work(all[n] as T, n);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** The attempts of one attack, and its failures. */
export class Attack {
  #tried = 0;
  readonly #broken: string[] = [];

  /**
   * Returns the number of attempts: the first figure in `npm test`, the second in `npm run
   * test:attack`.
   */
  size(short: number, long: number): number {
    return effort(short, long);
  }

  /**
   * Returns the items to try: all in `npm run test:attack`, `short` of them, spread over the list,
   * in `npm test`.
   */
  some<T>(all: readonly T[], short: number): readonly T[] {
    const step = isLong ? 1 : Math.max(1, all.length / short);
    return Array.from({ length: Math.floor(all.length / step) }, (_, n) => all[Math.floor(n * step)] as T);
  }

  /** Counts one attempt. `broken` describes a failure; undefined means that the defence held. */
  tried(what: string, broken: string | undefined): void {
    this.#tried += 1;
    if (broken !== undefined) this.#broken.push(`${what}: ${broken}`.slice(0, 1_000));
  }

  /**
   * Writes the figures for the table at the end of the run. Throws if nothing was tried or a
   * defence failed.
   */
  async end(name: string, from: number, beside: Beside | undefined): Promise<void> {
    const times = beside?.reads.map(([, ms]) => ms) ?? [];
    const figures = {
      name,
      from,
      to: Date.now(),
      tried: this.#tried,
      held: this.#tried - this.#broken.length,
      reads: times.length,
      p95: p95(times),
    };
    const file = process.env.PALIMPSEST_ATTACK_FIGURES;
    if (file !== undefined) await appendFile(file, `${JSON.stringify(figures)}\n`);
    const failures = [...this.#broken];
    if (failures.length > SHOWN) failures.splice(SHOWN, failures.length, `and ${failures.length - SHOWN} more`);
    if (this.#tried === 0) failures.push('nothing was tried');
    if (beside?.reads.length === 0) failures.push('the session beside it read nothing');
    failures.push(...(beside?.wrong ?? []).map((text) => `the session beside it was answered: ${text}`));
    failures.push(...(beside?.lost ?? []).map((id) => `the session beside it lost ${id}`));
    if (isLong && figures.p95 > MOST_P95_MS) failures.push(`of 100 reads beside it 5 took ${figures.p95} ms or more`);
    if (failures.length > 0)
      throw new Error(`${figures.held} of ${figures.tried} held:\n${failures.slice(0, 2 * SHOWN).join('\n')}`);
  }
}

/**
 * Defines a test that is an attack: every attempt must be repelled. If a server is attacked,
 * another session reads on it meanwhile and must lose nothing acknowledged. `npm run test:attack`
 * runs one attack at a time and also limits 95 of 100 reads to 100 ms.
 */
export function attack(name: string, run: (attack: Attack) => Promise<void>, attacked?: () => Attacked): void {
  test(name, async () => {
    const tries = new Attack();
    const over = attacked === undefined ? undefined : await besides(attacked());
    const from = Date.now();
    await run(tries).catch((error: Error) => tries.tried('the attack itself', error.stack));
    await tries.end(name, from, await over?.());
  });
}

/** Skips an attack that this machine cannot run. */
attack.skip = (name: string, ..._run: readonly unknown[]): void => test.skip(name, () => undefined);
