import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseReplayConfig, type ReplayConfig } from '../../src/lab/replay/replay-config.js';
import type { ReplayDatabase } from '../../src/lab/replay/replay-database.js';
import { type ReplayFileOptions, replayFile } from '../../src/lab/report/replay-file.js';
import type { ReplayReport } from '../../src/lab/report/replay-report.js';
import { openClient, testAddress } from './context.js';

/** The suite's node as the database of a replay that stores nothing else. */
export const suiteDatabase = (): ReplayDatabase => ({
  address: testAddress(),
  dataDir: undefined,
  close: async () => undefined,
});

/** Returns a configuration that counts tokens only on request. */
export const config = (given: Partial<Record<keyof ReplayConfig, unknown>> = {}): ReplayConfig =>
  parseReplayConfig({ tokens: false, ...given }, 'test');

let replays = 0;

/** Replays a file into the suite's node. Uses new ids each time unless a variant is given. */
export function replay(path: string, options: Partial<ReplayFileOptions> = {}): Promise<ReplayReport> {
  replays += 1;
  const variant = `${process.pid}-${Date.now()}-${replays}`;
  return replayFile(path, suiteDatabase(), { config: config(), variant, ...options });
}

/** Creates a folder for recordings that a test writes. */
export async function recordingFolder(): Promise<{
  readonly folder: string;
  write(name: string, text: string | Buffer): Promise<string>;
  remove(): Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-recordings-'));
  return {
    folder,
    write: async (name, text) => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/**
 * Creates a folder for recordings, and a client that knows their replays only from the database,
 * because it delivered no context.
 */
export async function reviewedRecordings() {
  const recordings = await recordingFolder();
  const reviewer = await openClient(recordings.folder);
  const close = async (): Promise<void> => {
    await reviewer.close();
    await recordings.remove();
  };
  return { recordings, reviewer, close };
}

/** Returns the small recordings of this repository, by format. */
export async function fixtures(): Promise<ReadonlyMap<string, readonly string[]>> {
  const root = join(import.meta.dirname, '..', 'recordings');
  const formats = await readdir(root);
  const found = await Promise.all(
    formats
      .sort()
      .map(
        async (format) =>
          [format, (await readdir(join(root, format))).sort().map((name) => join(root, format, name))] as const,
      ),
  );
  return new Map(found);
}

const START = Date.UTC(2026, 0, 5, 9);

/** A recording in the format of Claude Code, line by line. */
export class RecordingLines {
  readonly #lines: string[] = [];
  #at = START;
  #parent: string | null = null;
  readonly #model: string;

  constructor(model = 'a-model') {
    this.#model = model;
  }

  #add(
    type: 'user' | 'assistant',
    content: unknown,
    more: Readonly<Record<string, unknown>> = {},
    at?: number,
    usage?: Readonly<Record<string, unknown>>,
  ): void {
    const uuid = `u-${this.#lines.length + 1}`;
    this.#at += 1_000;
    const timestamp = new Date(at ?? this.#at).toISOString();
    const envelope = {
      parentUuid: this.#parent,
      isSidechain: false,
      userType: 'external',
      cwd: '/p',
      sessionId: 's-1',
      version: '2.1.0',
    };
    const message =
      type === 'assistant'
        ? { id: `m-${uuid}`, type: 'message', role: type, model: this.#model, content, usage }
        : { role: type, content };
    this.#lines.push(JSON.stringify({ ...envelope, type, message, uuid, timestamp, ...more }));
    this.#parent = uuid;
  }

  /** The current place of the conversation, as a target of `back`. */
  get place(): string | null {
    return this.#parent;
  }

  /** Continues from an earlier place, to which the person went back. */
  back(place: string | null): this {
    this.#parent = place;
    return this;
  }

  user(text: string, at?: number): this {
    this.#add('user', text, {}, at);
    return this;
  }

  says(text: string, at?: number, usage?: Readonly<Record<string, unknown>>): this {
    this.#add('assistant', [{ type: 'text', text }], {}, at, usage);
    return this;
  }

  /** Adds a compaction, by which the harness drops all before it. */
  compacts(summary: string): this {
    this.#add('user', summary, { isCompactSummary: true });
    return this;
  }

  thinks(thinking: string): this {
    this.#add('assistant', [{ type: 'thinking', thinking, signature: 'seal' }]);
    return this;
  }

  calls(id: string, name: string, input: unknown): this {
    this.#add('assistant', [{ type: 'tool_use', id, name, input }]);
    return this;
  }

  answers(id: string, content: string, options: { readonly failed?: boolean; readonly twin?: unknown } = {}): this {
    const { failed = false, twin } = options;
    const block = { type: 'tool_result', tool_use_id: id, content, ...(failed ? { is_error: true } : {}) };
    this.#add('user', [block], twin === undefined ? {} : { toolUseResult: twin });
    return this;
  }

  /** Adds a whole read, with its twin. */
  reads(id: string, path: string, text: string): this {
    const lines = text.replace(/\n$/, '').split('\n');
    const shown = lines.map((line, i) => `${String(i + 1).padStart(6)}→${line}`).join('\n');
    const file = { filePath: path, content: text, numLines: lines.length, startLine: 1, totalLines: lines.length };
    return this.calls(id, 'Read', { file_path: path }).answers(id, shown, { twin: { type: 'text', file } });
  }

  edits(id: string, path: string, before: string, from: string, to: string): this {
    const twin = {
      filePath: path,
      oldString: from,
      newString: to,
      originalFile: before,
      structuredPatch: [],
      userModified: false,
      replaceAll: false,
    };
    return this.calls(id, 'Edit', { file_path: path, old_string: from, new_string: to }).answers(
      id,
      `The file ${path} has been updated.`,
      {
        twin,
      },
    );
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  get text(): string {
    return `${this.#lines.join('\n')}\n`;
  }
}

/** Returns a recording of many turns, each with a read and an edit of one of a few files. */
export function longRecording(turns: number, files = 7): RecordingLines {
  const texts = new Map<string, string>();
  const lines = new RecordingLines();
  for (let turn = 0; turn < turns; turn++) {
    const path = `/p/src/file-${turn % files}.ts`;
    const text = texts.get(path) ?? `export const value = 0;\n${`// a line of ${path}\n`.repeat(20)}`;
    const next = text.replace(/value = \d+/, `value = ${turn + 1}`);
    lines
      .user(`change number ${turn}`)
      .reads(`toolu_r${turn}`, path, text)
      .edits(`toolu_e${turn}`, path, text, text.split('\n')[0] ?? '', next.split('\n')[0] ?? '');
    lines.says(`done with ${turn}`);
    texts.set(path, next);
  }
  return lines;
}
