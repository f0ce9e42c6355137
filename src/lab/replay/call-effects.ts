import { posix } from 'node:path';
import { MOST_DISCOVERED } from '../../client/decide-file.js';
import type { CallReport } from '../../client/session/call-report.js';
import { pathArgument } from '../../foreign-tools/tool-arguments.js';
import type { ToolKind } from '../../foreign-tools/tool-table.js';
import { pathsToChange, readingOfText } from '../../harness/observe-call.js';
import type { FileAct } from '../../harness/tool-output/file-act.js';
import type { OtherLines } from '../../history/rebuild/changed-outside.js';
import type { Json } from '../../objects/canonical-json.js';
import { type CanonicalPath, canonicalPath, type FilesystemId } from '../../objects/ids.js';
import { filesystemSource } from '../../objects/source.js';
import { bump } from '../recordings/import-counts.js';
import type { EntryOf } from '../recordings/neutral-session.js';
import { applyActs, type Evidence, type Resolve, type SeenFile } from './files/apply-acts.js';
import type { FileTree, UndoTexts } from './files/file-tree.js';
import type { ReadLines } from './files/read-lines.js';
import { recordedTool } from './recorded-tools.js';

/** The recorded effects of a finished call. */
export interface CallEffects {
  readonly kind: ToolKind;
  readonly acts: readonly FileAct[];
  readonly seen: readonly SeenFile[];
  readonly readings: NonNullable<CallReport['readings']>;
  readonly mentions: NonNullable<CallReport['mentions']>;
  /** The file that the call read, if the call did nothing but read one file. */
  readonly read: WholeText | undefined;
  /** Number of files whose text is unknown after the call. */
  readonly unknown: number;
  /** Number of files that were not reported because the call had too many files (decision C7). */
  readonly left: number;
  /**
   * Lines that differ from the previous read of the file, although no recorded call changed them.
   */
  readonly otherLines: readonly OtherLines[];
}

/** The inputs for computing a call's effects. */
interface EffectContext {
  readonly tree: FileTree;
  readonly undo: UndoTexts;
  /** Undefined if reads are not compared. */
  readonly reads?: ReadLines;
  readonly cwd: string | undefined;
  readonly filesystem: FilesystemId;
  /** Milliseconds since 1970. */
  readonly now: number;
  /**
   * Whether reading a part of a file also activates the file, as the specification literally says
   * (decision D8).
   */
  readonly strict: boolean;
  /** Whether the recording lacks the result. The call may have had its effect. */
  readonly isLost?: boolean;
}

const DRIVE = /^([A-Za-z]):[\\/]/;
const HOME = /^\/(?:home|Users)\/[^/]+(?=\/|$)|^\/root(?=\/|$)/;

/** Converts a Windows path to the spelling of Git Bash: `D:\repo\a` becomes `/d/repo/a`. */
function posixSpelling(path: string): string {
  const drive = DRIVE.exec(path);
  if (drive === null) return path;
  return `/${(drive[1] ?? '').toLowerCase()}/${path.slice(drive[0].length).replaceAll('\\', '/')}`;
}

/** Returns whether a folder's path begins with a drive letter, as on Windows. */
const isOnWindows = (folder: string | undefined): boolean => folder !== undefined && DRIVE.test(folder);

/**
 * Returns the canonical path of a recorded name (decision H6). A relative name is below the call's
 * folder. `~` is resolved if that folder is in a user's home folder. On Windows, a backslash
 * separates names even if the folder's path is spelled for a shell. Undefined for an invalid path:
 * empty, with a NUL, too long, or relative without a folder.
 */
export function recordedPath(
  cwd: string | undefined,
  name: string,
  windows: boolean = isOnWindows(cwd),
): CanonicalPath | undefined {
  const folder = cwd === undefined ? undefined : posixSpelling(cwd);
  const home = folder === undefined ? undefined : HOME.exec(folder)?.[0];
  let path = posixSpelling(windows ? name.replaceAll('\\', '/') : name);
  if (/^~(?=\/|$)/.test(path)) {
    if (home === undefined) return undefined;
    path = home + path.slice(1);
  }
  if (path === '' || path.length > 4_000 || path.includes('\0') || !path.isWellFormed()) return undefined;
  if (posix.isAbsolute(path)) return canonicalPath(path);
  if (folder === undefined || !posix.isAbsolute(folder)) return undefined;
  return canonicalPath(posix.join(folder, path));
}

function folderOf(call: EntryOf<'call'>, cwd: string | undefined): string | undefined {
  const own = call.cwd || pathArgument(call.args, 'cwd');
  return own === undefined ? cwd : (recordedPath(cwd, own) ?? cwd);
}

/**
 * Returns a call's arguments with the path of the edited file. A call that edits the open file has
 * no path; its result does.
 */
function withSubject(call: EntryOf<'call'>, result: EntryOf<'result'>): Readonly<Record<string, unknown>> {
  const subject = result.files?.at(-1)?.path;
  const names = Object.keys(call.args).some((name) => /path|file/i.test(name));
  return subject === undefined || names ? call.args : { ...call.args, path: subject };
}

