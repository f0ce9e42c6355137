import { ARGUMENT_NAMES } from '../foreign-tools/tool-arguments.js';
import { ownMember } from '../values/own-member.js';

/** Keys that clients add themselves or that only explain. They are dropped without a remark. */
export const IGNORED: ReadonlySet<string> = new Set([
  'wait_for_previous',
  'session',
  'description',
  'instruction',
  'explanation',
  'reason',
]);

type Arguments = Record<string, unknown>;
type Rewrite = (given: Arguments) => void;

/** Moves a value to our name for it, unless that name is also given. */
function rename(given: Arguments, to: string, names: readonly string[]): void {
  for (const name of names) {
    if (name === to || !Object.hasOwn(given, name)) continue;
    if (!Object.hasOwn(given, to)) given[to] = given[name];
    delete given[name];
  }
}

const renames =
  (to: string, ...names: readonly string[]): Rewrite =>
  (given) =>
    rename(given, to, names);

const path = renames('path', ...ARGUMENT_NAMES.path);

/** Converts a first and last line to offset and limit. */
function lineRange(given: Arguments): void {
  rename(given, 'offset', ARGUMENT_NAMES.offset);
  const [last] = ARGUMENT_NAMES.lastLine.filter((name) => Object.hasOwn(given, name));
  const end = last === undefined ? Number.NaN : Number(given[last]);
  if (Number.isInteger(end) && !Object.hasOwn(given, 'limit'))
    given.limit = Math.max(1, end - Number(given.offset ?? 1) + 1);
  for (const name of ARGUMENT_NAMES.lastLine) delete given[name];
}

function editTexts(given: Arguments): void {
  rename(given, 'oldText', ARGUMENT_NAMES.oldText);
  rename(given, 'newText', ARGUMENT_NAMES.newText);
}

/** Wraps a single replacement in a list. */
function edits(given: Arguments): void {
  editTexts(given);
  const { oldText, newText } = given;
  if (oldText !== undefined && given.edits === undefined) given.edits = [{ oldText, newText: newText ?? '' }];
  delete given.oldText;
  delete given.newText;
  if (!Array.isArray(given.edits)) return;
  given.edits = given.edits.map((edit: unknown) => {
    if (typeof edit !== 'object' || edit === null || Array.isArray(edit)) return edit;
    const copy: Arguments = { ...edit };
    editTexts(copy);
    return copy;
  });
}

function caseSensitive(given: Arguments): void {
  const sensitive = given.case_sensitive;
  if (sensitive !== undefined && !Object.hasOwn(given, 'ignoreCase')) given.ignoreCase = String(sensitive) === 'false';
  delete given.case_sensitive;
}

const SEARCH: readonly Rewrite[] = [
  path,
  renames('pattern', 'regex', 'query', 'search'),
  renames('glob', 'include', 'include_pattern', 'includePattern', 'file_pattern'),
  renames('ignoreCase', 'ignore_case', '-i', 'i', 'case_insensitive'),
  renames('literal', 'fixed_strings', 'fixedStrings'),
  renames('context', '-C', 'C', 'context_lines'),
  renames('limit', 'head_limit', 'max_results', 'maxResults', 'max_matches'),
  caseSensitive,
];
const IDS: readonly Rewrite[] = [
  renames('ids', 'id', 'object_id', 'objectId', 'object_ids', 'objects', 'path', 'paths'),
];

const REWRITES: Readonly<Record<string, readonly Rewrite[]>> = {
  activate: IDS,
  deactivate: IDS,
  pin: IDS,
  unpin: IDS,
  read: [path, lineRange, renames('id', 'object_id', 'objectId')],
  write: [path, renames('content', ...ARGUMENT_NAMES.content)],
  edit: [path, edits],
  ls: [path],
  find: SEARCH,
  grep: SEARCH,
  tree: [path, renames('depth', 'max_depth', 'maxDepth', 'level', 'levels')],
  bash: [renames('command', 'cmd', 'script'), renames('cwd', ...ARGUMENT_NAMES.cwd, 'dir_path')],
};

/** Renames a call's arguments in place, from the names of other agents' tools to ours. */
export function applyAliases(tool: string, given: Arguments): void {
  for (const rewrite of ownMember(REWRITES, tool) ?? []) rewrite(given);
}
