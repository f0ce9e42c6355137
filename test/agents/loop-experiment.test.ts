import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { countTokens } from '../../src/review/ask/token-count.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type CapturedCall, type Move, startLoopModel } from './loop-model.js';
import { linesOf, startNode, stopUnusedNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';
import { PiProcess } from './pi-process.js';
import { type ThinkingCall, ThinkingWire, totalsOf } from './thinking-wire.js';

type Harness = 'pi' | 'opencode';
/** Requests of a session, and calls in each, half of them reads, half of them commands. */
const SIZE = { prompts: 10, calls: 20 } as const;
/** How long the model thinks; a real one takes longer. */
const THINKS_MS = Number(process.env.PALIMPSEST_LOOP_THINKS_MS ?? 200);
/** The layouts that are compared with the harness alone. */
const LAYOUTS = (process.env.PALIMPSEST_LOOP_LAYOUTS ?? 'ssot,pool-last').split(',');

/** The moves of one request. */
function moves(harness: Harness, root: string, prompt: number): readonly Move[] {
  const { calls } = SIZE;
  const tools = Array.from({ length: calls }, (_, i) => {
    const path = join(root, 'src', `f${prompt * calls + i}.txt`);
    if (i % 2 === 0) return { name: 'read', args: harness === 'pi' ? { path } : { filePath: path } };
    return {
      name: 'bash',
      args: { command: `cat ${path}`, ...(harness === 'pi' ? {} : { description: 'shows a file' }) },
    };
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
  const withUs = layout !== undefined;
  const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
  const [root, home, dataDir] = places.map((place) => place.root) as [string, string, string];
  const wire = new ThinkingWire({ accepts: true });
  const model = await startLoopModel(THINKS_MS, wire);
  const times = join(dataDir, 'times.jsonl');
  const common = {
    home,
    cwd: root,
    dataDir,
    model,
    env: { PALIMPSEST_LOOP_TIMES: times, PALIMPSEST_LOOP_LAYOUT: layout ?? '' },
  };
  await mkdir(join(root, 'src'));
  const { prompts, calls: perPrompt } = SIZE;
  for (let i = 0; i < prompts * perPrompt; i++) await writeFile(join(root, 'src', `f${i}.txt`), linesOf(`file ${i}`));
  if (withUs) await startNode(dataDir);
  const built = (name: string): string | undefined => (withUs ? join(dirname(cliPath), name) : undefined);
  const agent = await (async () => {
    if (harness === 'pi') {
      const pi = await PiProcess.start({ ...common, extension: built('pi.js') });
      return { prompt: (text: string) => pi.prompt(text), end: () => pi.end() };
    }
    const server = await OpencodeServer.start({ ...common, plugin: built('opencode.js') });
    const session = await server.newSession();
    return { prompt: (text: string) => server.prompt(session, text), end: () => server.end() };
  })();
  for (let prompt = 0; prompt < prompts; prompt++) {
    model.add(moves(harness, root, prompt));
    await agent.prompt(`read part ${prompt}`);
  }
  await agent.end();
  const lines = withUs ? (await readFile(times, 'utf8')).trim().split('\n') : [];
  if (withUs) await stopUnusedNode(dataDir);
  await model.close();
  await Promise.all(places.map(({ remove }) => remove()));
  const calls = model.calls.filter(({ main }) => main);
  return { calls, seen: wire.seen, times: lines.map((line) => JSON.parse(line)) };
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
        // saves nothing by itself, but it must not double anything, either.
        expect(totalsOf(ours.seen).chars).toBeLessThan(2 * totalsOf(alone.seen).chars);
        rows.push(rowOf(`${harness}, layout ${layout}`, ours, alone));
      }
      const path = process.env.PALIMPSEST_LOOP_REPORT;
      if (path !== undefined) await writeFile(path, rows.map((row) => `| ${row} |\n`).join(''), { flag: 'a' });
    },
    1_500_000,
  );
});