interface Sorted {
  readonly readings: NonNullable<CallReport['readings']>[number][];
  readonly mentions: NonNullable<CallReport['mentions']>[number][];
  unknown: number;
}

/**
 * Reports a file to the client: as a reading if its text is known, otherwise as a mention. A
 * mention leaves the last version unchanged (§5.9).
 */
function take({ path, how }: SeenFile, { tree, filesystem, now, strict }: EffectContext, sorted: Sorted): void {
  const source = filesystemSource(filesystem, path);
  if (how === 'deleted') {
    sorted.readings.push({ source, reading: { kind: 'missing' }, activate: false });
    return;
  }
  const text = how === 'named' ? undefined : tree.text(path);
  if (text !== undefined) {
    sorted.readings.push({
      source,
      reading: readingOfText(text, now),
      activate: how === 'whole' || (strict && how === 'part'),
    });
    return;
  }
  if (how === 'written') sorted.unknown += 1;
  sorted.mentions.push({ source, mtimeMs: now });
}

function sortedFiles(seen: CallEffects['seen'], context: EffectContext): Sorted {
  const sorted: Sorted = { readings: [], mentions: [], unknown: 0 };
  for (const file of seen.slice(0, MOST_DISCOVERED)) take(file, context, sorted);
  return sorted;
}

/** Returns the files that a failed call would have changed, as far as they are known to exist. */
function attempted(call: EntryOf<'call'>, { tree }: EffectContext, resolve: Resolve): CallEffects['seen'] {
  const paths = pathsToChange(call.tool, call.args).flatMap((name) => resolve(name) ?? []);
  const isThere = (path: CanonicalPath): boolean => ![undefined, 'deleted'].includes(tree.get(path)?.state);
  return [...new Set(paths)].filter(isThere).map((path) => ({ path, how: 'named' }));
}

/** A text that a call shows of a file. */
interface ShownText {
  readonly text: string;
  readonly startLine: number;
  /**
   * Whether the tree already knew the whole file. Then a different whole text becomes a version.
   */
  readonly wasWhole: boolean;
}

/** Returns the texts that a call shows, by file. */
function shownTexts(
  acts: CallEffects['acts'],
  evidence: Evidence,
  { tree, resolve }: Pick<EffectContext, 'tree'> & { readonly resolve: Resolve },
): ReadonlyMap<CanonicalPath, ShownText> {
  const shown = new Map<CanonicalPath, ShownText>();
  const show = (name: string, text: string | undefined, startLine = 1): void => {
    const path = resolve(name);
    if (path === undefined || text === undefined) return;
    shown.set(path, { text, startLine, wasWhole: tree.get(path)?.state === 'whole' });
  };
  for (const act of acts) if (act.kind === 'show') show(act.path, act.text, act.startLine);
  for (const file of evidence.reading ? evidence.files : []) show(file.path, file.text, file.start_line);
  return shown;
}

/** Compares the lines that a call shows with those that were read before. */
function compareReads(
  { acts, seen }: Pick<CallEffects, 'acts' | 'seen'>,
  shown: ReadonlyMap<CanonicalPath, ShownText>,
  { reads, tree }: EffectContext,
): readonly OtherLines[] {
  if (reads === undefined) return [];
  if (acts.some(({ kind }) => kind === 'anything')) reads.doubt();
  return seen.flatMap(({ path, how }): readonly OtherLines[] => {
    const lines = shown.get(path);
    const isVersion = how === 'whole' && lines?.wasWhole === true;
    if (how === 'written' || how === 'deleted' || isVersion) reads.changed(path, tree.text(path));
    else if (lines !== undefined) {
      const other = reads.read(path, lines);
      return other === undefined ? [] : [{ path, ...other }];
    }
    return [];
  });
}

/**
 * Applies a finished call to the file tree and returns what to report to the client (decisions C1,
 * C7, D8). Whole texts become readings, other existing files mentions. A failed call is assumed to
 * have changed no file. A failed edit mentions its file. After a call without a result, the texts
 * of its files are unknown.
 */
