import { posix } from 'node:path';
import type { FileAccess } from '../client/session/file-access.js';
import type { ReportedMention, ReportedReading } from '../client/session/reported-files.js';
import { SourceError } from '../filesystem/access/errors.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { DocumentError } from '../objects/errors.js';
import { argumentPaths, normalArgs, patchPaths } from './call-paths.js';
import { carriedFile } from './carried-file.js';
import { discoverFiles } from './discovered-files.js';
import type { CallItem } from './history-item.js';
import { type ListingKind, namedPaths } from './listed-paths.js';
import { isWholeRead } from './read-extent.js';
import { type ToolKind, toolKind } from './tool-kinds.js';

/** What a reported call did to files. */
export interface Observation {
  readonly readings: readonly ReportedReading[];
  readonly mentions: readonly ReportedMention[];
  /** What could not be taken up, and why. */
  readonly notes: readonly string[];
}

/** What a call is judged by. */
export interface ObservationContext {
  readonly files: FileAccess;
  /** Whether the output of shell commands is searched for paths (decision C8). */
  readonly mineShell: boolean;
  /** The literal behaviour: a part of a file activates it too (decision D8). */
  readonly strict: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

type Observer = (call: CallItem, cwd: string, context: ObservationContext) => Promise<Observation>;

const NOTHING: Observation = { readings: [], mentions: [], notes: [] };

const isReadable = (reading: SourceReading): reading is Extract<SourceReading, { content: string }> =>
  reading.kind === 'text' || reading.kind === 'large-text';

function together(parts: readonly Observation[]): Observation {
  return {
    readings: parts.flatMap(({ readings }) => readings),
    mentions: parts.flatMap(({ mentions }) => mentions),
    notes: [...new Set(parts.flatMap(({ notes }) => notes))],
  };
}

/** Runs what concerns one path; what is wrong with the path is a note, not a failure of the call. */
async function noting(path: string, work: () => Promise<Observation>): Promise<Observation> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SourceError || error instanceof DocumentError)) throw error;
    return { ...NOTHING, notes: [`${posix.basename(path).slice(0, 200)} was not taken up: ${error.message}`] };
  }
}

function listing(kind: ListingKind): Observer {
  return async ({ args, content }, cwd, { files }) => {
    const named = argumentPaths(args);
    const folders = [...named.map((path) => posix.resolve(cwd, path)), cwd];
    // A search in one file does not repeat its name.
    const self = kind === 'search' && content !== '' ? [named] : [];
    const { mentions, note } = await discoverFiles(files, [...self, ...namedPaths(kind, content)], [...new Set(folders)]);
    return { readings: [], mentions, notes: note === undefined ? [] : [note] };
  };
}

/** A file that a call read: by its source's own bytes; whole or in part as the call shows (decisions C1, D8). */
async function readPath(path: string, call: CallItem, cwd: string, only: boolean, context: ObservationContext): Promise<Observation> {
  const { files, strict } = context;
  const { source, location } = await files.locate(posix.resolve(cwd, path));
  if (!location.reachable) return NOTHING;
  const reading = await files.read(source);
  if (reading.kind === 'not-regular') return reading.what === 'directory' ? listing('list')(call, cwd, context) : NOTHING;
  const shown = isReadable(reading) && reading.kind === 'text' ? reading.content : undefined;
  const whole = shown !== undefined && (only ? isWholeRead(call.args, call.content, shown) : call.content.includes(shown.trimEnd()));
  return { ...NOTHING, readings: [{ source, reading, activate: whole || strict }] };
}

const observeRead: Observer = async (call, cwd, context) => {
  const command = normalArgs(call.args).command;
  if (typeof command === 'string' && command !== 'view') return observeWrite(call, cwd, context);
  const paths = argumentPaths(call.args);
  return together(await Promise.all(paths.map((path) => noting(path, () => readPath(path, call, cwd, paths.length === 1, context)))));
};

/** What stands on the disk after a write is indexed; the agent wrote it but did not read it [§5.6]. */
async function writtenPaths(paths: readonly string[], cwd: string, { files }: ObservationContext): Promise<Observation> {
  const one = async (path: string): Promise<Observation> => {
    const { source, location } = await files.locate(posix.resolve(cwd, path), { mustExist: false });
    if (!location.reachable) return NOTHING;
    return { ...NOTHING, readings: [{ source, reading: await files.read(source), activate: false }] };
  };
  return together(await Promise.all(paths.map((path) => noting(path, () => one(path)))));
}

const observeWrite: Observer = (call, cwd, context) =>
  normalArgs(call.args).command === 'view' ? observeRead(call, cwd, context) : writtenPaths(argumentPaths(call.args), cwd, context);

const observeShell: Observer = (call, cwd, context) =>
  context.mineShell ? listing('shell')({ ...call, args: {} }, cwd, context) : Promise.resolve(NOTHING);

/** The one table of what a call means for files; wrapped tools obey the same rules [§5.1, §5.6]. */
const OBSERVERS: Readonly<Record<ToolKind, Observer>> = {
  read: observeRead,
  list: listing('list'),
  find: listing('find'),
  search: listing('search'),
  tree: listing('tree'),
  write: observeWrite,
  patch: (call, cwd, context) => writtenPaths(patchPaths(call.args), cwd, context),
  shell: observeShell,
  other: () => Promise.resolve(NOTHING),
};

/** The files that a result brought along: they take the place of what this process cannot read itself. */
async function carried(call: CallItem, cwd: string, context: ObservationContext): Promise<Observation> {
  const reads = toolKind(call.tool) === 'read';
  const parts = call.files.map((file) =>
    noting(file.path, async () => {
      const whole = reads && file.content !== undefined && (call.files.length > 1 || isWholeRead(call.args, call.content, file.content));
      const taken = await carriedFile(context.files, file, posix.resolve(cwd, file.path), context.now, whole || (reads && context.strict));
      if (taken.kind === 'mention') return { ...NOTHING, mentions: [taken.mention] };
      return { ...NOTHING, readings: [taken.reading] };
    }),
  );
  return together(await Promise.all(parts));
}

function folderOf(call: CallItem, files: FileAccess): string {
  const given = normalArgs(call.args);
  const own = [call.cwd, given.cwd, given.workdir, given.working_directory].find((one) => typeof one === 'string' && one !== '');
  return posix.resolve(files.cwd, typeof own === 'string' ? own : '.');
}

/**
 * What a reported call did to files [§5.6]: reads and writes by the source's own bytes, listings by what they name. A failed call did nothing to
 * files, as far as anybody knows. Whatever is wrong with a path becomes a note.
 */
export async function observeCall(call: CallItem, context: ObservationContext): Promise<Observation> {
  if (call.status === 'fail') return NOTHING;
  const cwd = folderOf(call, context.files);
  const brought = await carried(call, cwd, context);
  const seen = await OBSERVERS[toolKind(call.tool)](call, cwd, context);
  const known = new Set(brought.readings.map(({ source }) => `${source.filesystemId} ${source.path}`));
  // A source that both name is read once.
  const readings = seen.readings.filter(({ source }) => !known.has(`${source.filesystemId} ${source.path}`));
  const activated = new Set(seen.readings.filter(({ activate }) => activate).map(({ source }) => `${source.filesystemId} ${source.path}`));
  const own = brought.readings.map((one) => ({
    ...one,
    activate: one.activate || activated.has(`${one.source.filesystemId} ${one.source.path}`),
  }));
  return { readings: [...own, ...readings], mentions: [...brought.mentions, ...seen.mentions], notes: [...brought.notes, ...seen.notes] };
}
