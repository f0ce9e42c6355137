import type { FileAct } from './files/file-act.js';
import { listedNames } from './files/listed-names.js';
import { parsePatch } from './files/patch-envelope.js';
import type { Replacement } from './files/text-edits.js';
import { readActs } from './files/whole-or-part.js';
import { shellFileActs } from './shell/shell-file-acts.js';

/** What a recorded tool is for, named after the wrapped tools [§5.1]. */
export type RecordedToolKind = 'read' | 'write' | 'edit' | 'patch' | 'list' | 'glob' | 'grep' | 'shell' | 'other';

/** A finished call as the recording has it. */
export interface FinishedCall {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly output: string;
  readonly truncated: boolean;
}

type Acts = (call: FinishedCall) => readonly FileAct[];

/** How a tool is understood. */
export interface RecordedTool {
  readonly kind: RecordedToolKind;
  readonly acts: Acts;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
const first = (args: FinishedCall['args'], names: readonly string[]): string | undefined =>
  names.map((name) => text(args[name])).find((value) => value !== undefined && value !== '');

/** Under which names tools take the file that they work on. */
const PATH_ARGS = [
  'file_path',
  'path',
  'filePath',
  'absolute_path',
  'notebook_path',
  'file',
  'filename',
  'target_file',
  'file_name',
  'relative_path',
] as const;
const OLD_ARGS = ['old_string', 'oldText', 'old_str', 'oldString', 'old_text', 'search'] as const;
const NEW_ARGS = ['new_string', 'newText', 'new_str', 'newString', 'new_text', 'replace'] as const;
const TEXT_ARGS = ['content', 'file_text', 'contents', 'text', 'new_str'] as const;

const pathOf = (args: FinishedCall['args']): string | undefined => first(args, PATH_ARGS);

function replacementOf(args: FinishedCall['args']): Replacement | undefined {
  const from = OLD_ARGS.map((name) => text(args[name])).find((value) => value !== undefined);
  const to = NEW_ARGS.map((name) => text(args[name])).find((value) => value !== undefined);
  const all = args.replace_all === true || args.replaceAll === true || Number(args.expected_replacements ?? 1) > 1;
  return from === undefined ? undefined : { from, to: to ?? '', all };
}

const write: Acts = ({ args }) => {
  const path = pathOf(args);
  const content = TEXT_ARGS.map((name) => text(args[name])).find((value) => value !== undefined);
  if (path === undefined) return [{ kind: 'anything' }];
  return [content === undefined ? { kind: 'change', path } : { kind: 'write', path, text: content }];
};

/** Replacements, lines after a line, or lines in the place of others: whatever the arguments are made for. */
const edit: Acts = ({ args }) => {
  const path = pathOf(args);
  if (path === undefined) return [{ kind: 'anything' }];
  const several = list(args.edits).map((one) => replacementOf(fields(one)));
  if (several.length > 0) {
    return several.includes(undefined)
      ? [{ kind: 'change', path }]
      : [{ kind: 'replace', path, replacements: several as readonly Replacement[] }];
  }
  const one = replacementOf(args);
  const line = args.insert_line;
  const inserts = text(args.new_str) ?? text(args.text) ?? text(args.new_text);
  if (typeof line === 'number' && inserts !== undefined && one === undefined)
    return [{ kind: 'insert', path, afterLine: line, text: inserts }];
  if (one !== undefined) return [{ kind: 'replace', path, replacements: [one] }];
  const [from, to] = [Number(args.start_line ?? args.start), Number(args.end_line ?? args.end)];
  const lines = first(args, ['replacement_text', 'content', 'text', 'new_text']);
  if (Number.isInteger(from) && Number.isInteger(to) && lines !== undefined)
    return [{ kind: 'range', path, first: from, last: to, text: lines }];
  return [{ kind: 'change', path }];
};

/** An editor whose old text may be left out, for a file that it makes or an insertion. */
const editor: Acts = (call) => {
  const { args } = call;
  const made =
    replacementOf(args) === undefined && args.insert_line === undefined && first(args, ['new_text', 'content', 'file_text']) !== undefined;
  const path = pathOf(args);
  if (!made || path === undefined) return edit(call);
  return [{ kind: 'write', path, text: first(args, ['new_text', 'content', 'file_text']) ?? '' }];
};

const undo: Acts = ({ args }) => {
  const path = pathOf(args);
  return [path === undefined ? { kind: 'anything' } : { kind: 'undo', path }];
};

/** The commands of the editor that has them as an argument. */
const EDITOR_COMMANDS: ReadonlyMap<unknown, Acts> = new Map([
  ['view', (call: FinishedCall) => readActs(call, pathOf(call.args))],
  ['create', write],
  ['str_replace', edit],
  ['insert', edit],
  ['undo_edit', undo],
]);

const editorWithCommands: Acts = (call) => {
  const { command } = call.args;
  if (command === undefined) return editor(call);
  return EDITOR_COMMANDS.get(command)?.(call) ?? [{ kind: 'anything' }];
};

const patch: Acts = ({ args }) => {
  const envelope = Object.values(args).find((value) => typeof value === 'string' && value.includes('*** Begin Patch'));
  const changes = typeof envelope === 'string' ? parsePatch(envelope) : undefined;
  if (changes === undefined) return [{ kind: 'anything' }];
  return changes.map((change): FileAct => {
    if (change.kind === 'add') return { kind: 'write', path: change.path, text: change.text };
    if (change.kind === 'delete') return { kind: 'delete', path: change.path, folder: false };
    return { kind: 'update', path: change.path, moveTo: change.moveTo, hunks: change.hunks };
  });
};

const several: Acts = (call) => {
  const asked = [...list(call.args.files), ...list(call.args.paths), ...list(call.args.file_paths)];
  const paths = asked.flatMap((one) => text(one) ?? pathOf(fields(one)) ?? []);
  return paths.map((path) => ({ kind: 'name', path }));
};

const read: Acts = (call) => {
  const path = pathOf(call.args);
  return path === undefined ? several(call) : readActs(call, path);
};

const listing: Acts = ({ args, output }) => {
  const folder = first(args, ['path', 'dir_path', 'directory', 'target_directory']) ?? '.';
  return [{ kind: 'list', paths: listedNames('listing', output, folder) }];
};

const globbing: Acts = ({ output }) => [{ kind: 'list', paths: listedNames('paths', output, '.') }];

const searching: Acts = ({ args, output }) => {
  const target = first(args, ['path', 'dir_path', 'directory', 'file']) ?? '.';
  const found = args.output_mode === 'content' ? listedNames('matches', output, '.', [target]) : [];
  if (found.length > 0) return [{ kind: 'list', paths: found }];
  return [
    {
      kind: 'list',
      paths: [
        ...listedNames('matches', output, '.', [target]),
        ...(args.output_mode === 'content' ? [] : listedNames('paths', output, '.')),
      ],
    },
  ];
};

const remove: Acts = ({ args }) => {
  const path = pathOf(args);
  return [path === undefined ? { kind: 'anything' } : { kind: 'delete', path, folder: false }];
};

const move: Acts = ({ args }) => {
  const [from, to] = [first(args, ['source', 'old_path', 'from']), first(args, ['destination', 'new_path', 'to'])];
  return [from === undefined || to === undefined ? { kind: 'anything' } : { kind: 'move', from, to }];
};

const nothing: Acts = () => [];

/** Every tool that recordings name, in lower case without separators. Tools that are not listed touch no file as far as anybody knows. */
const TOOLS: Readonly<Record<Exclude<RecordedToolKind, 'other'>, Readonly<Record<string, Acts>>>> = {
  read: {
    read: read,
    readfile: read,
    readtextfile: read,
    view: read,
    viewfile: read,
    open: read,
    goto: nothing,
    scrollup: nothing,
    scrolldown: nothing,
    readfiles: several,
    readmanyfiles: several,
    readmultiplefiles: several,
    notebookread: read,
    viewimage: nothing,
  },
  write: { write, writefile: write, create: write, createfile: write, writetofile: write, deletefile: remove, movefile: move },
  edit: {
    edit,
    multiedit: edit,
    editfile: edit,
    replace: edit,
    strreplace: edit,
    insert: edit,
    replaceinfile: edit,
    editor,
    strreplaceeditor: editorWithCommands,
    strreplacebasededittool: editorWithCommands,
    fileeditor: editorWithCommands,
    undoedit: undo,
    notebookedit: ({ args }) => (pathOf(args) === undefined ? [{ kind: 'anything' }] : [{ kind: 'change', path: pathOf(args) ?? '' }]),
  },
  patch: { applypatch: patch, patch, applydiff: patch },
  list: { ls: listing, list: listing, listdir: listing, listdirectory: listing, listfiles: listing },
  glob: { glob: globbing, find: globbing, findfile: globbing, findfiles: globbing, filesearch: globbing },
  grep: {
    grep: searching,
    searchfilecontent: searching,
    greptool: searching,
    searchdir: searching,
    searchfile: nothing,
    searchcodebase: searching,
    codebasesearch: nothing,
    rg: searching,
  },
  shell: Object.fromEntries(
    [
      'bash',
      'shell',
      'sh',
      'execcommand',
      'localshell',
      'containerexec',
      'runshellcommand',
      'runcommands',
      'runcommand',
      'executebash',
      'terminal',
      'cmdrun',
      'run',
      'powershell',
      'shellcommand',
    ].map((name) => [name, shellFileActs]),
  ),
};

const BY_NAME: ReadonlyMap<string, RecordedTool> = new Map(
  Object.entries(TOOLS).flatMap(([kind, tools]) =>
    Object.entries(tools).map(([name, acts]): [string, RecordedTool] => [name, { kind: kind as RecordedToolKind, acts }]),
  ),
);

/** Tools that run code which may change any file. */
const RUNS_CODE: ReadonlySet<string> = new Set([
  'exec',
  'runipython',
  'executeipythoncell',
  'python',
  'ipython',
  'edit_notebook',
  'task',
  'agent',
  'wait',
]);

/** Typing into a program that runs may do anything; looking at what it printed meanwhile does nothing. */
const typing: Acts = ({ args }) => (typeof args.chars === 'string' && args.chars !== '' ? [{ kind: 'anything' }] : []);

const OTHER: RecordedTool = { kind: 'other', acts: nothing };
const RUNNING: RecordedTool = { kind: 'other', acts: () => [{ kind: 'anything' }] };

/** How a recorded tool is understood, by its name in any spelling. */
export function recordedTool(name: string): RecordedTool {
  const bare = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  const last = (name.split(/__|[./:]/).at(-1) ?? name).toLowerCase().replace(/[^a-z0-9]/g, '');
  if (bare === 'writestdin') return { kind: 'other', acts: typing };
  return BY_NAME.get(bare) ?? BY_NAME.get(last) ?? (RUNS_CODE.has(bare) ? RUNNING : OTHER);
}
