import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { recogniseRecording } from '../recordings/import-recording.js';
import { openRecording } from '../recordings/open-recording.js';
import { RecordingError } from '../recordings/recording-error.js';
import { findCorpus } from './experiments/corpus.js';

/** What was found at the paths that somebody named. */
export interface FoundRecordings {
  /** Each once, in the order in which they were named. */
  readonly paths: readonly string[];
  /** What can be read by no importer, and why. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
  /** Files beside the recordings of a folder that are none. */
  readonly others: readonly { readonly folder: string; readonly names: readonly string[] }[];
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** The recordings at a path: a file, a folder that is one recording, or every recording below a folder. */
async function recordingsAt(path: string): Promise<{ readonly paths: readonly string[]; readonly others: readonly string[] }> {
  const folder = await isFolder(path);
  try {
    recogniseRecording(await openRecording(path));
    return { paths: [path], others: [] };
  } catch (error) {
    if (!folder || !(error instanceof RecordingError)) throw error;
  }
  const { files, others } = await findCorpus(path);
  if (files.length > 0) return { paths: files.map((file) => file.path), others: others.map(({ name }) => name) };
  throw new RecordingError(
    others.length === 0 ? 'empty' : 'unrecognised',
    path,
    `No recording below the folder ${path} (${others.length} files were looked at): name the files that an agent wrote, or a folder of them.`,
  );
}

/**
 * Looks at every path before anything is begun: what is no recording is told with its reason, and does not keep the others from being replayed. Throws what is
 * not about recordings.
 */
export async function findRecordings(named: readonly string[]): Promise<FoundRecordings> {
  const paths = new Map<string, string>();
  const failures: { readonly path: string; readonly error: Error }[] = [];
  const others: { readonly folder: string; readonly names: readonly string[] }[] = [];
  for (const path of named) {
    try {
      const found = await recordingsAt(path);
      for (const one of found.paths) paths.set(resolve(one), paths.get(resolve(one)) ?? one);
      if (found.others.length > 0) others.push({ folder: path, names: found.others });
    } catch (error) {
      failures.push({ path, error: error instanceof Error ? error : new Error(String(error)) });
    }
  }
  return { paths: [...paths.values()], failures, others };
}
