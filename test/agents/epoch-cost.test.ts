import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Move } from './loop-model.js';
import { linesOf } from './loop-project.js';
import { loopSetting } from './loop-setting.js';
import { DIALECTS, type Harness, startLoopedAgent } from './looped-agent.js';
import { type ThinkingCall, ThinkingWire, totalsOf } from './thinking-wire.js';

/** Prompts of the session. Each has this number of tool calls and an answer: 144 model calls. */
const PROMPTS = 12;
const TOOLS = 11;
/** Number of files of the project. Each has 6,000 characters, like files that agents read. */
const FILES = 60;
/** The calls that may not cost more than those of the harness alone. */
const FIRST_CALLS = 60;
/** Calls after which the report has the cost so far. */
const SHOWN_CALLS = [1, 2, 5, 10, 30, 60] as const;
/** Maximum cost of the first call, relative to the harness alone. */
const MOST_AT_FIRST = { pi: 1.18, opencode: 1.04 } as const;
/** Changes of the session, before the prompt with this number. */
const CHANGES: ReadonlyMap<number, 'resume' | 'fork' | 'compact' | 'off' | 'on'> = new Map([
  [4, 'resume'],
  [6, 'fork'],
  [8, 'compact'],
  [9, 'off'],
  [10, 'on'],
] as const);

/** The moves of a prompt: reads, commands and an edit, then an answer. */
function movesOf(harness: Harness, root: string, prompt: number): readonly Move[] {
  const { read, shell, edit } = DIALECTS[harness];
  const file = (n: number): string => join(root, 'src', `f${n % FILES}.txt`);
  const edited = (prompt * 5) % FILES;
  const tools = Array.from({ length: TOOLS }, (_, i): Move => {
    if (i === 0) return { tools: [read(file(edited))] };
    if (i === TOOLS - 1) return { tools: [edit(file(edited), `file ${edited} part 0, line 7 of 40`, 'line seven')] };
    const n = prompt * 6 + i;
    return { tools: [i % 2 === 0 ? read(file(n)) : shell(`cat ${file(n + FILES / 2)}`)] };
  });
  return [...tools, { say: `Part ${prompt} is done.` }];
}

async function makeFiles(root: string): Promise<void> {
  await mkdir(join(root, 'src'));
  for (let i = 0; i < FILES; i++) {
    const parts = Array.from({ length: 6 }, (_, part) => linesOf(`file ${i} part ${part}`));
    await writeFile(join(root, 'src', `f${i}.txt`), parts.join(''));
  }
}

/** Lets a harness do the session, and returns the calls of each prompt. */
async function measured(harness: Harness, alone: boolean): Promise<readonly (readonly ThinkingCall[])[]> {
  // By default, the provider refuses thinking that it did not sign. A harness alone breaks that
  // rule after its own compaction, so for it the wire only counts such thinking.
  const wire = new ThinkingWire({ accepts: alone });
  const setting = await loopSetting({ wire, project: makeFiles, hasNode: !alone });
  try {
    const { root, model } = setting;
    const env = { PALIMPSEST_LOOP_LAYOUT: 'epoch' };
    const agent = await startLoopedAgent(harness, { ...setting.where, env, alone });
    setting.atEnd(() => agent.kill());
    const prompts: (readonly ThinkingCall[])[] = [];
    for (let prompt = 0; prompt < PROMPTS; prompt++) {
      const change = CHANGES.get(prompt);
      const from = wire.seen.length;
      if (change === 'resume') await agent.restart();
      if (change === 'fork') await agent.fork();
      if (change === 'compact') await agent.compact();
      // A harness alone has no such command. In OpenCode the model answers it, which costs a call.
      if ((change === 'off' || change === 'on') && !alone) await agent.command(change);
      model.add(movesOf(harness, root, prompt));
      await agent.prompt(`work on part ${prompt}`);
      prompts.push(wire.seen.slice(from));
    }
    await agent.end();
    expect(model.left).toBe(0);
    return prompts;
  } finally {
    await setting.close();
  }
}

/** Returns the total cost up to each of the first calls, relative to the harness alone. */
function startCosts(ours: readonly ThinkingCall[], alone: readonly ThinkingCall[]): readonly number[] {
  return Array.from({ length: FIRST_CALLS }, (_, i) => {
    const [own, theirs] = [ours, alone].map((calls) => totalsOf(calls.slice(0, i + 1)).cost) as [number, number];
    return own / theirs;
  });
}

describe('144 calls with twelve prompts, a resume, a fork, a compaction, and Palimpsest off and on', () => {
  test.each(['pi', 'opencode'] as const)(
    '%s',
    async (harness) => {
      const [alone, ours] = [await measured(harness, true), await measured(harness, false)];
      const [own, theirs] = [totalsOf(ours.flat()), totalsOf(alone.flat())];
      const start = startCosts(ours.flat(), alone.flat());
      const figures = {
        harness,
        calls: [own.calls, theirs.calls],
        bad: [own.returned - own.valid, theirs.returned - theirs.valid],
        refused: own.refused,
        cost: own.cost / theirs.cost,
        chars: own.chars / theirs.chars,
        same: [own.same, theirs.same],
        start: Math.max(...start),
        startAt: Object.fromEntries(SHOWN_CALLS.map((call) => [call, start[call - 1]])),
      };
      const path = process.env.PALIMPSEST_LOOP_REPORT;
      if (path !== undefined) {
        await appendFile(path, `${JSON.stringify(figures)}\n`);
        const rows = [ours, alone].map((prompts) =>
          prompts.map((calls) =>
            calls.map(({ chars, same, returned, valid, fault }) => [chars, same, returned, valid, fault]),
          ),
        );
        await appendFile(`${path}.calls`, `${JSON.stringify({ harness, rows })}\n`);
      }
      const calls = PROMPTS * (TOOLS + 1);
      expect(figures.calls).toEqual([calls + (harness === 'opencode' ? 2 : 0), calls]);
      expect([figures.bad[0], figures.refused]).toEqual([0, 0]);
      // Until a second epoch begins, only our four tools add cost. From the tenth call on, that
      // cost is within the goal.
      expect(start[0]).toBeLessThanOrEqual(MOST_AT_FIRST[harness]);
      expect(Math.max(...start.slice(9))).toBeLessThanOrEqual(1.02);
    },
    1_500_000,
  );
});
