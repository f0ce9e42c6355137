/** Keys that clients add on their own account or that only explain; they are left out without a word. */
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

/** Moves a value to the name that we know it by, unless that is given too. */
function rename(given: Arguments, to: string, ...names: readonly string[]): void {
  for (const name of names) {
    if (!Object.hasOwn(given, name)) continue;
    if (!Object.hasOwn(given, to)) given[to] = given[name];
    delete given[name];
  }
}

function paths(given: Arguments): void {
  rename(
    given,
    'path',
    'file_path',
    'filePath',
    'filepath',
    'file',
    'filename',
    'dir_path',
    'dirPath',
    'directory',
    'dir',
    'absolute_path',
    'target_file',
  );
}

/** First and last line become offset and limit. */
function lineRange(given: Arguments): void {
  rename(given, 'offset', 'start_line', 'startLine', 'line');
  const end = Number(given.end_line ?? given.endLine);
  if (Number.isInteger(end) && !Object.hasOwn(given, 'limit')) given.limit = Math.max(1, end - Number(given.offset ?? 1) + 1);
  delete given.end_line;
  delete given.endLine;
}

/** One replacement given by itself becomes a list of one. */
function singleEdit(given: Arguments): void {
  rename(given, 'oldText', 'old_string', 'oldString', 'old_text', 'old_str');
  rename(given, 'newText', 'new_string', 'newString', 'new_text', 'new_str');
  const { oldText, newText, ...rest } = given;
  if (oldText !== undefined && rest.edits === undefined) given.edits = [{ oldText, newText: newText ?? '' }];
  delete given.oldText;
  delete given.newText;
  const edits = given.edits;
  if (Array.isArray(edits)) {
    given.edits = edits.map((edit: unknown) => {
      if (typeof edit !== 'object' || edit === null || Array.isArray(edit)) return edit;
      const copy: Arguments = { ...edit };
      rename(copy, 'oldText', 'old_string', 'oldString', 'old_text', 'old_str');
      rename(copy, 'newText', 'new_string', 'newString', 'new_text', 'new_str');
      return copy;
    });
  }
}

function searchOptions(given: Arguments): void {
  rename(given, 'pattern', 'regex', 'query', 'search');
  rename(given, 'glob', 'include', 'include_pattern', 'includePattern', 'file_pattern');
  rename(given, 'ignoreCase', 'ignore_case', '-i', 'i', 'case_insensitive');
  rename(given, 'literal', 'fixed_strings', 'fixedStrings');
  rename(given, 'context', '-C', 'C', 'context_lines');
  rename(given, 'limit', 'head_limit', 'max_results', 'maxResults', 'max_matches');
  const sensitive = given.case_sensitive;
  if (sensitive !== undefined && !Object.hasOwn(given, 'ignoreCase')) given.ignoreCase = String(sensitive) === 'false';
  delete given.case_sensitive;
}

function ids(given: Arguments): void {
  rename(given, 'ids', 'id', 'object_id', 'objectId', 'object_ids', 'objects', 'path', 'paths');
}

const REWRITES: Readonly<Record<string, readonly Rewrite[]>> = {
  activate: [ids],
  deactivate: [ids],
  pin: [ids],
  unpin: [ids],
  read: [paths, lineRange, (given) => rename(given, 'id', 'object_id', 'objectId')],
  write: [paths, (given) => rename(given, 'content', 'contents', 'text', 'file_text')],
  edit: [paths, singleEdit],
  ls: [paths],
  find: [paths, searchOptions],
  grep: [paths, searchOptions],
  tree: [paths, (given) => rename(given, 'depth', 'max_depth', 'maxDepth', 'level', 'levels')],
  bash: [(given) => rename(given, 'command', 'cmd', 'script'), (given) => rename(given, 'cwd', 'workdir', 'working_directory', 'dir_path')],
  context: [],
};

/** Rewrites a call's arguments in place, from the names that other agents' tools use to ours. */
export function aliasesFor(tool: string): Rewrite {
  return (given) => {
    for (const rewrite of REWRITES[tool] ?? []) rewrite(given);
  };
}
