import type { Stats } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { type SessionId, sessionId } from '../objects/ids.js';
import { isSameFile, parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { unlessMissing } from '../process/system-error.js';

const stateSchema = z.object({
  version: z.literal(1),
  /** Whether the gateway changes the session's requests. */
  on: z.boolean(),
  /** Number of times a person asked for a new epoch at the user's next message. */
  tidied: z.int().nonnegative(),
  /** Whether a changed request was sent. The model's thinking may then be bound to it. */
  steered: z.boolean(),
  /**
   * Ids of the first calls in its steered requests. A fork has the same ids and the same thinking.
   */
  firstCalls: z.array(z.string()).default([]),
});

/** How a session is steered. The gateway and `palimpsest steer` share it through a file. */
export type SteeredState = Omit<z.output<typeof stateSchema>, 'version'>;

const folderIn = (dataDir: string): string => join(dataDir, 'gateway', 'steered');
const fileOf = (dataDir: string, session: SessionId): string =>
  join(folderIn(dataDir), `${encodeURIComponent(session)}.json`);

/**
 * Returns how a session is steered. Undefined if no gateway ever steered it. A damaged file counts
 * as missing.
 */
export async function steeredState(dataDir: string, session: SessionId): Promise<SteeredState | undefined> {
  const text = await textOf(fileOf(dataDir, session));
  return text === undefined ? undefined : parseJson(text, stateSchema);
}

/** The file about one session. It is read again only after a change. */
export class SteeredFile {
  readonly #dataDir: string;
  readonly #session: SessionId;
  #read: { readonly file: Stats; readonly state: SteeredState | undefined } | undefined;

  constructor(dataDir: string, session: SessionId) {
    this.#dataDir = dataDir;
    this.#session = session;
  }

  /** Returns the same as `steeredState`. */
  async state(): Promise<SteeredState | undefined> {
    const file = await unlessMissing(stat(fileOf(this.#dataDir, this.#session)));
    if (file === undefined) return undefined;
    // The next call notices a change after this `stat`.
    if (this.#read === undefined || !isSameFile(this.#read.file, file))
      this.#read = { file, state: await steeredState(this.#dataDir, this.#session) };
    return this.#read.state;
  }
}

/** Stores how a session is steered. The gateway reads it before the session's next request. */
export async function setSteered(dataDir: string, session: SessionId, state: SteeredState): Promise<void> {
  await mkdir(folderIn(dataDir), { recursive: true, mode: 0o700 });
  await replaceFile(fileOf(dataDir, session), `${JSON.stringify({ version: 1, ...state })}\n`);
}

/**
 * Returns whether a request with this first call was steered, for example that of a fork's parent.
 */
export async function wasSteered(dataDir: string, firstCall: string): Promise<boolean> {
  for (const session of await steeredSessions(dataDir))
    if ((await steeredState(dataDir, session))?.firstCalls.includes(firstCall) === true) return true;
  return false;
}

/** Returns the sessions of a data folder that a gateway has ever steered. */
export async function steeredSessions(dataDir: string): Promise<readonly SessionId[]> {
  const names = (await unlessMissing(readdir(folderIn(dataDir)))) ?? [];
  return names.flatMap((name) => (name.endsWith('.json') ? [sessionId(decodeURIComponent(name.slice(0, -5)))] : []));
}