export function callEffects(call: EntryOf<'call'>, result: EntryOf<'result'>, context: EffectContext): CallEffects {
  const tool = recordedTool(call.tool);
  const none = {
    kind: tool.kind,
    acts: [],
    seen: [],
    readings: [],
    mentions: [],
    read: undefined,
    unknown: 0,
    left: 0,
    otherLines: [],
  };
  const cwd = folderOf(call, context.cwd);
  const resolve: Resolve = (name) => recordedPath(cwd, name, isOnWindows(context.cwd));
  if (result.is_error && tool.kind !== 'shell') {
    const seen = attempted(call, context, resolve);
    if (context.isLost === true) {
      for (const { path } of seen) {
        context.tree.lose(path);
        context.reads?.changed(path, undefined);
      }
    }
    const { mentions } = sortedFiles(seen, context);
    return { ...none, seen, mentions };
  }
  const finished = {
    tool: call.tool,
    args: withSubject(call, result),
    output: result.text,
    truncated: result.truncated === true,
  };
  const acts = tool
    .acts(finished)
    .filter((act) => !result.is_error || (act.kind !== 'show' && act.kind !== 'name' && act.kind !== 'list'));
  const reading = tool.kind === 'read' || (tool.kind === 'edit' && call.args.command === 'view');
  const evidence = { files: result.files ?? [], listed: result.listed ?? [], reading };
  const shown = shownTexts(acts, evidence, { tree: context.tree, resolve });
  const seen = applyActs(acts, evidence, { tree: context.tree, resolve, undo: context.undo });
  const otherLines = compareReads({ acts, seen }, shown, context);
  const sorted = sortedFiles(seen, context);
  const [only, second] = seen;
  const isRead = second === undefined && (only?.how === 'whole' || only?.how === 'part');
  const read =
    only !== undefined && isRead
      ? { path: only.path, text: only.how === 'whole' ? context.tree.text(only.path) : undefined }
      : undefined;
  const left = Math.max(0, seen.length - MOST_DISCOVERED);
  return { kind: tool.kind, acts, seen, ...sorted, read, left, otherLines };
}

/** Counts the effects of a recording's calls. */
export class EffectCounts {
  failed = 0;
  unanswered = 0;
  /** Number of calls by kind of tool. Rare kinds have an entry only if they occurred. */
  readonly kinds = { read: 0, write: 0, edit: 0, patch: 0, list: 0, glob: 0, grep: 0, shell: 0, other: 0 };
  /**
   * Number of reads of whole files and of parts. `by_shell` is the number of these reads that a
   * shell did.
   */
  readonly reads = { whole: 0, part: 0, by_shell: 0 };
  readonly changes = { followed: 0, unknown: 0 };
  /**
   * Number of observed files that were reported to the client, and number of those that were left
   * out.
   */
  readonly observations = { reported: 0, left: 0 };

  add({ kind, seen, readings, mentions, unknown, left }: CallEffects, failed: boolean): void {
    bump(this.kinds, kind);
    if (failed) this.failed += 1;
    for (const { how } of seen) {
      if (how !== 'whole' && how !== 'part') continue;
      this.reads[how] += 1;
      if (kind === 'shell') this.reads.by_shell += 1;
    }
    this.changes.unknown += unknown;
    this.changes.followed += seen.filter(({ how }) => how === 'written').length - unknown;
    this.observations.reported += readings.length + mentions.length;
    this.observations.left += left;
  }
}

/** A call in the form in which the session records it. */
interface MappedCall {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly content: string;
}

/** The names of our tools for the kinds of recorded tools [§5.1]. Other tools keep their names. */
const WRAPPED: Readonly<Record<Exclude<ToolKind, 'other'>, string>> = {
  read: 'read',
  write: 'write',
  edit: 'edit',
  patch: 'edit',
  list: 'ls',
  glob: 'find',
  grep: 'grep',
  tree: 'tree',
  shell: 'bash',
};

const LONGEST_DISPLAY = 400;

function displayOf(call: EntryOf<'call'>): string {
  const text = `${call.tool} ${JSON.stringify(call.args)}`;
  return text.length <= LONGEST_DISPLAY ? text : `${text.slice(0, LONGEST_DISPLAY - 1).toWellFormed()}…`;
}

/** Returns the file that a call shows, if the call does nothing else. */
function onlyShown(acts: readonly FileAct[]): Extract<FileAct, { kind: 'show' }> | undefined {
  const [act, second] = acts;
  return second === undefined && act?.kind === 'show' ? act : undefined;
}

/** The file that a call read: its path, and its text if the call showed all of it. */
export interface WholeText {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * Returns a recorded call as a call of our own tool. A read becomes `read` of the path, even if a
 * shell command did it. If the whole file was shown, the result is its text. `args_display` keeps
 * the recorded arguments. The step can still prove the output that the model saw.
 */
export function wrappedCall(
  call: EntryOf<'call'>,
  { kind, acts, read }: Pick<CallEffects, 'kind' | 'acts' | 'read'>,
  output: string,
): MappedCall {
  const recorded = call.args as MappedCall['args'];
  if (kind === 'other') return { tool: call.tool, args: recorded, content: output };
  const shown = onlyShown(acts);
  const argsDisplay = displayOf(call);
  if (read?.text !== undefined)
    return { tool: WRAPPED.read, args: { path: read.path }, argsDisplay, content: read.text };
  if (shown !== undefined && read !== undefined) {
    const lines = shown.text === '' ? 0 : shown.text.replace(/\n$/, '').split('\n').length;
    return {
      tool: WRAPPED.read,
      args: { path: read.path, offset: shown.startLine, limit: lines },
      argsDisplay,
      content: output,
    };
  }
  const [only, second] = acts;
  const lists = kind === 'shell' && only?.kind === 'list' && second === undefined;
  return { tool: lists ? WRAPPED.grep : WRAPPED[kind], args: recorded, argsDisplay, content: output };
}
