import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { BOUNDARIES } from '../attack/boundaries.mjs';

const tests = join(import.meta.dirname, '..');
const PAUSE_MS = 50;
const MOST_P95_MS = 100;

const p95 = (all) => [...all].sort((a, b) => a - b)[Math.ceil(all.length * 0.95) - 1];

/** Starts a server on the suite's node and a session that reads on it until it is ended. */
async function startBeside(root) {
  const cli = join(tests, '..', 'dist', 'cli.js');
  const flags = ['--port', '0', '--root', root, '--data', process.env.PALIMPSEST_TEST_DATA];
  flags.push('--profile', process.env.PALIMPSEST_TEST_PROFILE ?? 'memory');
  const serve = spawn(process.execPath, [cli, 'serve', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  let url;
  for await (const line of createInterface({ input: serve.stderr })) {
    url ??= /listens on (\S+)/.exec(line)?.[1];
    const token = /Bearer (\S+)/.exec(line)?.[1];
    if (token === undefined) continue;
    serve.stderr.resume();
    const program = join(tests, 'attack', 'second-session.mjs');
    const child = spawn(process.execPath, [program, url, join(root, 'beside'), String(PAUSE_MS)], {
      env: { ...process.env, PALIMPSEST_TEST_TOKEN: token },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (piece) => {
      said += piece;
    });
    const closed = once(child, 'close');
    return async () => {
      child.stdin.end();
      await closed;
      serve.kill('SIGTERM');
      return JSON.parse(said.trimEnd().split('\n').at(-1));
    };
  }
  throw new Error('the server beside the attacks ended before it listened');
}

/**
 * Prints the number of attacks and how many failed. Attacks of test/attack count by the figures
 * that they write, the suites of `BOUNDARIES` by their tests. In `npm run test:attack` a separate
 * session reads all the while. The run fails if that session loses a read or waits too long.
 */
export default class AttackTable {
  #folder = mkdtempSync(join(tmpdir(), 'palimpsest-attack-'));
  #figures = join(this.#folder, 'figures');
  #listed = [];
  /**
   * Times of suites with processes of their own. Reads then wait for the CPU, not for the attacked
   * server.
   */
  #apart = [];
  #endBeside;
  #error;

  constructor() {
    writeFileSync(this.#figures, '');
    process.env.PALIMPSEST_ATTACK_FIGURES = this.#figures;
  }

  async onRunStart() {
    if (process.env.PALIMPSEST_TEST_BESIDE === '1') this.#endBeside = await startBeside(this.#folder);
  }

  onTestResult({ path, context }, { numPassingTests, numFailingTests, perfStats: { start, end } }) {
    if (context.config.displayName?.name === 'attack-apart') this.#apart.push({ from: start, to: end });
    const suite = relative(tests, path).replace(/\.test\.ts$/, '');
    const [name] = Object.entries(BOUNDARIES).find(([, suites]) => suites.includes(suite)) ?? [];
    if (name === undefined || numPassingTests + numFailingTests === 0) return;
    this.#listed.push({ name, from: start, to: end, tried: numPassingTests + numFailingTests, held: numPassingTests });
  }

  async onRunComplete() {
    const own = readFileSync(this.#figures, 'utf8').split('\n').filter(Boolean).map(JSON.parse);
    const beside = await this.#endBeside?.();
    rmSync(this.#folder, { recursive: true, force: true });
    if (own.length === 0) return;
    const all = [...own, ...this.#listed];
    const measured = (beside?.reads ?? []).filter(
      ([at]) => !this.#apart.some(({ from, to }) => from <= at && at <= to),
    );
    const rows = [...new Set(all.map(({ name }) => name))].sort().map((name) => {
      const parts = all.filter((part) => part.name === name);
      const sum = (field) => parts.reduce((total, part) => total + part[field], 0);
      const meanwhile = measured
        .filter(([at]) => parts.some(({ from, to }) => from <= at && at <= to))
        .map(([, ms]) => ms);
      const seconds = parts.reduce((total, { from, to }) => total + (to - from) / 1_000, 0);
      return {
        name,
        tried: sum('tried'),
        held: sum('held'),
        seconds,
        p95: Math.max(0, p95(meanwhile) ?? 0, ...parts.map((part) => part.p95 ?? 0)),
      };
    });
    const total = rows.reduce((sum, { tried, held }) => ({ tried: sum.tried + tried, held: sum.held + held }), {
      tried: 0,
      held: 0,
    });
    console.log(
      `\n${'attack'.padEnd(20)}${'tried'.padStart(8)}${'held'.padStart(8)}` +
        `${'seconds'.padStart(10)}${'p95 beside, ms'.padStart(16)}`,
    );
    for (const { name, tried, held, seconds, p95: ms } of rows)
      console.log(
        `${name.padEnd(20)}${String(tried).padStart(8)}${String(held).padStart(8)}` +
          `${seconds.toFixed(1).padStart(10)}${(ms === 0 ? '–' : ms.toFixed(1)).padStart(16)}`,
      );
    console.log(`${'all'.padEnd(20)}${String(total.tried).padStart(8)}${String(total.held).padStart(8)}`);
    const took = all.length === 0 ? 0 : Math.max(...all.map(({ to }) => to)) - Math.min(...all.map(({ from }) => from));
    console.log(`in ${(took / 60_000).toFixed(1)} minutes`);
    this.#judge(rows, beside, measured);
  }

  #judge(rows, beside, measured) {
    if (beside === undefined) return;
    console.log(
      `beside them ${beside.reads.length} reads, ${measured.length} of them measured, ` +
        `p95 ${p95(measured.map(([, ms]) => ms))} ms; ${beside.lost.length} lost, ${beside.wrong.length} wrong`,
    );
    const slow = rows.filter(({ p95: ms }) => ms > MOST_P95_MS).map(({ name, p95: ms }) => `${name}: ${ms} ms`);
    const failures = [
      ...slow.map((text) => `a read beside an attack took more than ${MOST_P95_MS} ms in more than 5 of 100: ${text}`),
      ...beside.lost.map((id) => `an acknowledged read beside the attacks was lost: ${id}`),
      ...beside.wrong.map((text) => `a read beside the attacks was answered: ${text}`),
    ];
    if (failures.length > 0) this.#error = new Error(failures.slice(0, 20).join('\n'));
  }

  getLastError() {
    return this.#error;
  }
}
