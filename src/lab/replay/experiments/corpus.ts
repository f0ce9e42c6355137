import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { systemCode } from '../../../process/system-code.js';
import { recogniseRecording } from '../../recordings/import-recording.js';
import type { RecordingFormat } from '../../recordings/neutral-session.js';
import { openRecording } from '../../recordings/open-recording.js';
import { RecordingError } from '../../recordings/recording-error.js';
import { ReplayError } from '../replay-error.js';

/** A recording of a corpus. */
export interface CorpusFile {
  readonly path: string;
  /** Below the corpus folder. */
  readonly name: string;
}

/** The recordings below a folder, and what else lies there with why it is none. */
export interface Corpus {
  readonly files: readonly CorpusFile[];
  readonly others: readonly { readonly name: string; readonly reason: string }[];
}

/** Formats that have a folder with a file for each event. */
const FOLDER_FORMATS: ReadonlySet<RecordingFormat> = new Set(['openhands-sdk', 'openhands-legacy']);
/** What such a folder has: files of events, or a folder of them. */
const hasEvents = (entries: readonly Dirent[]): boolean =>
  entries.some((entry) => (entry.isFile() ? /^(?:event-)?\d+[^.]*\.json$/.test(entry.name) : entry.name === 'events'));

/** Why a path is no recording, or of which format it is. */
async function lookAt(path: string): Promise<{ readonly format: RecordingFormat } | { readonly reason: string }> {
  try {
    return { format: recogniseRecording(await openRecording(path)).format };
  } catch (error) {
    if (!(error instanceof RecordingError)) throw error;
    return { reason: error.code };
  }
}

/**
 * Finds the recordings below a folder by their content; a folder that is one recording, a file for each event, is taken as one. Sorted by name. Throws
 * ReplayError `bad-target` for a folder that cannot be read.
 */
export async function findCorpus(folder: string): Promise<Corpus> {
  const files: CorpusFile[] = [];
  const others: { readonly name: string; readonly reason: string }[] = [];
  const visit = async (at: string): Promise<void> => {
    const entries = (await readdir(at, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
    const whole = hasEvents(entries) ? await lookAt(at) : undefined;
    if (whole !== undefined && 'format' in whole && FOLDER_FORMATS.has(whole.format)) {
      files.push({ path: at, name: relative(folder, at) || basename(folder) });
      return;
    }
    for (const entry of entries) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) await visit(path);
      else if (entry.isFile()) {
        const found = await lookAt(path);
        if ('format' in found) files.push({ path, name: relative(folder, path) });
        else others.push({ name: relative(folder, path), reason: found.reason });
      }
    }
  };
  try {
    await visit(folder);
  } catch (cause) {
    if (cause instanceof ReplayError) throw cause;
    throw new ReplayError(
      'bad-target',
      `the folder ${folder} cannot be read (${systemCode(cause) ?? String(cause)}); name a folder of recordings`,
      { cause },
    );
  }
  return { files, others };
}

/** What the list that comes with a corpus says of one recording. */
export interface ListedCounts {
  readonly bytes: number;
  readonly messages: number;
  readonly calls: number;
  readonly reads: number;
}

/** Reads `PROVENANCE.tsv` of a corpus: counts by file name, and none of its words; empty where there is none. */
export async function readProvenance(folder: string): Promise<ReadonlyMap<string, ListedCounts>> {
  const text = await readFile(join(folder, 'PROVENANCE.tsv'), 'utf8').catch(() => '');
  const [head = '', ...rows] = text.split('\n').filter((line) => line !== '');
  const columns = head.split('\t');
  return new Map(
    rows.map((line) => {
      const cells = line.split('\t');
      const cell = (name: string): string => cells[columns.indexOf(name)] ?? '';
      const counts = {
        bytes: Number(cell('bytes')),
        messages: Number(cell('messages')),
        calls: Number(cell('tool_calls')),
        reads: Number(cell('reads')),
      };
      return [cell('file').replace(/\/$/, ''), counts] as const;
    }),
  );
}
