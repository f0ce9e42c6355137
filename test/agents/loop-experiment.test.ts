import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { LayoutName } from '../../src/assembly/assembly-record.js';
import { countTokens } from '../../src/history/ask/token-count.js';
import { stopNode } from '../../src/node/stop-node.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type CapturedCall, type Move, startLoopModel } from './loop-model.js';
import { linesOf, startNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';
import { PiProcess } from './pi-process.js';

type Harness = 'pi' | 'opencode';
/** Requests of a session, and calls in each, half of them reads, half of them commands. */
const SIZE = { prompts: 10, calls: 20 } as const;
/** How long the model thinks; a real one takes longer. */
const THINKS_MS = Number(process.env.PALIMPSEST_LOOP_THINKS_MS ?? 200);

/** The moves of one request. */
function moves(harness: Harness, root: string, prompt: number): readonly Move[] {
  const { calls } = SIZE;
  const tools = Array.from({ length: calls }, (_, i) => {
    const path = join(root, 'src', `f${prompt * calls + i}.txt`);
    if (i % 2 === 0) return { name: 'read', args: harness === 'pi' ? { path } : { filePath: path } };
    return { name: 'bash', args: { command: `cat ${path}`, ...(harness === 'pi' ? {} : { description: 'shows a file' }) } };
  });
  return [...tools.map((tool): Move => ({ tools: [tool] })), { say: `Part ${prompt} is read.` }];
}

interface Measured {
  readonly calls: readonly CapturedCall[];
  readonly times: readonly { readonly ms: number; readonly objects: number }[];
}

async function measure(harness: Harness, layout: LayoutName | undefined): Promise<Measured> {
  const withUs = layout !== undefined;
  const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
  const [root, home, dataDir] = places.map((place) => place.root) as [string, string, string];
  const model = await startLoopModel(THINKS_MS);
  const times = join(dataDir, 'times.jsonl');
  const common = { home, cwd: root, dataDir, model, env: { PALIMPSEST_LOOP_TIMES: times, PALIMPSEST_LOOP_LAYOUT: layout ?? '' } };
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
  if (withUs) await stopNode(dataDir);
  await model.close();
  await Promise.all(places.map(({ remove }) => remove()));
  const calls = model.calls.filter(({ main }) => main);
  return { calls, times: lines.map((line) => JSON.parse(line)) };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] ?? 0;

function commonPrefix(one: string, two: string): number {
  let i = 0;
  while (i < one.length && one[i] === two[i]) i++;
  return i;
}

function row(name: string, { calls, times }: Measured): string {
  const texts = calls.map(({ messages }) => JSON.stringify(messages));
  const tokens = texts.map((text) => countTokens(text));
  const prefixes = texts.slice(1).map((text, i) => commonPrefix(texts[i] as string, text) / (texts[i]?.length ?? 1));
  const late = times.filter(({ objects }) => objects >= 200).map(({ ms }) => ms);
  const ms = (part: number, of: readonly number[]): string => (of.length === 0 ? '-' : quantile(of, part).toFixed(1));
  const all = times.map((one) => one.ms);
  const between = calls.flatMap(({ sinceTools }) => sinceTools ?? []);
  return [
    name,
    calls.length,
    Math.round(sum(tokens) / tokens.length),
    Math.max(...tokens),
    Math.round(sum(calls.map(({ raw }) => Buffer.byteLength(raw))) / 1_000),
    `${Math.round((100 * sum(prefixes)) / prefixes.length)} %`,
    ms(0.5, all),
    ms(0.95, all),
    ms(0.95, late),
    ms(0.5, between),
    ms(0.95, between),
    ms(0.95, between.slice(-between.length / 3)),
  ].join(' | ');
}

describe('the same work with and without Palimpsest', () => {
  test.each(['pi', 'opencode'] as const)(
    '%s',
    async (harness) => {
      const [own, ours, chatFirst, poolLast] = [
        await measure(harness, undefined),
        await measure(harness, 'ssot'),
        await measure(harness, 'chat-first'),
        await measure(harness, 'pool-last'),
      ];
      for (const { calls, times } of [ours, chatFirst, poolLast])
        expect([calls.length, times.length]).toEqual([own.calls.length, own.calls.length]);
      const size = ({ calls }: Measured): number => sum(calls.map(({ raw }) => raw.length));
      const rows = [
        row(`${harness} alone`, own),
        row(`${harness}, layout ssot`, ours),
        row(`${harness}, layout chat-first`, chatFirst),
        row(`${harness}, layout pool-last`, poolLast),
      ];
      const report = rows.map((one) => `| ${one} |\n`).join('');
      const path = process.env.PALIMPSEST_LOOP_REPORT;
      if (path !== undefined) await writeFile(path, report, { flag: 'a' });
      // Files that were read whole stay active until the agent lets go of them, so that nothing is saved by itself; nothing may be doubled either.
      expect(size(ours)).toBeLessThan(2 * size(own));
    },
    1_500_000,
  );
});
