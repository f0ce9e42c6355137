import { patched } from '../../../foreign-tools/patch-envelope.js';
import { inserted, rangeReplaced, replaced, substituted } from '../../../foreign-tools/text-edits.js';
import type { FileAct } from '../../../harness/tool-output/file-act.js';
import type { CanonicalPath } from '../../../objects/ids.js';
import { defined } from '../../../values/defined.js';
import type { ShownFile } from '../../recordings/neutral-session.js';
import type { FileTree, UndoTexts } from './file-tree.js';

/** The effect of a call on one file. */
export interface SeenFile {
  readonly path: CanonicalPath;
  /**
   * `whole`: all of it was shown. `part`: some lines were shown. `named`: it exists. `written`: it
   * was changed. `deleted`: it was removed.
   */
  readonly how: 'whole' | 'part' | 'named' | 'written' | 'deleted';
}

/** Returns the canonical path of a recorded name; undefined for an invalid path. */
export type Resolve = (name: string) => CanonicalPath | undefined;

interface Work {
  readonly tree: FileTree;
  readonly resolve: Resolve;
  readonly undo: UndoTexts;
}

function remember({ tree, undo }: Work, path: CanonicalPath): void {
  const known = tree.get(path);
  undo.push(path, known?.state === 'whole' ? known.text : undefined);
}

/** Applies a change if the file's text is known. Otherwise the text stays unknown. */
function changed(work: Work, name: string, change: (text: string) => string | undefined): readonly SeenFile[] {
  const path = work.resolve(name);
  if (path === undefined) return [];
  remember(work, path);
  const known = work.tree.get(path);
  const result = known?.state === 'whole' ? change(known.text) : undefined;
  if (result === undefined || known?.state !== 'whole') work.tree.lose(path);
  else work.tree.setWhole(path, result, known.sure);
  return [{ path, how: 'written' }];
}

/** An effect on a file, which is given by its recorded name. */
interface Named extends Pick<SeenFile, 'how'> {
  readonly path: string;
}

function one(work: Work, { path: name, how }: Named, act: (path: CanonicalPath) => void): readonly SeenFile[] {
  const path = work.resolve(name);
  if (path === undefined) return [];
  act(path);
  return [{ path, how }];
}

type ActOf<K extends FileAct['kind']> = Extract<FileAct, { kind: K }>;

/** The rule for each kind of act. */
const RULES: { readonly [K in FileAct['kind']]: (act: ActOf<K>, work: Work) => readonly SeenFile[] } = {
  show: ({ path, text, startLine, whole, total }, work) =>
    one(work, { path, how: whole ? 'whole' : 'part' }, (at) =>
      whole ? work.tree.setWhole(at, text) : work.tree.overlay(at, { text, startLine, ...defined({ total }) }),
    ),
  name: ({ path }, work) => one(work, { path, how: 'named' }, (at) => work.tree.name(at)),
  list: ({ paths }, work) => paths.flatMap((path) => one(work, { path, how: 'named' }, (at) => work.tree.name(at))),
  write: ({ path, text }, work) =>
    one(work, { path, how: 'written' }, (at) => {
      remember(work, at);
      work.tree.setWhole(at, text);
    }),
  append: ({ path, text }, work) => changed(work, path, (before) => before + text),
  replace: ({ path, replacements }, work) => {
    const at = work.resolve(path);
    const fresh =
      at !== undefined && (work.tree.get(at)?.state ?? 'deleted') === 'deleted' && replacements[0]?.from === '';
    // Replacing an empty text creates a new file.
    if (fresh && at !== undefined) {
      work.tree.setWhole(at, replaced('', replacements) ?? '');
      return [{ path: at, how: 'written' }];
    }
    return changed(work, path, (before) => replaced(before, replacements));
  },
  substitute: ({ path, ...lines }, work) => changed(work, path, (before) => substituted(before, lines)),
  insert: ({ path, afterLine, text }, work) => changed(work, path, (before) => inserted(before, afterLine, text)),
  range: ({ path, ...lines }, work) => changed(work, path, (before) => rangeReplaced(before, lines)),
  update: ({ path, moveTo, hunks }, work) => {
    const seen = changed(work, path, (before) => patched(before, hunks));
    return moveTo === undefined ? seen : RULES.move({ kind: 'move', from: path, to: moveTo }, work);
  },
  undo: ({ path }, work) =>
    one(work, { path, how: 'written' }, (at) => {
      const text = work.undo.pop(at);
      if (text === undefined) work.tree.lose(at);
      else work.tree.setWhole(at, text);
    }),
  change: ({ path }, work) => one(work, { path, how: 'written' }, (at) => work.tree.lose(at)),
  delete: ({ path, folder }, work) => {
    const at = work.resolve(path);
    if (at === undefined) return [];
    const below = folder ? work.tree.below(at) : [];
    const gone = work.tree.get(at) === undefined && (below.length > 0 || folder) ? below : [...below, at];
    for (const file of gone) work.tree.delete(file);
    return gone.map((file) => ({ path: file, how: 'deleted' }));
  },
  move: ({ from, to }, work) => {
    const [before, after] = [work.resolve(from), work.resolve(to)];
    if (before === undefined || after === undefined) return [];
    // A moved folder takes its files along. It counts as a folder only if files below it are known.
    const below = work.tree.get(before) === undefined ? work.tree.below(before) : [];
    const pairs =
      below.length > 0
        ? below.map((file) => [file, (after + file.slice(before.length)) as CanonicalPath] as const)
        : [[before, after] as const];
    return pairs.flatMap(([source, target]): readonly SeenFile[] => {
      work.tree.move(source, target);
      return [
        { path: source, how: 'deleted' },
        { path: target, how: 'written' },
      ];
    });
  },
  copy: ({ from, to }, work) => {
    const [source, target] = [work.resolve(from), work.resolve(to)];
    if (source === undefined || target === undefined) return [];
    const known = work.tree.get(source);
    if (known?.state === 'whole') work.tree.setWhole(target, known.text, known.sure);
    else work.tree.lose(target);
    return [{ path: target, how: 'written' }];
  },
  anything: (_act, { tree }) => {
    tree.doubtAll();
    return [];
  },
};

