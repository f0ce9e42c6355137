import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { codeOf, errorOf } from '../../values/thrown.js';
import { recogniseRecording } from '../recordings/import-recording.js';
import type { RecordingFormat } from '../recordings/neutral-session.js';
import { openRecording, RecordingError } from '../recordings/open-recording.js';
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

/** Formats that store a conversation as a folder with a file for each event. */
const FOLDER_FORMATS: ReadonlySet<RecordingFormat> = new Set(['openhands-sdk', 'openhands-legacy']);

/** Whether a folder may be such a conversation: it holds files of events, or a folder of them. */
const hasEvents = (entries: readonly Dirent[]): boolean =>
  entries.some((entry) => (entry.isFile() ? /^(?:event-)?\d+[^.]*\.json$/.test(entry.name) : entry.name === 'events'));

/** The format of the recording at a path, or the reason why it is none. */
async function formatAt(path: string): Promise<{ readonly format?: RecordingFormat; readonly reason: string }> {
  try {
    return { format: recogniseRecording(await openRecording(path)).format, reason: '' };
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return { reason: error.code };
  }
}

/**
 * Finds the recordings below a folder by their content, sorted by name. A folder with a file for each event counts as one recording.
 * @throws {ReplayError} bad-target – the folder cannot be read
 */
export async function findCorpus(folder: string): Promise<Corpus> {
  const files: CorpusFile[] = [];
  const others: Corpus['others'][number][] = [];
  const visit = async (at: string): Promise<void> => {
    const entries = (await readdir(at, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const whole = hasEvents(entries) ? (await formatAt(at)).format : undefined;
    if (whole !== undefined && FOLDER_FORMATS.has(whole)) {
      files.push({ path: at, name: relative(folder, at) || basename(folder) });
      return;
    }
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) await visit(path);
      else if (entry.isFile()) {
        const { format, reason } = await formatAt(path);
        if (format !== undefined) files.push({ path, name: relative(folder, path) });
        else others.push({ name: relative(folder, path), reason });
      }
    }
  };
  try {
    await visit(folder);
  } catch (cause) {
    throw new ReplayError(
      'bad-target',
      `the folder ${folder} cannot be read (${codeOf(cause) ?? String(cause)}); name a folder of recordings`,
      { cause },
    );
  }
  return { files, others };
}

/** What was found at the paths that the user named. */
export interface FoundRecordings {
  /** Each once, in the order in which they were named. */
  readonly paths: readonly string[];
  /** Paths at which no importer can read anything, and why. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /** Files in the named folders that are no recordings. */
  readonly others: readonly { readonly folder: string; readonly names: readonly string[] }[];
}

/** The recordings at a path: a file, a folder that is one recording, or every recording below a folder. */
async function recordingsAt(path: string): Promise<{ readonly paths: readonly string[]; readonly others: readonly string[] }> {
  const found = await stat(path).catch(() => undefined);
  try {
    recogniseRecording(await openRecording(path));
    return { paths: [path], others: [] };
  } catch (error) {
    if (found?.isDirectory() !== true || !(error instanceof RecordingError)) throw error;
  }
  const { files, others } = await findCorpus(path);
  if (files.length > 0) return { paths: files.map((file) => file.path), others: others.map(({ name }) => name) };
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
      for (const one of found.paths) paths.set(resolve(one), paths.get(resolve(one)) ?? one);
      if (found.others.length > 0) others.push({ folder: path, names: found.others });
    } catch (error) {
      failures.push({ path, error: errorOf(error) });
    }
  }
  return { paths: [...paths.values()], failures, others };
}
