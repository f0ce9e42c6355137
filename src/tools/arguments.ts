import * as z from 'zod';
import { ARGUMENT_NAMES } from '../foreign-tools/tool-arguments.js';
import { ownMember } from '../values/own-member.js';
import { similarNames } from '../values/similar-names.js';
import { type InputSchema, ToolError } from './tool.js';

/**
 * Arguments that clients add by themselves, or that only explain a call. They are ignored silently.
 */
const IGNORED: ReadonlySet<string> = new Set([
  'wait_for_previous',
  'session',
  'description',
  'instruction',
  'explanation',
  'reason',
]);

type Arguments = Record<string, unknown>;
type Rewrite = (given: Arguments) => void;

/** Moves a value to our name of an argument, unless our name has a value. */
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

/** Converts a first and a last line to `offset` and `limit`. */
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

/** Converts a single replacement to a list of edits. */
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

/** Renames a call's arguments in place, from names in other agents' tools to ours. */
function applyAliases(tool: string, given: Arguments): void {
  for (const rewrite of ownMember(REWRITES, tool) ?? []) rewrite(given);
}

/** The arguments of a tool, as zod schemas. */
export type ArgumentShape = Readonly<Record<string, z.ZodType>>;

/** Removes keys that zod adds to a schema and that models do not need. */
function tidy(schema: Record<string, unknown>): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

/**
 * Returns the JSON Schema of a tool's arguments. Unknown arguments are allowed, because clients add
 * their own.
 */
export function inputSchema(shape: ArgumentShape): InputSchema {
  const { properties, required } = z.toJSONSchema(z.object(shape), {
    io: 'input',
    override: ({ jsonSchema }) => tidy(jsonSchema as Record<string, unknown>),
  });
  const names = required ?? [];
  return {
    type: 'object',
    properties: (properties ?? {}) as InputSchema['properties'],
    ...(names.length > 0 ? { required: names } : {}),
  };
}

/** The parsed arguments of a call, and remarks on unknown arguments. */
export interface ParsedArguments<Shape extends ArgumentShape> {
  readonly values: z.output<z.ZodObject<Shape>>;
  /** One short remark for each unknown argument. */
  readonly remarks: readonly string[];
}

type Kind = 'string' | 'number' | 'boolean' | 'array' | 'other';

const KINDS: Readonly<Record<string, Kind>> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  array: 'array',
};

function kindOf(type: z.ZodType): Kind {
  const { def } = type as unknown as { readonly def: { readonly type: string; readonly innerType?: z.ZodType } };
  return def.innerType === undefined ? (ownMember(KINDS, def.type) ?? 'other') : kindOf(def.innerType);
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Repairs common mistakes of models, by kind of value. The schema then rejects values that are
 * still invalid.
 */
const MEND: Readonly<Record<Kind, (value: unknown) => unknown>> = {
  string: (value) => (typeof value === 'number' ? String(value) : value),
  number: (value) => (typeof value === 'string' && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value),
  boolean: (value) => ({ true: true, false: false, '1': true, '0': false })[String(value)] ?? value,
  array: (value) => {
    if (Array.isArray(value)) return value;
    const parsed = typeof value === 'string' && value.trimStart().startsWith('[') ? fromJson(value) : undefined;
    return Array.isArray(parsed) ? parsed : [value];
  },
  other: (value) => value,
};

function remarkOn(key: string, known: readonly string[]): string {
  const [near] = similarNames(key, known, 1);
  const shown = key.length > 40 ? `${key.slice(0, 40)}...` : key;
  return (
    `unknown argument ${JSON.stringify(shown)} was ` + `ignored${near === undefined ? '' : `; did you mean "${near}"?`}`
  );
}

/**
 * Cache of schemas. The first parse with a schema compiles it, which costs more than the rest of a
 * small read.
 */
const schemas = new WeakMap<ArgumentShape, z.ZodObject>();

function schemaOf<Shape extends ArgumentShape>(shape: Shape): z.ZodObject<Shape> {
  const known = schemas.get(shape);
  if (known !== undefined) return known as z.ZodObject<Shape>;
  const schema = z.object(shape);
  schemas.set(shape, schema);
  return schema;
}

function issueText(issue: z.core.$ZodIssue, shape: ArgumentShape): string {
  const [name, ...rest] = issue.path.map(String);
  if (name === undefined) return issue.message;
  const field = rest.reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : `${text}.${part}`), name);
  const what = issue.message
    .replace(/^Invalid input: /, '')
    .replace(/^Too small: /, '')
    .replace(/^Too big: /, '');
  const description = shape[name]?.description;
  return `"${field}": ${what}${rest.length === 0 && description !== undefined ? ` (${description})` : ''}`;
}

/**
 * Parses the arguments of a call. Names from other agents' tools are accepted. Numbers and lists
 * given as text are converted, and null counts as missing. Unknown arguments are ignored with a
 * remark.
 *
 * @throws {ToolError} `invalid-arguments` – names every invalid argument
 */
export function parseArguments<Shape extends ArgumentShape>(
  tool: string,
  shape: Shape,
  raw: unknown,
): ParsedArguments<Shape> {
  if (raw !== undefined && raw !== null && (typeof raw !== 'object' || Array.isArray(raw))) {
    throw new ToolError('invalid-arguments', `the arguments of ${tool} are not an object`, {
      next: `Give them by name: ${Object.keys(shape).join(', ')}.`,
    });
  }
  const known = Object.keys(shape);
  const given: Record<string, unknown> = { ...raw };
  for (const key of Object.keys(given)) if (given[key] === null || given[key] === undefined) delete given[key];
  applyAliases(tool, given);
  const remarks: string[] = [];
  const values: Record<string, unknown> = {};
  for (const key of Object.keys(given)) {
    const type = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (type !== undefined) values[key] = MEND[kindOf(type)](given[key]);
    else if (!IGNORED.has(key)) remarks.push(remarkOn(key, known));
  }
  const parsed = schemaOf(shape).safeParse(values);
  if (parsed.success) return { values: parsed.data, remarks: remarks.slice(0, 5) };
  const problems = parsed.error.issues.slice(0, 5).map((issue) => issueText(issue, shape));
  throw new ToolError('invalid-arguments', `${tool}: ${problems.join('; ')}`, {
    next: remarks.length > 0 ? `Also: ${remarks.slice(0, 5).join('; ')}.` : undefined,
  });
}
