import { askedReplacement, askedReplacements } from '../../foreign-tools/asked-replacements.js';
import { pathArgument, severalPaths, textArgument } from '../../foreign-tools/tool-arguments.js';
import { foreignTool, type ListingFormat, type ToolForm, type ToolKind } from '../../foreign-tools/tool-table.js';
import { type FileAct, patchActs } from '../../harness/tool-output/file-act.js';
import { certainNames, type ListedPlace } from '../../harness/tool-output/listed-names.js';
import { type ReadCall, readText } from '../../harness/tool-output/read-output.js';
import { shellFileActs } from './files/shell-file-acts.js';

/** Returns a finished call's effects on files, from its arguments and output. */
type Acts = (call: ReadCall) => readonly FileAct[];

const ANYTHING: readonly FileAct[] = [{ kind: 'anything' }];
const anything: Acts = () => ANYTHING;
const nothing: Acts = () => [];

/**
 * Interprets calls that name one file. Assumes that a call without a path may have changed any
 * file.
 */
const onPath =
  (act: (path: string, call: ReadCall) => FileAct): Acts =>
  (call) => {
    const path = pathArgument(call.args);
    return path === undefined ? ANYTHING : [act(path, call)];
  };

const several: Acts = ({ args }) => severalPaths(args).map((path) => ({ kind: 'name', path }));

const read: Acts = (call) => {
  const path = pathArgument(call.args);
  if (path === undefined) return several(call);
  const shown = readText(call);
  return [shown === undefined ? { kind: 'name', path } : { kind: 'show', path, ...shown }];
};

const write = onPath((path, { args }) => {
  const text = textArgument(args, 'content');
  return text === undefined ? { kind: 'change', path } : { kind: 'write', path, text };
});

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const filled = (value: unknown): string | undefined => (value === '' ? undefined : text(value));

/**
 * Interprets an edit. Depending on its arguments, it replaces text, inserts text after a line, or
 * replaces lines.
 */
const edit = onPath((path, { args }) => {
  const replacements = askedReplacements(args);
  if (replacements !== undefined) return { kind: 'replace', path, replacements };
  if (Array.isArray(args.edits) && args.edits.length > 0) return { kind: 'change', path };
  const { insert_line: afterLine } = args;
  const inserts = text(args.new_str) ?? text(args.text) ?? text(args.new_text);
  if (typeof afterLine === 'number' && inserts !== undefined) return { kind: 'insert', path, afterLine, text: inserts };
  const [first, last] = [Number(args.start_line ?? args.start), Number(args.end_line ?? args.end)];
  const lines = filled(args.replacement_text) ?? filled(args.content) ?? filled(args.text) ?? filled(args.new_text);
  const isRange = Number.isInteger(first) && Number.isInteger(last) && lines !== undefined;
  return isRange ? { kind: 'range', path, first, last, text: lines } : { kind: 'change', path };
});

const editOrCreate: Acts = (call) => {
  const { args } = call;
  const path = pathArgument(args);
  const whole = filled(args.new_text) ?? filled(args.content) ?? filled(args.file_text);
  if (
    path === undefined ||
    whole === undefined ||
    args.insert_line !== undefined ||
    askedReplacement(args) !== undefined
  )
    return edit(call);
  return [{ kind: 'write', path, text: whole }];
};

const undo = onPath((path) => ({ kind: 'undo', path }));

const COMMANDS: ReadonlyMap<unknown, Acts> = new Map([
  [undefined, editOrCreate],
  ['view', (call) => (pathArgument(call.args) === undefined ? [] : read(call))],
  ['create', write],
  ['str_replace', edit],
  ['insert', edit],
  ['undo_edit', undo],
]);

const patch: Acts = ({ args }) => {
  const envelope = Object.values(args).find((value) => typeof value === 'string' && value.includes('*** Begin Patch'));
  return (typeof envelope === 'string' ? patchActs(envelope) : undefined) ?? ANYTHING;
};

const move: Acts = ({ args }) => {
  const [from, to] = [pathArgument(args, 'source'), pathArgument(args, 'destination')];
  return from === undefined || to === undefined ? ANYTHING : [{ kind: 'move', from, to }];
};

const listed = (format: ListingFormat, output: string, place: ListedPlace = {}): readonly string[] =>
  certainNames(format, output, place);

/**
 * Interprets a search, which prints matches or file names. Unless `output_mode` is `content`, looks
 * for both in the output.
 */
const search: Acts = ({ args, output }) => {
  const matches = listed('matches', output, { targets: [pathArgument(args, 'folder') ?? '.'] });
  return [{ kind: 'list', paths: args.output_mode === 'content' ? matches : [...matches, ...listed('paths', output)] }];
};

/** How calls to a tool of each form affect the file tree. */
const ACTS: Readonly<Record<ToolForm, Acts>> = {
  'read-file': read,
  'read-files': several,
  'move-window': nothing,
  'view-image': nothing,
  'write-file': write,
  'delete-file': onPath((path) => ({ kind: 'delete', path, folder: false })),
  'move-file': move,
  'edit-file': edit,
  'edit-or-create': editOrCreate,
  'edit-by-command': (call) => (COMMANDS.get(call.args.command) ?? anything)(call),
  'edit-notebook': onPath((path) => ({ kind: 'change', path })),
  'undo-edit': undo,
  'apply-patch': patch,
  'list-folder': ({ args, output }) => [
    { kind: 'list', paths: listed('listing', output, { folder: pathArgument(args, 'folder') ?? '.' }) },
  ],
  'list-tree': nothing,
  'find-files': ({ output }) => [{ kind: 'list', paths: listed('paths', output) }],
  'search-text': search,
  'search-index': nothing,
  'search-in-file': nothing,
  'run-shell': shellFileActs,
  'run-code': anything,
  'type-input': ({ args }) => (typeof args.chars === 'string' && args.chars !== '' ? ANYTHING : []),
  delegate: anything,
  unknown: nothing,
};

/** Returns how to interpret a recorded tool. The spelling of its name does not matter. */
export function recordedTool(name: string): { readonly kind: ToolKind; readonly acts: Acts } {
  const { form, kind } = foreignTool(name);
  return { kind, acts: ACTS[form] };
}
