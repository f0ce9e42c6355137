import { tmpdir } from 'node:os';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { RenderedMessage } from '../../../src/assembly/render-messages.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { LoopContext } from '../../../src/extensions/loop/loop-context.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import { composed, HandedLists } from '../../../src/extensions/sidecar/composed-list.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { filesystemId, type ObjectId } from '../../../src/objects/ids.js';
import { RETENTION } from '../../../src/session/retention.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { tokensOf } from '../../../src/values/token-estimate.js';
import { NO_NODE } from '../../../src/xtdb/no-node.js';
import { effort } from '../../support/effort.js';

/** A call of the model in one of the shapes that recordings have. */
type Act =
  | { readonly kind: 'read' | 'edit'; readonly file: number }
  | { readonly kind: 'part'; readonly file: number; readonly from: number }
  | { readonly kind: 'bash' | 'grep' | 'other'; readonly words: number };

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constantFrom('read' as const, 'edit' as const), file: fc.nat(4) }),
  fc.record({ kind: fc.constant('part' as const), file: fc.nat(4), from: fc.integer({ min: 1, max: 900 }) }),
  fc.record({
    kind: fc.constantFrom('bash' as const, 'grep' as const, 'other' as const),
    words: fc.integer({ min: 1, max: 12 }),
  }),
);

/** Turns of a user, each with the calls that follow. */
const session = fc.array(fc.array(act, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 7 });

const FOLDERS = ['', 'src/', 'packages/server/src/handlers/', 'a/very/deeply/nested/folder/of/a/large/repository/'];
const pathOf = (file: number): string => `/p/${FOLDERS[file % FOLDERS.length]}file-${file}.ts`;

/** Outputs differ in every line, so that no text contains another one. */
const outputOf = (nth: number): string =>
  Array.from({ length: 30 }, (_line, i) => `output ${nth}, line ${i}, of a command or a search`).join('\n');

/** A dropped text: its call, and the text of the result. */
interface Made {
  readonly id: string;
  readonly tool: string;
  /** The result, and what an edit wrote. */
  readonly texts: readonly string[];
  readonly file: number | undefined;
}

/** A harness's list that grows by random calls. */
class Harness {
  readonly messages: ReportedMessage[] = [];
  readonly made: Made[] = [];
  readonly #texts = new Map<number, string>();

  says(text: string): void {
    this.messages.push({ role: 'user', content: text });
  }

  /** The current text of a file. */
  textOf(file: number): string {
    const known = this.#texts.get(file) ?? outputOf(1_000 + file).replaceAll('output', 'text of file');
    this.#texts.set(file, known);
    return known;
  }

  calls(one: Act): void {
    const nth = this.made.length;
    if ('words' in one) {
      const words = Array.from({ length: one.words }, (_word, i) => `word${nth}-${i}`).join(' ');
      if (one.kind === 'bash') this.#add('bash', { command: `npm run ${words}` }, outputOf(nth));
      else if (one.kind === 'grep') this.#add('grep', { pattern: words, path: '/p' }, outputOf(nth));
      else this.#add('issue_lookup', { number: nth, title: words }, outputOf(nth));
    } else if (one.kind === 'part')
      this.#add('read', { path: pathOf(one.file), offset: one.from, limit: 30 }, outputOf(nth));
    else if (one.kind === 'read') this.#add('read', { path: pathOf(one.file) }, this.textOf(one.file), one.file);
    else {
      const before = this.textOf(one.file);
      const [from = ''] = before.split('\n');
      // Long enough to be shown in a block.
      const to = `the edit ${nth} of file ${one.file} has this first line${' as the request asked for'.repeat(3)}`;
      this.#texts.set(one.file, before.replace(from, to));
      this.#add('edit', { path: pathOf(one.file), oldText: from, newText: to }, `edit ${nth} is done`, one.file);
    }
  }

