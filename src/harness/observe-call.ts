import { posix } from 'node:path';
import type { FileAccess } from '../client/file-access.js';
import type { ReportedMention, ReportedReading } from '../client/session/call-report.js';
import { SourceError } from '../filesystem/access/errors.js';
import { resolveFrom } from '../filesystem/access/native-path.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { patchedPaths } from '../foreign-tools/patch-envelope.js';
import { scriptOf, shellOutput } from '../foreign-tools/shell-call.js';
import { namedPaths, pathArgument, type ToolArguments } from '../foreign-tools/tool-arguments.js';
import { foreignTool, type ListingFormat, type ToolKind } from '../foreign-tools/tool-table.js';
import { DocumentError } from '../objects/errors.js';
import { hashText } from '../objects/hashes.js';
import { abridge, chunkText, isLargeText } from '../objects/large-text.js';
import type { FilesystemSource } from '../objects/source.js';
import { discoverFiles } from './discovered-files.js';
import type { CallItem } from './history-item.js';
import type { ReportedFile } from './message-schema.js';
import { possibleNames } from './tool-output/listed-names.js';
import { isWholeRead } from './tool-output/read-output.js';
import { shellNames } from './tool-output/shell-names.js';

/** The effects of a reported call on files. */
export interface Observation {
  readonly readings: readonly ReportedReading[];
  readonly mentions: readonly ReportedMention[];
  /** Effects that were rejected, with the reasons. */
  readonly notes: readonly string[];
}

/** The state that is needed to judge a call. */
export interface ObservationContext {
  readonly files: FileAccess;
  /** Whether the output of shell commands is searched for paths (decision C8). */
  readonly mineShell: boolean;
  /**
   * Whether a partial read also activates the file, as the specification literally says
   * (divergence D8).
   */
  readonly strict: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A call and its folder `cwd`, which relative names are resolved against. */
interface ObservedCall extends ObservationContext {
  readonly call: CallItem;
  readonly cwd: string;
  /** Keys of the sources whose text the result includes. */
  readonly brought: ReadonlySet<string>;
}

type Observer = (observed: ObservedCall) => Promise<Observation>;

const NOTHING: Observation = { readings: [], mentions: [], notes: [] };

function together(parts: readonly Observation[]): Observation {
  return {
    readings: parts.flatMap(({ readings }) => readings),
    mentions: parts.flatMap(({ mentions }) => mentions),
    notes: [...new Set(parts.flatMap(({ notes }) => notes))],
  };
}

/**
 * Runs the work for one path. If the path makes it fail, the call gets a note instead of failing.
 */
async function noting(path: string, work: () => Promise<Observation>): Promise<Observation> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SourceError || error instanceof DocumentError)) throw error;
    return { ...NOTHING, notes: [`${posix.basename(path).slice(0, 200)} was not recorded: ${error.message}`] };
  }
}

function listing(format: ListingFormat): Observer {
  return async ({ call: { args, content }, cwd, files }) => {
    const named = namedPaths(args);
    const listed = pathArgument(args, 'folder');
    const folders = [...(listed === undefined ? [] : [listed]), ...named, '.'].map((path) => resolveFrom(cwd, path));
    // A search in one file does not print the file's name.
    const self = format === 'matches' && content !== '' ? [named] : [];
    const { mentions, note } = await discoverFiles(
      files,
      [...self, ...possibleNames(format, content)],
      [...new Set(folders)],
    );
    return { readings: [], mentions, notes: note === undefined ? [] : [note] };
  };
}

const sourceKey = ({ source: { filesystemId, path } }: ReportedMention | ReportedReading): string =>
  `${filesystemId} ${path}`;

/**
 * Observes a file that only the agent can read, in its container. The call proves only that the
 * file exists [§5.2], unless the result includes its text.
 */
