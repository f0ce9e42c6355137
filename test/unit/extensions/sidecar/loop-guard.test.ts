import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { HarnessList } from '../../../../src/extensions/sidecar/composed-list.js';
import { LoopGuard } from '../../../../src/extensions/sidecar/loop-guard.js';
import { SidecarProcess } from '../../../../src/extensions/sidecar/sidecar-process.js';
import { TroubleFile } from '../../../../src/extensions/sidecar/trouble-file.js';
import { loopTroubles } from '../../../../src/process/process-reports.js';

type Plain = {
  readonly role: string;
  readonly content: string;
};

/** Programs that replace our sidecar. */
const PROGRAMS = {
  'never answers': 'process.stdin.on("end", () => process.exit(0)).resume();',
  'ends at once': 'process.stderr.write("out of luck"); process.exit(3);',
  'answers with an error': `
    const { createInterface } = require("node:readline");
    let first = true;
    createInterface({ input: process.stdin }).on("line", (line) => {
      if (first) { first = false; return; }
      console.log(JSON.stringify({ id: JSON.parse(line).id, error: { message: "no such luck" } }));
    });`,
} as const;

/**
 * Answers each context with a text or a reference to the previous answer, and records its input.
 */
const SERVES = `
  const { createInterface } = require("node:readline");
  const text = "a text that is long enough to be named by its place in the answer before, and not to be sent once more";
  const known = new Set();
  let first = true;
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (first) { first = false; return; }
    const { id, call, params } = JSON.parse(line);
    if (call !== "context") { console.log(JSON.stringify({ id, result: { kept: true } })); return; }
    const { session, prefix, forgotten } = params;
    if (forgotten) known.delete(session);
    const part = known.has(session) ? [0] : text;
    known.add(session);
    const said = (shown) => ({ section: "chat", role: "user", parts: [{ text: shown }] });
    const before = [said(part), said(JSON.stringify({ prefix, forgotten }))];
    const result = { session, from: 1, before, inserts: [], after: [], references: [], pool: 0, active: 0 };
    console.log(JSON.stringify({ id, result }));
  });`;

/**
 * Leaves the first context unanswered. Answers later ones with a text of ours at the given place,
 * and records their input.
 */
const LATE_ONCE = (place: 'before' | 'after'): string => `
  const { createInterface } = require("node:readline");
  const { appendFileSync } = require("node:fs");
  const { join } = require("node:path");
  let contexts = 0;
  let first = true;
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (first) { first = false; return; }
    const { id, call, params } = JSON.parse(line);
    const asked = [call, params.event?.kind ?? params.ownList ?? null];
    appendFileSync(join(__dirname, "asked.txt"), JSON.stringify(asked) + "\\n");
    if (call !== "context") { console.log(JSON.stringify({ id, result: { kept: true } })); return; }
    contexts += 1;
    if (contexts === 1) return;
    const ours = [{ section: "chat", role: "user", parts: [{ text: "ours" }] }];
    const lists = { before: [], inserts: [], after: [], references: [] };
    const result = { session: params.session, from: 0, ...lists, pool: 0, active: 0 };
    result.${place} = ours;
    console.log(JSON.stringify({ id, result }));
  });`;

/** A trouble file whose writes the test can await. The loop does not wait for them. */
class AwaitedTrouble extends TroubleFile {
  written: Promise<void> = Promise.resolve();

  override write(trouble: Parameters<TroubleFile['write']>[0]): Promise<void> {
    this.written = super.write(trouble);
    return this.written;
  }
}

