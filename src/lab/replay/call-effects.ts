import { posix } from 'node:path';
import { MOST_DISCOVERED } from '../../client/decide-file.js';
import type { CallReport } from '../../client/session/call-report.js';
import { pathArgument } from '../../foreign-tools/tool-arguments.js';
import type { ToolKind } from '../../foreign-tools/tool-table.js';
import { readingOfText } from '../../harness/observe-call.js';
import type { FileAct } from '../../harness/tool-output/file-act.js';
import type { Json } from '../../objects/canonical-json.js';
import { type CanonicalPath, canonicalPath, type FilesystemId } from '../../objects/ids.js';
import { filesystemSource } from '../../objects/source.js';
import { bump } from '../recordings/import-counts.js';
import type { EntryOf } from '../recordings/neutral-session.js';
import { applyActs, type SeenFile } from './files/apply-acts.js';
import type { FileTree, UndoTexts } from './files/file-tree.js';
import { recordedTool } from './recorded-tools.js';

/** The effects of a finished call, as recorded. */
export interface CallEffects {
  readonly kind: ToolKind;
  readonly acts: readonly FileAct[];
  readonly seen: readonly SeenFile[];
  readonly readings: NonNullable<CallReport['readings']>;
  readonly mentions: NonNullable<CallReport['mentions']>;
  /** The file that the call read, if it is a plain read of one file. */
  readonly read: WholeText | undefined;
  /** The number of files whose text is unknown after the call. */
  readonly unknown: number;
  /** The number of files beyond the cap of decision C7. */
  readonly left: number;
}

/** The input for judging effects. */
interface EffectContext {
  readonly tree: FileTree;
  readonly undo: UndoTexts;
  readonly cwd: string | undefined;
  readonly filesystem: FilesystemId;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** The literal behaviour: a part of a file activates it, too (decision D8). */
  readonly strict: boolean;
}

const DRIVE = /^([A-Za-z]):[\\/]/;
const HOME = /^\/(?:home|Users)\/[^/]+(?=\/|$)|^\/root(?=\/|$)/;

/** Converts a Windows path to its shell's spelling: `D:\repo\a` becomes `/d/repo/a`. */
function posixSpelling(path: string): string {
  const drive = DRIVE.exec(path);
  if (drive === null) return path;
  return `/${(drive[1] ?? '').toLowerCase()}/${path.slice(drive[0].length).replaceAll('\\', '/')}`;
}

/** Returns whether a folder has a drive, as on Windows. */
const isOnWindows = (folder: string | undefined): boolean => folder !== undefined && DRIVE.test(folder);

/**
 * Returns the canonical path of a recorded name (decision H6). Relative names are below the call's
 * folder, and `~` is resolved if that folder names the home. Undefined for an invalid path: empty,
 * with a NUL, too long, or relative without a folder. On Windows a backslash separates names, also
 * behind a folder in the shell's spelling.
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

/** An edit of the open file does not name it. The name is in the answer's view of the file. */
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
 * Reports a file to the client: by its text if known, otherwise as a mention. An unknown text
 * leaves the last version unchanged (§5.9).
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

/**
 * Follows a finished call through the file tree and returns what to report to the client (decisions
 * C1, C7, D8). Whole texts become reads; other existing files become mentions. A failed call is
 * assumed to change no file.
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
  };
  if (result.is_error && tool.kind !== 'shell') return none;
  const cwd = folderOf(call, context.cwd);
  const resolve = (name: string): CanonicalPath | undefined => recordedPath(cwd, name, isOnWindows(context.cwd));
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
  const seen = applyActs(acts, evidence, { tree: context.tree, resolve, undo: context.undo });
  const sorted: Sorted = { readings: [], mentions: [], unknown: 0 };
  for (const file of seen.slice(0, MOST_DISCOVERED)) take(file, context, sorted);
  const [only, second] = seen;
  const isRead = second === undefined && (only?.how === 'whole' || only?.how === 'part');
  const read =
    only !== undefined && isRead
      ? { path: only.path, text: only.how === 'whole' ? context.tree.text(only.path) : undefined }
      : undefined;
  return { kind: tool.kind, acts, seen, ...sorted, read, left: Math.max(0, seen.length - MOST_DISCOVERED) };
}

/** Counts the effects of a recording's calls. */
export class EffectCounts {
  failed = 0;
  unanswered = 0;
  /** Calls by the purpose of the tool. A rare kind appears only if it occurred. */
  readonly kinds = { read: 0, write: 0, edit: 0, patch: 0, list: 0, glob: 0, grep: 0, shell: 0, other: 0 };
  /** Reads by any means: whole files, parts of files, and those of both by a shell. */
  readonly reads = { whole: 0, part: 0, by_shell: 0 };
  readonly changes = { followed: 0, unknown: 0 };
  /** Files that calls read or mentioned: reported to the client, or beyond the cap. */
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

/** A call as it is recorded in the session. */
interface MappedCall {
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly content: string;
}

/**
 * Maps recorded tools to the wrapped tools [§5.1]. Tools without a counterpart keep their names.
 */
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

/** Returns the file of a call that only shows that file. */
function onlyShown(acts: readonly FileAct[]): Extract<FileAct, { kind: 'show' }> | undefined {
  const [act, second] = acts;
  return second === undefined && act?.kind === 'show' ? act : undefined;
}

/** The file that a call read: its path, and its whole text if all was shown. */
export interface WholeText {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * Returns a recorded call under the name of its wrapped tool. A read, including one by a shell
 * command, becomes a `read` of the path. A whole file keeps its own text, as the wrapped tool does.
 * `args_display` holds the recorded form, and the step proves what the model saw.
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