function outOfReach(source: FilesystemSource, { brought, now }: Pick<ObservedCall, 'brought' | 'now'>): Observation {
  const mention = { source, mtimeMs: now };
  if (brought.has(sourceKey(mention))) return NOTHING;
  const name = posix.basename(source.path).slice(0, 200);
  return { ...NOTHING, mentions: [mention], notes: [`${name} stays unread: only the agent's own filesystem has it`] };
}

const showsWhole = ({ args, content: output }: CallItem, text: string): boolean => isWholeRead({ args, output }, text);

/**
 * Reads the source of a file that a call read. The call shows whether it read the whole file
 * (decisions C1, D8).
 */
async function readPath(path: string, only: boolean, observed: ObservedCall): Promise<Observation> {
  const { call, cwd, files, strict } = observed;
  const { source, location } = await files.locate(resolveFrom(cwd, path));
  if (!location.reachable) return outOfReach(source, observed);
  const reading = await files.read(source);
  if (reading.kind === 'not-regular') return reading.what === 'directory' ? listing('listing')(observed) : NOTHING;
  const text = reading.kind === 'text' ? reading.content : undefined;
  const whole = text !== undefined && (only ? showsWhole(call, text) : call.content.includes(text.trimEnd()));
  return { ...NOTHING, readings: [{ source, reading, activate: whole || strict }] };
}

const observeRead: Observer = async (observed) => {
  const paths = namedPaths(observed.call.args);
  return together(
    await Promise.all(paths.map((path) => noting(path, () => readPath(path, paths.length === 1, observed)))),
  );
};

/**
 * Reads files from disk after a write. They are not activated, because the agent did not read them
 * [§5.6]. With `deletes`, a file may be missing.
 */
async function writtenPaths(paths: readonly string[], observed: ObservedCall, deletes = false): Promise<Observation> {
  const { cwd, files } = observed;
  const one = async (path: string): Promise<Observation> => {
    const { source, location } = await files.locate(resolveFrom(cwd, path), { mustExist: false });
    if (!location.reachable) return deletes ? NOTHING : outOfReach(source, observed);
    return { ...NOTHING, readings: [{ source, reading: await files.read(source), activate: false }] };
  };
  return together(await Promise.all(paths.map((path) => noting(path, () => one(path)))));
}

const observeWrite: Observer = (observed) => writtenPaths(namedPaths(observed.call.args), observed);

/** Observes tools with several operations, which the argument `command` selects. */
const byCommand =
  (usual: Observer): Observer =>
  (observed) => {
    const { command } = observed.call.args;
    if (typeof command !== 'string') return usual(observed);
    return command === 'view' ? observeRead(observed) : observeWrite(observed);
  };

function patchTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.flatMap(patchTexts) : [];
}

/** Returns the files that a call with a patch names. */
export function patchPaths(args: ToolArguments): readonly string[] {
  return [...new Set([...namedPaths(args), ...Object.values(args).flatMap(patchTexts).flatMap(patchedPaths)])];
}

/** Returns the files that a call would change, according to its arguments. */
export function pathsToChange(tool: string, args: ToolArguments): readonly string[] {
  const { kind } = foreignTool(tool);
  if (kind === 'patch') return patchPaths(args);
  return (kind === 'edit' || kind === 'write') && args.command !== 'view' ? namedPaths(args) : [];
}

const nothing: Observer = () => Promise.resolve(NOTHING);
/** Observes a shell command. The script decides which folder a relative name belongs to. */
const shell: Observer = async ({ call: { args, content }, cwd, files, mineShell }) => {
  if (!mineShell) return NOTHING;
  const { lines, folders } = shellNames(scriptOf(args), shellOutput(content).text, cwd);
  const { mentions, note } = await discoverFiles(files, lines, folders);
  return { readings: [], mentions, notes: note === undefined ? [] : [note] };
};
const read = byCommand(observeRead);
const write = byCommand(observeWrite);

const BY_KIND: Readonly<Partial<Record<ToolKind, Observer>>> = {
  read,
  write,
  edit: write,
  patch: (observed) => writtenPaths(patchPaths(observed.call.args), observed, true),
};