  #add(tool: string, args: Readonly<Record<string, unknown>>, text: string, file?: number): void {
    const id = `call_${this.made.length}_${'0123456789abcdef'.repeat(2)}`;
    this.messages.push({ role: 'assistant', content: null, tool_calls: [{ id, name: tool, arguments: args }] });
    this.messages.push({
      role: 'tool',
      tool_call_id: id,
      content: text,
      is_error: false,
      cwd: '/p',
      ...(file === undefined ? {} : { files: [{ path: pathOf(file), content: this.textOf(file), complete: true }] }),
    });
    const { newText } = args;
    this.made.push({ id, tool, texts: [text, ...(typeof newText === 'string' ? [newText] : [])], file });
  }
}

/** The texts of a request: ours, and those of the harness's messages that stay. */
interface Request {
  readonly own: readonly string[];
  readonly all: string;
}

const textsOf = ({ parts }: RenderedMessage): readonly string[] => parts.map(({ text }) => text);

function requestOf(messages: readonly ReportedMessage[], context: LoopContext): Request {
  const own: string[] = [];
  const texts = composed<readonly string[]>(
    {
      places: messages.map((_message, i) => i),
      messages: messages.map(({ content, tool_calls: calls = [] }) => [
        String(content ?? ''),
        ...calls.map(({ name, arguments: args }) => `${name} ${JSON.stringify(args)}`),
      ]),
      said: (message) => {
        own.push(...textsOf(message));
        return textsOf(message);
      },
      withReferences: (_message, lines) => [...lines.values()],
    },
    context,
  );
  return { own, all: texts.flat().join('\n') };
}

/** A line that stands for a call and its result: its name, and its arguments. */
interface Reference {
  readonly name: string;
  readonly tool: string;
  readonly args: string | undefined;
}

function referencesIn({ own }: Request): readonly Reference[] {
  return own
    .flatMap((text) => text.split('\n'))
    .flatMap((line) => {
      const [, name, tool, , args] =
        /^(?:.*: )?toolcall_ref id=(\S+) tool=(\S+) status=(\S+)(?: args=(.*))?$/.exec(line) ?? [];
      return name === undefined || tool === undefined ? [] : [{ name, tool, args }];
    });
}

const SHORT = { shown: 4, used: 2, mostStretch: 1, kinds: { ...RETENTION.kinds, edit: 1 } };
let opened = 0;

/** Opens a session in the loop of a harness, without a database. */
async function openLoop(): Promise<{ readonly loop: LoopSession; readonly close: () => Promise<void> }> {
  opened += 1;
  const client = await ContextClient.create({
    address: NO_NODE,
    roots: [tmpdir()],
    cwd: '/',
    filesystemId: filesystemId('loop-properties'),
    agentFilesystemId: filesystemId(`agent-${opened}`),
    // Short lifetimes, so that a short session drops texts.
    policy: { ...DEFAULT_POLICY, retention: 'use', uses: SHORT },
    track: false,
    soleWriter: true,
    shareSessions: true,
    what: 'a test',
  });
  const loop = new LoopSession(client, { id: `s-${opened}`, delivered: 'replay', layout: 'epoch', guided: true });
  return {
    loop,
    close: async () => {
      await loop.close();
      await client.close();
    },
  };
}

/** Makes the next model call's request, and records it as handed out. */
async function nextRequest(loop: LoopSession, { messages }: Harness): Promise<Request> {
  const context = await loop.context({ messages: [...messages], system: null });
  if (context === undefined) throw new Error('a list without a user message');
  const request = requestOf(messages, context);
  await loop.handed(new HandedLists().of([]));
  return request;
}

/** Runs a random session, with a border at each message of the user. Returns its last request. */
async function lastRequest(loop: LoopSession, harness: Harness, turns: readonly (readonly Act[])[]): Promise<Request> {
  for (const [nth, acts] of turns.entries()) {
    loop.tidy();
    harness.says(`request ${nth}`);
    for (const one of acts) {
      await nextRequest(loop, harness);
      harness.calls(one);
    }
  }
  loop.tidy();
  harness.says('the last request');
  return nextRequest(loop, harness);
}

