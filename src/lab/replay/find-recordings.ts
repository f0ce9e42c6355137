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
  /** Relative to the corpus folder. */
  readonly name: string;
}

/** The files below a folder: recordings, and everything else with the reason why it is none. */
export interface Corpus {
  readonly files: readonly CorpusFile[];
  readonly others: readonly { readonly name: string; readonly reason: string }[];
}

/** Whether a folder may be one conversation: it holds files of events, or a folder of them. */
const hasEvents = (names: readonly string[]): boolean =>
  names.some((name) => name === 'events' || /^(?:event-)?\d+[^.]*\.json$/.test(name));

/** Why there is no recording at a path; undefined where there is one. */
async function hindrance(path: string): Promise<string | undefined> {
  try {
    recogniseRecording(await openRecording(path));
    return undefined;
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return error.code;
  }
}

/** Looks for the recordings below one folder. */
class CorpusSearch {
  readonly files: CorpusFile[] = [];
  readonly others: Corpus['others'][number][] = [];
  readonly #folder: string;
  /** What was looked at, by its real path: a link may lead back to a folder above, or to a recording that lies here too. */
  readonly #seen = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Takes the recordings in a folder and in the folders below it. */
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
 * Finds the recordings below a folder by their content, sorted by name, and follows links. A folder with a file for each event counts as one recording. A file
 * that several names lead to counts once.
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

/** What was found at the paths that the user named. */
export interface FoundRecordings {
  /** Each once, in the order in which they were named. */
  readonly paths: readonly string[];
  /** Paths at which no importer can read anything, and why. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /** What lies in the named folders and is no recording, or cannot be read; then its reason stands behind its name. */
  readonly others: readonly { readonly folder: string; readonly names: readonly string[] }[];
}

/** Why a file is no recording, where its name does not have to say so. */
const NO_RECORDING: ReadonlySet<string> = new Set<RecordingErrorCode>(['unrecognised', 'empty', 'binary']);
const otherName = ({ name, reason }: Corpus['others'][number]): string =>
  NO_RECORDING.has(reason) ? name : `${name} (${reason})`;

/** The recordings at a path: a file, a folder that is one recording, or every recording below a folder. */
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
    `No recording below the folder ${path} (${others.length} files were tried): name the files that an agent wrote, or a folder of them.`,
    { recording: path },
  );
}

/**
 * Checks every named path before the first replay begins. A path without a recording becomes one of the `failures`, with the reason, so that the others are
 * replayed all the same.
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

/** What a program says of a folder in which more lies than recordings. */
export const othersLine = ({ folder, names }: FoundRecordings['others'][number]): string =>
  `${folder}: ${names.length} ${names.length === 1 ? 'file is no recording' : 'files are no recordings'}: ${excerpt(names.join(', '))}`;
