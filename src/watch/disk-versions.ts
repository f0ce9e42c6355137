import { isAbsolute, relative, sep } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { MaskLoader } from '../client/record-mask.js';
import type { ContextClientOptions } from '../client/session/client-options.js';
import { ContextClient } from '../client/session/context-client.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import type { DiskAtCalls, SeenText } from '../lab/replay/disk-at-calls.js';
import { filesystemSource } from '../objects/source.js';
import { counted } from '../values/counted.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';

/**
 * Maximum age of a call whose files are read from disk, in milliseconds. The disk may have changed
 * since an older call, such as one in a transcript that is read for the first time.
 */
const NOW_MS = 5_000;
/** Maximum number of files of one call that are read. */
const MOST_FILES = 50;
/** Maximum number of folders whose clients stay open. */
const MOST_FOLDERS = 100;

/** How to read the disk and store files. */
export interface DiskOptions extends Pick<ContextClientOptions, 'address' | 'filesystemId'> {
  readonly mask: MaskLoader;
  /** The user's home folder. No folder that contains it is accepted as a session's folder. */
  readonly home: string;
  /** Called with a line when versions of files could not be stored. */
  readonly onNotice: (line: string) => void;
}

/**
 * Stores what is now on disk for the files of calls that have just ended, under this machine's
 * filesystem id. The session itself has the text that its transcript shows.
 */
export class DiskVersions implements DiskAtCalls {
  readonly #options: DiskOptions;
  /** A client for each session folder. The client reads only files inside that folder. */
  readonly #clients = new LRUCache<string, Promise<ContextClient>>({
    ...counted(MOST_FOLDERS),
    dispose: (client) => void client.then((one) => one.close()).catch(() => undefined),
  });

  readonly #wide = new Set<string>();

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /**
   * Returns the client whose only root is a folder. It has no session.
   * @throws {SourceError} the folder does not exist
   * @throws {Error} the folder contains the home folder, such as `/`
   */
  async at(folder: string): Promise<ContextClient> {
    if (contains(folder, this.#options.home))
      throw new Error(`the transcript names the folder ${folder}, which is too wide to read files from`);
    const known = this.#clients.get(folder);
    if (known !== undefined) return known;
    const { address, filesystemId, mask } = this.#options;
    const files = { filesystemId, roots: [folder], cwd: folder, track: false };
    const made = mask().then((masks) => ContextClient.create({ address, ...files, ...defined({ mask: masks }) }));
    this.#clients.set(folder, made);
    made.catch(() => this.#clients.delete(folder));
    return made;
  }

  async compare(
    files: readonly SeenText[],
    cwd: string | undefined,
    at: number | undefined,
  ): Promise<readonly string[] | undefined> {
    const isNow = at !== undefined && Math.abs(Date.now() - at) <= NOW_MS;
    if (!isNow || cwd === undefined || files.length === 0) return undefined;
    if (this.#isTooWide(cwd)) return undefined;
    try {
      const notes = await this.#record(await this.at(cwd), files.slice(0, MOST_FILES));
      return notes.length === 0 ? undefined : notes;
    } catch (error) {
      this.#options.onNotice(`Files below ${cwd} were not stored from disk: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** Returns whether a folder contains the home folder. Reports that once. */
  #isTooWide(folder: string): boolean {
    if (!contains(folder, this.#options.home)) return false;
    if (this.#wide.size < MOST_FOLDERS && !this.#wide.has(folder)) {
      this.#wide.add(folder);
      this.#options.onNotice(
        `A session has the folder ${folder}, which is too wide. Its files are not stored from disk.`,
      );
    }
    return true;
  }

  async close(): Promise<void> {
    const open = [...this.#clients.values()];
    await Promise.allSettled(open.map(async (client) => (await client).close()));
  }

  /** Stores the current versions of files. Returns how they differ from the transcript. */
  async #record(client: ContextClient, files: readonly SeenText[]): Promise<readonly string[]> {
    const read = files
      .map(({ path, text }) => ({ path, text, source: filesystemSource(this.#options.filesystemId, path) }))
      .filter(({ source }) => client.files.shows(source))
      .map(async (file) => ({ ...file, kind: 'read' as const, reading: await client.files.read(file.source) }));
    const known = (await Promise.all(read)).filter(({ reading }) => !UNREAD.has(reading.kind));
    if (known.length > 0) await client.index(known.map(({ kind, source, reading }) => ({ kind, source, reading })));
    return known.flatMap(({ path, text, reading }) => {
      const onDisk = reading.kind === 'missing' ? null : reading.kind === 'text' ? reading.content : undefined;
      if (text === undefined || onDisk === undefined || isAlike(text, onDisk)) return [];
      return [noteOn(path, text, onDisk)];
    });
  }
}

/**
 * Returns whether a folder contains another one, or is the same. A transcript may name any folder,
 * even `/`.
 */
function contains(folder: string, other: string): boolean {
  const below = relative(folder, other);
  return below !== '' && !isAbsolute(below) && below.split(sep)[0] !== '..';
}

/** Readings that show nothing about a file's content. */
const UNREAD: ReadonlySet<SourceReading['kind']> = new Set(['unreachable', 'not-regular']);

/** Transcripts leave out the last line end, and some write `\r\n` as `\n`. */
const lines = (text: string): string => text.replaceAll('\r\n', '\n').replace(/\n$/, '');

const isAlike = (shown: string | null, onDisk: string | null): boolean =>
  shown === null || onDisk === null ? shown === onDisk : lines(shown) === lines(onDisk);

function noteOn(path: string, shown: string | null, onDisk: string | null): string {
  if (onDisk === null) return `${path}: the transcript shows this file, but it was not on disk at that moment`;
  if (shown === null) return `${path}: the transcript shows it deleted, but it was on disk at that moment`;
  return `${path}: at that moment the content on disk differed from the transcript; both are stored`;
}
