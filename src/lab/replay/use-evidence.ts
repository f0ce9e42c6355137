import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { fileObjectId } from '../../client/file-access.js';
import type { CanonicalPath, FilesystemId, ObjectId, SessionId } from '../../objects/ids.js';
import { filesystemSource } from '../../objects/source.js';
import type { SessionState } from '../../session/session-state.js';
import { usableLines } from '../../session/used-lines.js';
import { counted } from '../../values/counted.js';

/** Where a file's text was when the agent used the file. */
export const STANDINGS = ['active', 'shown', 'one-step', 'absent'] as const;
export type Standing = (typeof STANDINGS)[number];

/** One use of a file by the agent. */
export const fileUseSchema = z.strictObject({
  session: z.string(),
  turn: z.int().nonnegative(),
  step: z.int().nonnegative().describe('The last step before it'),
  use: z.enum(['edited', 'quoted']),
  path: z.string(),
  object: z.string().describe('The id that the file has or would have'),
  standing: z
    .enum(STANDINGS)
    .describe(
      '`active`: the file was in the context. `shown`: a tool result in the context showed it. `one-step`: only ' +
        'its line was, one activate away. `absent`: the session did not know it',
    ),
});
export type FileUse = z.infer<typeof fileUseSchema>;

/** Maximum number of uses that are stored individually. Further uses are only counted. */
const KEPT_USES = 20_000;
/** Maximum number of tool results that are remembered per file. */
const REMEMBERED_RESULTS = 8;

/** Records which files the agent edited or quoted, and whether its context had their texts then. */
export class UseEvidence {
  readonly #filesystem: FilesystemId;
  readonly #lines = new QuotedLines();
  readonly #results = new Map<string, ObjectId[]>();
  /** The first uses, individually. */
  readonly uses: FileUse[] = [];
  readonly counts: Record<FileUse['use'], Record<Standing, number>> = {
    edited: { active: 0, shown: 0, 'one-step': 0, absent: 0 },
    quoted: { active: 0, shown: 0, 'one-step': 0, absent: 0 },
  };

  constructor(filesystem: FilesystemId) {
    this.#filesystem = filesystem;
  }

  /** Records that a tool result showed the text of a file. */
  shown(
    session: SessionId,
    { path, call, text }: { readonly path: CanonicalPath; readonly call: ObjectId; readonly text: string },
  ): void {
    this.#lines.learn(path, text);
    const key = `${session} ${path}`;
    const results = this.#results.get(key) ?? [];
    results.push(call);
    if (results.length > REMEMBERED_RESULTS) results.shift();
    this.#results.set(key, results);
  }

  /** Makes a branch start with the texts that its parent was shown. */
  branch(from: SessionId, to: SessionId): void {
    const prefix = `${from} `;
    for (const [key, results] of [...this.#results]) {
      if (key.startsWith(prefix)) this.#results.set(`${to} ${key.slice(prefix.length)}`, [...results]);
    }
  }

  /** Records an answer of the agent. It quotes a file if it repeats one of the file's lines. */
  said(state: SessionState, text: string): void {
    for (const path of this.#lines.quotedIn(text)) this.#note(state, 'quoted', path);
  }

  /** Records that the agent edits a file. */
  edited(state: SessionState, path: CanonicalPath): void {
    this.#note(state, 'edited', path);
  }

  #note(state: SessionState, use: FileUse['use'], path: CanonicalPath): void {
    const object = fileObjectId(filesystemSource(this.#filesystem, path));
    const results = this.#results.get(`${state.id} ${path}`) ?? [];
    const standing: Standing = state.isActive(object)
      ? 'active'
      : results.some((call) => state.isActive(call))
        ? 'shown'
        : state.has(object)
          ? 'one-step'
          : 'absent';
    this.counts[use][standing] += 1;
    if (this.uses.length < KEPT_USES)
      this.uses.push({ session: state.id, turn: state.turn, step: state.seq, use, path, object, standing });
  }
}

const REMEMBERED_LINES = 50_000;

/** Lines of files that were read, for detecting quotes. Only the newest lines are kept. */
export class QuotedLines {
  readonly #paths: LRUCache<string, CanonicalPath>;

  constructor(most = REMEMBERED_LINES) {
    this.#paths = new LRUCache(counted(most));
  }

  /** Adds the lines of a text that was read from a file. */
  learn(path: CanonicalPath, text: string): void {
    for (const line of usableLines(text)) this.#paths.set(line, path);
  }

  /** Returns the files whose lines a text contains, each file once. */
  quotedIn(text: string): readonly CanonicalPath[] {
    const found = new Set<CanonicalPath>();
    for (const line of usableLines(text)) {
      const path = this.#paths.get(line);
      if (path !== undefined) found.add(path);
    }
    return [...found];
  }
}