function applyAct(act: FileAct, work: Work): readonly SeenFile[] {
  return (RULES[act.kind] as (act: FileAct, work: Work) => readonly SeenFile[])(act, work);
}

/** Adds the recorded state of a file to the tree. */
function lay(file: ShownFile, { tree, resolve }: Work): CanonicalPath | undefined {
  const path = resolve(file.path);
  if (path === undefined) return undefined;
  if (file.text === undefined) tree.name(path);
  else if (file.whole) tree.setWhole(path, file.text);
  else tree.overlay(path, { text: file.text, startLine: file.start_line ?? 1, total: file.total_lines });
  return path;
}

/** The recorded states of a call's files, in addition to the call's arguments and output. */
export interface Evidence {
  readonly files: readonly ShownFile[];
  readonly listed: readonly string[];
  /** Whether the evidence shows files that the call read, not files that it changed. */
  readonly reading: boolean;
}

const RANK: Readonly<Record<SeenFile['how'], number>> = { named: 0, part: 1, whole: 2, written: 3, deleted: 4 };

/**
 * Applies a successful call to the tree and returns its effects, one per file, in order. A recorded
 * state of a file takes precedence over the call's arguments. A state from before the call is
 * applied first, a state from after it last.
 */
export function applyActs(acts: readonly FileAct[], evidence: Evidence, work: Work): readonly SeenFile[] {
  const seen = new Map<CanonicalPath, SeenFile['how']>();
  const note = (path: CanonicalPath, how: SeenFile['how']): void => {
    const before = seen.get(path);
    if (before === undefined || how === 'deleted' || before === 'deleted' || RANK[how] > RANK[before])
      seen.set(path, how);
  };
  for (const file of evidence.files) {
    if (file.moment === 'before') lay(file, work);
  }
  const shown = new Set(evidence.files.map(({ path }) => work.resolve(path)));
  for (const act of acts) {
    const path = act.kind === 'show' ? work.resolve(act.path) : undefined;
    if (path !== undefined && shown.has(path)) continue;
    for (const file of applyAct(act, work)) note(file.path, file.how);
  }
  const before = new Set(
    evidence.files.flatMap(({ moment, whole, path }) => (moment === 'before' && whole ? [path] : [])),
  );
  for (const file of evidence.files) {
    if (file.moment === 'after') lay(file, work);
    const path = work.resolve(file.path);
    if (path === undefined) continue;
    // The recording has the text from before the call but not the text from after it. So the call
    // changed the file in an unknown way.
    if (file.moment === 'after' && file.text === undefined && before.has(file.path)) work.tree.lose(path);
    if (evidence.reading) note(path, file.text === undefined ? 'named' : file.whole ? 'whole' : 'part');
    else note(path, 'named');
  }
  for (const name of evidence.listed) {
    const path = name.endsWith('/') ? undefined : work.resolve(name);
    if (path === undefined) continue;
    work.tree.name(path);
    note(path, 'named');
  }
  return [...seen].map(([path, how]) => ({ path, how }));
}