/** Returns the observer for a tool. Our own tools follow the same rules [§5.1, §5.6]. */
function observerOf({ form, kind, lists }: ReturnType<typeof foreignTool>): Observer {
  if (form === 'move-window') return nothing;
  if (lists !== undefined) return lists === 'words' ? shell : listing(lists);
  return BY_KIND[kind] ?? nothing;
}

/** Maximum bytes of a text that is stored whole (decision C6). */
const WHOLE_TEXT_BYTES = 64 * 1024 * 1024;

/** Returns the reading of a file that has this complete text (decision C1). */
export function readingOfText(text: string, mtimeMs: number): SourceReading {
  const content = text.toWellFormed();
  const fileHash = hashText(content);
  const size = Buffer.byteLength(content);
  if (content.includes('\0')) return { kind: 'binary', fileHash, size, mtimeMs };
  if (!isLargeText(content)) return { kind: 'text', content, fileHash, size, mtimeMs };
  const chunks = size <= WHOLE_TEXT_BYTES ? () => chunkText(content) : undefined;
  return {
    kind: 'large-text',
    content: abridge(content).content,
    length: content.length,
    chunks,
    fileHash,
    size,
    mtimeMs,
  };
}

/**
 * Observes a file that a result includes (decision C1). The text comes from the source if that can
 * be read. Otherwise the included text is used if it is marked as complete. If it is not, the file
 * is only mentioned.
 */
async function carriedFile(
  file: ReportedFile,
  { call, cwd, files, strict, now }: Omit<ObservedCall, 'brought'>,
): Promise<Observation> {
  const { source, location } = await files.locate(resolveFrom(cwd, file.path), { mustExist: false });
  const reads = foreignTool(call.tool).kind === 'read';
  const whole = reads && file.content !== undefined && (call.files.length > 1 || showsWhole(call, file.content));
  const activate = whole || (reads && strict);
  if (location.reachable) return { ...NOTHING, readings: [{ source, reading: await files.read(source), activate }] };
  const mtimeMs = Math.floor(file.mtime_ms ?? now);
  if (file.content === undefined || file.complete !== true)
    return outOfReach(source, { brought: new Set(), now: mtimeMs });
  return { ...NOTHING, readings: [{ source, reading: readingOfText(file.content, mtimeMs), activate }] };
}

/** Observes the files that a result includes. */
async function carried(observed: Omit<ObservedCall, 'brought'>): Promise<Observation> {
  return together(
    await Promise.all(observed.call.files.map((file) => noting(file.path, () => carriedFile(file, observed)))),
  );
}

function folderOf(call: CallItem, files: FileAccess): string {
  return resolveFrom(files.cwd, call.cwd || (pathArgument(call.args, 'cwd') ?? '.'));
}

/**
 * Returns the effects of a reported call on files [§5.6]. Files that were read or written are read
 * from their sources, and listings give names. A failed call has no effect. If a path fails, there
 * is a note.
 */
export async function observeCall(call: CallItem, context: ObservationContext): Promise<Observation> {
  if (call.status === 'fail') return NOTHING;
  const cwd = folderOf(call, context.files);
  const brought = await carried({ ...context, call, cwd });
  const sources = new Set([...brought.readings, ...brought.mentions].map(sourceKey));
  const seen = await observerOf(foreignTool(call.tool))({ ...context, call, cwd, brought: sources });
  const known = new Set(brought.readings.map(sourceKey));
  const activated = new Set(seen.readings.filter(({ activate }) => activate).map(sourceKey));
  // A source that the result includes is not read again.
  const readings = seen.readings.filter((one) => !known.has(sourceKey(one)));
  const own = brought.readings.map((one) => ({ ...one, activate: one.activate || activated.has(sourceKey(one)) }));
  return {
    readings: [...own, ...readings],
    mentions: [...brought.mentions, ...seen.mentions],
    notes: [...brought.notes, ...seen.notes],
  };
}
