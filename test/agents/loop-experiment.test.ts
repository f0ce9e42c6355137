import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { countTokens } from '../../src/review/ask/token-count.js';
import type { CapturedCall, Move } from './loop-model.js';
import { linesOf } from './loop-project.js';
import { loopSetting } from './loop-setting.js';
import { DIALECTS, type Harness, startLoopedAgent } from './looped-agent.js';
import { type ThinkingCall, ThinkingWire, totalsOf } from './thinking-wire.js';

/** Requests of a session, and calls in each, half of them reads, half of them commands. */
const SIZE = { prompts: 10, calls: 20 } as const;
/** How long the model thinks; a real one takes longer. */
const THINKS_MS = Number(process.env.PALIMPSEST_LOOP_THINKS_MS ?? 200);
/** The layouts that are compared with the harness alone. */
const LAYOUTS = (process.env.PALIMPSEST_LOOP_LAYOUTS ?? 'ssot,pool-last').split(',');

/** The moves of one request. */
function moves(harness: Harness, root: string, prompt: number): readonly Move[] {
  const { calls } = SIZE;
  const { read, shell } = DIALECTS[harness];
  const tools = Array.from({ length: calls }, (_, i) => {
    const path = join(root, 'src', `f${prompt * calls + i}.txt`);
    return i % 2 === 0 ? read(path) : shell(`cat ${path}`);
  });
  return [...tools.map((tool): Move => ({ tools: [tool] })), { say: `Part ${prompt} is read.` }];
}

interface Measured {
  readonly calls: readonly CapturedCall[];
  /** The same calls as the provider sees them. */
  readonly seen: readonly ThinkingCall[];
  readonly times: readonly { readonly ms: number; readonly objects: number }[];
}

async function measure(harness: Harness, layout: string | undefined): Promise<Measured> {
  const { prompts, calls: perPrompt } = SIZE;
  const wire = new ThinkingWire({ accepts: true });
  const project = async (root: string): Promise<void> => {
    await mkdir(join(root, 'src'));
    for (let i = 0; i < prompts * perPrompt; i++) await writeFile(join(root, 'src', `f${i}.txt`), linesOf(`file ${i}`));
  };
  const alone = layout === undefined;
  const setting = await loopSetting({ wire, thinksMs: THINKS_MS, project, hasNode: !alone });
  try {
    const { root, dataDir, model } = setting;
    const times = join(dataDir, 'times.jsonl');
    const env = { PALIMPSEST_LOOP_TIMES: times, PALIMPSEST_LOOP_LAYOUT: layout ?? '' };
    const agent = await startLoopedAgent(harness, { ...setting.where, env, alone });
    setting.atEnd(() => agent.kill());
    for (let prompt = 0; prompt < prompts; prompt++) {
      model.add(moves(harness, root, prompt));
      await agent.prompt(`read part ${prompt}`);
    }
    await agent.end();
    const lines = alone ? [] : (await readFile(times, 'utf8')).trim().split('\n');
    const calls = model.calls.filter(({ main }) => main);
    return { calls, seen: wire.seen, times: lines.map((line) => JSON.parse(line)) };
  } finally {
    await setting.close();
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] ?? 0;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function rowOf(name: string, measured: Measured, alone: Measured): string {
  const { calls, seen, times } = measured;
  const tokens = ({ calls: all }: Measured): readonly number[] =>
    all.map(({ messages }) => countTokens(JSON.stringify(messages)));
  const [own, theirs] = [tokens(measured), tokens(alone)];
  const [totals, before] = [totalsOf(seen), totalsOf(alone.seen)];
  const same = seen.slice(1).map((call, i) => call.same / (seen[i]?.chars ?? 1));
  const late = times.filter(({ objects }) => objects >= 200).map(({ ms }) => ms);
  const ms = (part: number, of: readonly number[]): string => (of.length === 0 ? '-' : quantile(of, part).toFixed(1));
  const all = times.map((one) => one.ms);
  const between = calls.flatMap(({ sinceTools }) => sinceTools ?? []);
  const lateBetween = between.slice((-between.length * 2) / 3);
  return [
    name,
    calls.length,
    Math.round(sum(own) / own.length),
    Math.max(...own),
    `${(sum(own) / sum(theirs)).toFixed(2)}x`,
    percent(sum(same) / same.length),
    `${totals.valid} of ${totals.returned}`,
    `${(totals.cost / before.cost).toFixed(2)}x`,
    ...[ms(0.5, all), ms(0.95, all), ms(0.95, late)],
    ...[ms(0.5, between), ms(0.95, between), ms(0.5, lateBetween), ms(0.95, lateBetween)],
  ].join(' | ');
}

describe('the same work with and without Palimpsest', () => {
  test.each(['pi', 'opencode'] as const)(
    '%s',
    async (harness) => {
      const alone = await measure(harness, undefined);
      const rows = [rowOf(`${harness} alone`, alone, alone)];
      for (const layout of LAYOUTS) {
        const ours = await measure(harness, layout);
        expect([ours.calls.length, ours.times.length]).toEqual([alone.calls.length, alone.calls.length]);
        // Files that were read whole stay active until the agent deactivates them. So the loop
        // saves nothing by itself, but it must not double the characters sent.
        expect(totalsOf(ours.seen).chars).toBeLessThan(2 * totalsOf(alone.seen).chars);
        rows.push(rowOf(`${harness}, layout ${layout}`, ours, alone));
      }
      const path = process.env.PALIMPSEST_LOOP_REPORT;
      if (path !== undefined) await writeFile(path, rows.map((row) => `| ${row} |\n`).join(''), { flag: 'a' });
    },
    1_500_000,
  );
});