const hasAll = ({ all }: Request, texts: readonly string[]): boolean => texts.every((text) => all.includes(text));

/** Whether a request has the texts of a call, or the current text of the file that it read. */
const shows = (request: Request, { texts, tool, file }: Made, harness: Harness): boolean =>
  hasAll(request, texts) || (tool === 'read' && file !== undefined && hasAll(request, [harness.textOf(file)]));

describe('a request of layout epoch', () => {
  test('names each call without its result by its arguments, in at most 12 tokens on average', async () => {
    const lengths: number[] = [];
    await fc.assert(
      fc.asyncProperty(session, async (turns) => {
        const { loop, close } = await openLoop();
        try {
          const harness = new Harness();
          const references = referencesIn(await lastRequest(loop, harness, turns));
          const marks = references.map(({ args = '' }) => args);
          expect(marks.filter((mark) => mark === '')).toEqual([]);
          // A session of one kind of call may have long marks only.
          lengths.push(...marks.map((mark) => tokensOf(mark.length)));
        } finally {
          await close();
        }
      }),
      { numRuns: effort(25, 300) },
    );
    expect(lengths.length).toBeGreaterThan(50);
    expect(lengths.reduce((sum, one) => sum + one, 0) / lengths.length).toBeLessThanOrEqual(12);
  });

  test('has every active result, and a name by which activate gives each dropped text', async () => {
    let dropped = 0;
    await fc.assert(
      fc.asyncProperty(session, fc.nat(), async (turns, nth) => {
        const { loop, close } = await openLoop();
        try {
          const harness = new Harness();
          const request = await lastRequest(loop, harness, turns);
          const references = referencesIn(request);
          const isActive = (id: string): boolean => loop.session?.state.isActive(id as ObjectId) === true;
          const lacking = harness.made.filter((one) => !shows(request, one, harness));
          expect(lacking.filter(({ id }) => isActive(id))).toEqual([]);
          for (const { id, tool } of lacking) {
            const found = references.filter(({ name }) => id.startsWith(name));
            expect(found.map((one) => one.tool)).toEqual([tool]);
          }
          const one = lacking[nth % Math.max(1, lacking.length)];
          if (one === undefined) return;
          dropped += 1;
          const name = references.find((reference) => one.id.startsWith(reference.name))?.name ?? '';
          const report = await loop.verb('activate', [name], undefined);
          expect(report.text).toContain(name);
          expect(report.ok).toBe(true);
          const after = await nextRequest(loop, harness);
          expect(shows(after, one, harness) ? '' : after.all).toBe('');
        } finally {
          await close();
        }
      }),
      { numRuns: effort(25, 300) },
    );
    expect(dropped).toBeGreaterThan(10);
  });

  test('names each file whose current text it lacks by an id and a path of that file', async () => {
    let lacked = 0;
    await fc.assert(
      fc.asyncProperty(session, async (turns) => {
        const { loop, close } = await openLoop();
        try {
          const harness = new Harness();
          const { own, all } = await lastRequest(loop, harness, turns);
          const files = [...new Set(harness.made.flatMap(({ file }) => file ?? []))];
          for (const file of files.filter((one) => !all.includes(harness.textOf(one)))) {
            lacked += 1;
            const line = new RegExp(`^id=(\\S+) type=file path=${pathOf(file)} `, 'm').exec(own.join('\n'));
            const [byId, byPath] = [line?.[1] ?? '', pathOf(file)].map((name) => loop.session?.resolve(name));
            expect(byId).toEqual({ kind: 'found', id: expect.anything() });
            expect(byPath).toEqual(byId);
          }
        } finally {
          await close();
        }
      }),
      { numRuns: effort(25, 300) },
    );
    expect(lacked).toBeGreaterThan(10);
  });
});
