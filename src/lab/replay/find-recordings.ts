import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { codeOf, errorOf } from '../../values/thrown.js';
import { recogniseRecording } from '../recordings/import-recording.js';
import { excerpt } from '../recordings/importer.js';
import { openRecording, RecordingError, type RecordingErrorCode } from '../recordings/open-recording.js';
import { ReplayError } from './replay-error.js';

/** A recording of a corpus. */
export interface CorpusFile {
  readonly path: string;
  /** The path relative to the corpus folder. */
  readonly name: string;
}

/**
 * The files below a folder: recordings, and other files with the reason why they are not
 * recordings.
 */
export interface Corpus {
  readonly files: readonly CorpusFile[];
  readonly others: readonly { readonly name: string; readonly reason: string }[];
}

/** Returns whether a folder may be one conversation: it has event files or a folder `events`. */
const hasEvents = (names: readonly string[]): boolean =>
  names.some((name) => name === 'events' || /^(?:event-)?\d+[^.]*\.json$/.test(name));

/** Returns why a path is not a recording; undefined if it is one. */
async function hindrance(path: string): Promise<string | undefined> {
  try {
    recogniseRecording(await openRecording(path));
    return undefined;
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return error.code;
  }
}

/** Finds the recordings below one folder. */
class CorpusSearch {
  readonly files: CorpusFile[] = [];
  readonly others: Corpus['others'][number][] = [];
  readonly #folder: string;
  /**
   * Real paths that were already visited. A link may lead back to a parent folder or to a found
   * recording.
   */
  readonly #seen = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Collects the recordings in a folder and in its subfolders. */
  async visit(folder: string): Promise<void> {
    const entries = (await readdir(folder)).sort();
    this.#seen.add(await realpath(folder));
    if (hasEvents(entries) && (await hindrance(folder)) === undefined)
      this.files.push({ path: folder, name: this.#nameOf(folder) });
    else for (const name of entries) await this.#entry(join(folder, name));
  }

  async #entry(path: string): Promise<void> {
    const other = (reason: string): void => void this.others.push({ name: this.#nameOf(path), reason });
    try {
      const [real, found] = [await realpath(path), await stat(path)];
      if (this.#seen.has(real)) return;
      this.#seen.add(real);
      if (found.isDirectory()) return await this.visit(path);
      const reason = found.isFile() ? await hindrance(path) : 'no file';
      if (reason === undefined) this.files.push({ path, name: this.#nameOf(path) });
      else other(reason);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      other(`unreadable (${code})`);
    }
  }

  #nameOf(path: string): string {
    return relative(this.#folder, path) || basename(this.#folder);
  }
}

/**
 * Finds the recordings below a folder by their content, sorted by name. Follows links. A folder
 * with one file per event is one recording. A file with several names counts once.
 *
 * @throws {ReplayError} bad-target – the folder cannot be read
 */
export async function findCorpus(folder: string): Promise<Corpus> {
  const search = new CorpusSearch(folder);
  try {
    await search.visit(folder);
  } catch (cause) {
    throw new ReplayError(
      'bad-target',
      `the folder ${folder} cannot be read (${codeOf(cause) ?? String(cause)}); name a folder of recordings`,
      { cause },
    );
  }
  return search;
}

/** The recordings and other files at the paths that the user named. */
export interface FoundRecordings {
  /** The recordings' paths, each once, in the order of the command line. */
  readonly paths: readonly string[];
  /** Paths that no importer can read, with the errors. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /**
   * The names of files in the named folders that are not recordings. After the name of an
   * unreadable file comes the reason.
   */
  readonly others: readonly { readonly folder: string; readonly names: readonly string[] }[];
}

/** Reasons that are not shown after a file's name, because the file is just not a recording. */
const NO_RECORDING: ReadonlySet<string> = new Set<RecordingErrorCode>(['unrecognised', 'empty', 'binary']);
const otherName = ({ name, reason }: Corpus['others'][number]): string =>
  NO_RECORDING.has(reason) ? name : `${name} (${reason})`;

/**
 * Returns the recordings at a path: a file, a folder that is one recording, or all recordings below
 * a folder.
 */
async function recordingsAt(
  path: string,
): Promise<{ readonly paths: readonly string[]; readonly others: readonly string[] }> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true) {
    recogniseRecording(await openRecording(path));
    return { paths: [path], others: [] };
  }
  const { files, others } = await findCorpus(path);
  if (files.length > 0) return { paths: files.map((file) => file.path), others: others.map(otherName) };
  throw new RecordingError(
    others.length === 0 ? 'empty' : 'unrecognised',
    `No recording below the folder ${path} (${others.length} files tried): ` +
      `name the files of an agent, or a folder of them.`,
    { recording: path },
  );
}

/**
 * Finds the recordings at all named paths before the first replay begins. A path without a
 * recording becomes one of the `failures`, and the others are still replayed.
 */
export async function findRecordings(named: readonly string[]): Promise<FoundRecordings> {
  const paths = new Map<string, string>();
  const failures: FoundRecordings['failures'][number][] = [];
  const others: FoundRecordings['others'][number][] = [];
  for (const path of named) {
    try {
      const found = await recordingsAt(path);
      for (const one of found.paths) {
        const real = await realpath(one);
        paths.set(real, paths.get(real) ?? one);
      }
      if (found.others.length > 0) others.push({ folder: path, names: found.others });
    } catch (error) {
      failures.push({ path, error: errorOf(error) });
    }
  }
  return { paths: [...paths.values()], failures, others };
}

/** Returns the line that lists a folder's files that are not recordings. */
export const othersLine = ({ folder, names }: FoundRecordings['others'][number]): string =>
  `${folder}: ${names.length} ${names.length === 1 ? 'file is not a recording' : 'files are not recordings'}: ` +
  excerpt(names.join(', '));