describe('failures of a harness’s sidecar', () => {
  let folder: string;
  let notices: string[];
  let sidecar: SidecarProcess;
  let trouble: AwaitedTrouble;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-unit-'));
    notices = [];
    trouble = new AwaitedTrouble(folder, 'pi');
  });
  afterEach(async () => {
    await sidecar.end(2_000);
    await trouble.written;
    await rm(folder, { recursive: true, force: true });
  });

  const said: HarnessList<Plain>['said'] = ({ parts }) => ({
    role: 'user',
    content: parts.map(({ text }) => text).join(),
  });
  const own: HarnessList<Plain> = {
    list: { session: 's', messages: [{ role: 'user', content: 'go' }] },
    places: [0],
    messages: [{ role: 'user', content: 'go' }],
    said,
    kept: () => ({ messages: [{ role: 'user', content: 'go' }], said }),
    withReferences: (message) => message,
    idOf: ({ content }) => content,
    withoutThoughts: (message) => message,
  };

  async function loopWith(program: string, limitMs = 400): Promise<LoopGuard> {
    const path = join(folder, 'program.cjs');
    await writeFile(path, program);
    sidecar = new SidecarProcess({
      node: process.execPath,
      program: path,
      env: process.env,
      beginning: { what: 'pi', cwd: folder, roots: [folder] },
    });
    return new LoopGuard({ sidecar, trouble, limitMs, notify: (line) => notices.push(line) });
  }

  test.each(Object.entries(PROGRAMS))(
    "let the harness's own list through within the limit and notify the user once if it %s",
    async (_what, program) => {
      const loop = await loopWith(program);
      const begun = performance.now();
      expect(await loop.pass(() => own)).toBeUndefined();
      expect(await loop.pass(() => own)).toBeUndefined();
      // Far above the limit of 0.4 s, and far below the default limit.
      expect(performance.now() - begun).toBeLessThan(25_000);
      expect(notices).toHaveLength(1);
      const verb = loop.verb({ session: 's', verb: 'activate', ids: ['x'], callId: 'call_1' });
      await expect(verb).rejects.toThrow('activate is not available at the moment');
      await trouble.written;
      const [kept] = await loopTroubles(folder);
      expect(kept).toMatchObject({ what: 'pi', session: 's', passedThrough: 2, pid: process.pid });
    },
  );

  /** A growing list of a harness. Its reported messages are the same objects in every list. */
  const turns: readonly Plain[] = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: 'looking' },
    { role: 'assistant', content: 'looking again' },
    { role: 'user', content: 'and now?' },
  ];
  const listOf = (length: number): HarnessList<Plain> => {
    const messages = turns.slice(0, length);
    const copies = messages.map((message) => ({ ...message }));
    const places = messages.map((_, i) => i);
    return { ...own, list: { session: 's', messages }, places, messages, kept: () => ({ messages: copies, said }) };
  };
  /** Sends a model call as the extensions do. */
  const sentBy = async (loop: LoopGuard, length: number) => {
    const list = listOf(length);
    const passage = await loop.pass(() => list);
    return (passage?.messages ?? loop.own(list)).map(({ content }) => content);
  };
  const asked = async () =>
    (await readFile(join(folder, 'asked.txt'), 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));

  test('keep sending the harness’s own list until the next user message', async () => {
    const loop = await loopWith(LATE_ONCE('before'), 1_000);
    expect(await sentBy(loop, 1)).toEqual(['go']);
    expect(await sentBy(loop, 2)).toEqual(['go', 'looking']);
    expect(await sentBy(loop, 3)).toEqual(['go', 'looking', 'looking again']);
    expect(await sentBy(loop, 4)).toEqual(['ours', 'go', 'looking', 'looking again', 'and now?']);
    expect(notices).toHaveLength(1);
    expect((await asked()).filter(([call]) => call === 'event')).toEqual([['event', 'bypassed']]);
  });

  test('switch to our list at once if it begins with the sent list', async () => {
    const loop = await loopWith(LATE_ONCE('after'), 1_000);
    expect(await sentBy(loop, 1)).toEqual(['go']);
    expect(await sentBy(loop, 2)).toEqual(['go', 'looking', 'ours']);
  });

  test("show our list at once when the user turns Palimpsest on, even after the harness's own", async () => {
    const loop = await loopWith(LATE_ONCE('before'), 1_000);
    expect(await sentBy(loop, 1)).toEqual(['go']);
    await loop.toggled('s', true);
    expect(await sentBy(loop, 2)).toEqual(['ours', 'go', 'looking']);
  });

  test('kill a process that writes an invalid answer, without waiting and without other damage', async () => {
    const loop = await loopWith(
      'process.stdin.once("data", () => console.log("Warning: none of your business"));',
      30_000,
    );
    expect(await loop.pass(() => own)).toBeUndefined();
    expect(notices[0]).toContain('gone');
  });

  test('treat a missing program like any other failure', async () => {
    await loopWith('');
    const nowhere = new SidecarProcess({
      node: join(folder, 'no-node'),
      program: 'none',
      env: process.env,
      beginning: { what: 'pi', cwd: folder, roots: [folder] },
    });
    const loop = new LoopGuard({
      sidecar: nowhere,
      trouble,
      limitMs: 400,
      notify: (line) => notices.push(line),
    });
    expect(await loop.pass(() => own)).toBeUndefined();
    expect(notices[0]).toContain('gone');
  });

  test('keep the sent lists of recent sessions only; other sessions send and receive whole texts', async () => {
    const loop = await loopWith(SERVES, 20_000);
    const text =
      'a text that is long enough to be named by its place in the answer before, and not to be sent once more';
    const passes = async (session: string) => {
      const passage = await loop.pass(() => ({ ...own, list: { ...own.list, session } }));
      const [given, asked] = passage?.messages.map(({ content }) => content) ?? [];
      expect(given).toBe(text);
      return JSON.parse(asked ?? '{}') as { readonly prefix: number; readonly forgotten?: boolean };
    };
    const names = Array.from({ length: 40 }, (_, i) => `s${i}`);
    for (const name of names) expect(await passes(name)).toEqual({ prefix: 0, forgotten: true });
    expect(await passes('s39')).toEqual({ prefix: 1 });
    expect(await passes('s0')).toEqual({ prefix: 0, forgotten: true });
    expect(await passes('s0')).toEqual({ prefix: 1 });
  });
});
