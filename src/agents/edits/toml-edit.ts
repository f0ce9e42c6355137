import { parse, patch } from '@decimalturn/toml-patch';
import { sameData } from '../../values/plain-data.js';
import { messageOf } from '../../values/thrown.js';
import { SettingsError } from '../errors.js';
import { type Change, type Changed, isStillOurs, type Made, type SettingValue, type TakenBack } from './change.js';

type Table = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

function parsed(text: string): Table {
  try {
    return parse(text) as Table;
  } catch (error) {
    const line = typeof error === 'object' && error !== null && 'line' in error ? Number(error.line) : 1;
    throw new SettingsError('unparsable', `line ${line}: ${messageOf(error).split('\n').at(-1) ?? ''}`);
  }
}

/** TOML's basic strings have the escapes of JSON, and TOML also requires an escape of DEL. */
const quoted = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');
const keyOf = (key: string): string => (/^[\w-]+$/.test(key) ? key : quoted(key));

function spelled(value: SettingValue): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(spelled).join(', ')}]`;
  return String(value);
}

/** Returns the lines of a table, with a header for each nested table. */
function tableLines(path: readonly string[], value: Readonly<Record<string, SettingValue>>): readonly string[] {
  const fields = Object.entries(value);
  const plain = fields.flatMap(([key, one]) => (isTable(one) ? [] : [`${keyOf(key)} = ${spelled(one)}`]));
  const inner = fields.flatMap(([key, one]) => (isTable(one) ? ['', ...tableLines([...path, key], one)] : []));
  // A table that contains only tables needs no header.
  return plain.length === 0 ? inner.slice(1) : [`[${path.map(keyOf).join('.')}]`, ...plain, ...inner];
}

/**
 * Returns the name in a line that may be a table's header. A multi-line string may contain such a
 * line too. Takes linear time, because the file may be hostile.
 */
function headerIn(line: string): string | undefined {
  const [, body] = /^\[\[?(.+)$/.exec(line.trim()) ?? [];
  const end = body?.search(/\]\]?[ \t]*(?:#.*)?$/) ?? -1;
  return end > 0 ? body?.slice(0, end).trim() : undefined;
}

const isBlank = (line: string | undefined): boolean => line?.trim() === '';

/**
 * Cuts the tables below a path out of a text. Comments directly above the next table stay, because
 * they belong to that table.
 */
function cut(text: string, path: readonly string[]): { readonly text: string; readonly block: string } {
  const name = path.map((key) => `(?:${key}|"${key}"|'${key}')`).join('[ \\t]*\\.[ \\t]*');
  const isOurs = new RegExp(`^${name}(?:[ \\t]*\\..*)?$`);
  const [kept, block]: [string[], string[]] = [[], []];
  let [inside, pending]: [boolean, string[]] = [false, []];
  for (const line of text.split(/(?<=\n)/)) {
    const header = headerIn(line);
    if (header !== undefined) {
      const continues = inside && isOurs.test(header);
      // Without the removed table, one of the two empty lines around it is enough.
      const isDouble = inside && !continues && isBlank(kept.at(-1)) && isBlank(pending[0]);
      (continues ? block : kept).push(...(isDouble ? pending.slice(1) : pending));
      pending = [];
      inside = isOurs.test(header);
    }
    if (!inside) kept.push(line);
    else if (/^\s*(?:#.*)?$/.test(line.replace(/\r?\n$/, ''))) pending.push(line);
    else {
      block.push(...pending, line);
      pending = [];
    }
  }
  return { text: [...kept, ...pending].join(''), block: block.join('') };
}

const at = (table: Table, [group = '', name = '']: readonly string[]): unknown => {
  const found = table[group];
  return isTable(found) ? found[name] : undefined;
};

/** Returns the data with one entry set, or removed if there is no value. */
function withEntry(table: Table, [group = '', name = '']: readonly string[], value?: unknown): Table {
  const found = table[group];
  const entries = Object.entries(isTable(found) ? found : {}).filter(([key]) => key !== name);
  if (value !== undefined) entries.push([name, value]);
  return { ...table, [group]: Object.fromEntries(entries) };
}

/** Compares parsed data. An empty group counts as none. */
const isSame = (text: string, wanted: Table, group: string): boolean => {
  const trimmed = (table: Table): Table =>
    isTable(table[group]) && Object.keys(table[group]).length === 0
      ? Object.fromEntries(Object.entries(table).filter(([key]) => key !== group))
      : table;
  try {
    return sameData(plain(trimmed(parse(text) as Table)), plain(trimmed(wanted)));
  } catch {
    return false;
  }
};

/** As JSON, because dates have no members to compare. */
const plain = (table: Table): unknown =>
  JSON.parse(JSON.stringify(table, (_, one) => (typeof one === 'bigint' ? `${one}` : one)));

/**
 * Returns the first candidate text that has the wanted data.
 * @throws {SettingsError} unfit – no candidate has it
 */
function firstFit(candidates: readonly (() => string)[], wanted: Table, path: readonly string[]): string {
  for (const candidate of candidates) {
    const text = candidate();
    if (isSame(text, wanted, path[0] ?? '')) return text;
  }
  throw new SettingsError('unfit', `${path.join('.')} is written in a form that palimpsest setup cannot change safely`);
}

function removed(text: string, path: readonly string[]): string {
  const data = parsed(text);
  const wanted = withEntry(data, path);
  return firstFit([() => cut(text, path).text, () => patch(text, wanted)], wanted, path);
}

/** Adds a block at the end, after an empty line. */
function appended(text: string, block: string): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const lead = text === '' ? '' : text.endsWith('\n') ? eol : `${eol}${eol}`;
  return text + lead + block.replaceAll(/\r?\n/g, eol) + (block.endsWith('\n') ? '' : eol);
}

function changedEntry(text: string, { path, value }: Change & { readonly kind: 'entry' }): Changed {
  const data = parsed(text);
  if (data[path[0] ?? ''] !== undefined && !isTable(data[path[0] ?? '']))
    throw new SettingsError('unfit', `${path[0]} is not a table`);
  const found = at(data, path);
  if (found !== undefined && sameData(plain({ found }), plain({ found: value }))) return { text, made: [] };
  const before = found === undefined ? undefined : cut(text, path).block;
  const base = found === undefined ? text : removed(text, path);
  const wanted = withEntry(data, path, value);
  const block = tableLines(path, value as Readonly<Record<string, SettingValue>>).join('\n');
  const next = firstFit([() => appended(base, block), () => patch(base, wanted)], wanted, path);
  const spelling =
    before === '' ? tableLines(path, found as Readonly<Record<string, SettingValue>>).join('\n') : before;
  return { text: next, made: [{ kind: 'entry', path, value, before: spelling, created: 0 }] };
}

/**
 * Makes changes in TOML. The entry becomes a separate table at the end, so all other bytes stay.
 * @throws {SettingsError} unparsable – with line and reason; unfit
 */
export function changeToml(text: string, changes: readonly Change[]): Changed {
  return changes.reduce<Changed>(
    (so, change) => {
      if (change.kind !== 'entry') throw new Error(`${change.path.join('.')}: TOML settings take entries only`);
      const next = changedEntry(so.text, change);
      return { text: next.text, made: [...so.made, ...next.made] };
    },
    { text, made: [] },
  );
}

/**
 * Undoes changes. Keeps everything that was changed after the setup.
 * @throws {SettingsError} unparsable – with line and reason; unfit
 */
export function takeBackToml(text: string, made: readonly Made[]): TakenBack {
  let next = text;
  const left: string[] = [];
  for (const one of [...made].reverse()) {
    if (one.kind !== 'entry') continue;
    const found = at(parsed(next), one.path);
    if (found === undefined) continue;
    if (!isStillOurs(found, one.value)) {
      left.push(one.path.join('.'));
      continue;
    }
    const gone = removed(next, one.path);
    // The empty line above our table was added with the table.
    const tidy = gone.replace(/(\r?\n)(?:\r?\n)+$/, '$1');
    next = one.before === undefined ? tidy : appended(tidy, one.before);
  }
  return { text: next, left, isEmpty: next.trim() === '' };
}

/**
 * Returns the entry at a path. Undefined if there is none.
 * @throws {SettingsError} unparsable
 */
export const findInToml = (text: string, path: readonly string[]): unknown => at(parsed(text), path);
