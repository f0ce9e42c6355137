import type { Node } from 'jsonc-parser';
import { sameData } from '../../values/plain-data.js';
import { SettingsError } from '../errors.js';
import { type Change, type Changed, isStillOurs, type Made, type SettingValue, type TakenBack } from './change.js';
import {
  insertMember,
  lineOf,
  nodeAt,
  parseSettings,
  removeMember,
  replaceNode,
  replaceValue,
  settingOf,
} from './json-text.js';

/** Returns the root object of a text. Adds an empty one to a text of comments and spaces. */
function rooted(text: string): { readonly text: string; readonly root: Node } {
  const root = parseSettings(text);
  if (root !== undefined) return { text, root };
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const lead = text.trim() === '' ? '' : `${text.trimEnd()}${eol}`;
  const whole = `${lead}{}${eol}`;
  return { text: whole, root: parseSettings(whole) as Node };
}

/**
 * Finds the deepest existing table on a path.
 * @throws {SettingsError} unfit – a value on the path is not a table
 */
function deepest(text: string, root: Node, path: readonly string[]): { readonly node: Node; readonly depth: number } {
  let found = { node: root, depth: 0 };
  for (let depth = 1; depth < path.length; depth++) {
    const node = nodeAt(text, root, path.slice(0, depth));
    if (node === undefined) break;
    if (node.type !== 'object')
      throw new SettingsError(
        'unfit',
        `line ${lineOf(text, node.offset)}: ${path.slice(0, depth).join('.')} is not an object`,
      );
    found = { node, depth };
  }
  return found;
}

/** Adds a value at a path that has none. */
function added(text: string, root: Node, { path, value }: { path: readonly string[]; value: SettingValue }) {
  const { node, depth } = deepest(text, root, path);
  const nested = path.slice(depth + 1).reduceRight<SettingValue>((inner, key) => ({ [key]: inner }), value);
  return { text: insertMember(text, node, { key: path[depth], value: nested }), created: path.length - 1 - depth };
}

function widened(text: string, { path, plainKey }: Change & { readonly kind: 'entry' }): Changed | 'stricter' {
  const { text: whole, root } = rooted(text);
  const parent = path.slice(0, -1);
  const plain = plainKey === undefined ? undefined : nodeAt(whole, root, parent);
  if (plain?.type !== 'string' || plainKey === undefined) return { text, made: [] };
  if (plain.value !== 'allow') return 'stricter';
  const before = whole.slice(plain.offset, plain.offset + plain.length);
  const made: Made = { kind: 'widened', path: parent, key: plainKey, before };
  return { text: replaceValue(whole, plain, { [plainKey]: 'allow' }), made: [made] };
}

function withEntry(text: string, change: Change & { readonly kind: 'entry' }): Changed {
  const wide = widened(text, change);
  if (wide === 'stricter') return { text, made: [] };
  const { text: whole, root } = rooted(wide.text);
  const { path, value } = change;
  deepest(whole, root, path);
  const found = nodeAt(whole, root, path);
  if (found === undefined) {
    const { text: next, created } = added(whole, root, change);
    return { text: next, made: [...wide.made, { kind: 'entry', path, value, created }] };
  }
  if (sameData(settingOf(found), value)) return { text, made: [] };
  const before = whole.slice(found.offset, found.offset + found.length);
  return { text: replaceValue(whole, found, value), made: [{ kind: 'entry', path, value, before, created: 0 }] };
}

function withMembers(text: string, { path, values }: Change & { readonly kind: 'members' }): Changed {
  const { text: whole, root } = rooted(text);
  deepest(whole, root, path);
  const found = nodeAt(whole, root, path);
  if (found === undefined) {
    const { text: next, created } = added(whole, root, { path, value: values });
    return { text: next, made: [{ kind: 'members', path, values, created: created + 1 }] };
  }
  if (found.type !== 'array')
    throw new SettingsError('unfit', `line ${lineOf(whole, found.offset)}: ${path.join('.')} is not a list`);
  const present = (found.children ?? []).map(settingOf);
  const missing = values.filter((value) => !present.some((one) => sameData(one, value)));
  if (missing.length === 0) return { text, made: [] };
  let next = whole;
  for (const value of missing) {
    const list = nodeAt(next, parseSettings(next) as Node, path) as Node;
    next = insertMember(next, list, { value });
  }
  return { text: next, made: [{ kind: 'members', path, values: missing, created: 0 }] };
}

/**
 * Makes changes in JSON with comments. All other bytes stay.
 * @throws {SettingsError} unparsable, unfit – with line and reason
 */
export function changeJson(text: string, changes: readonly Change[]): Changed {
  return changes.reduce<Changed>(
    (so, change) => {
      const next = change.kind === 'entry' ? withEntry(so.text, change) : withMembers(so.text, change);
      return { text: next.text, made: [...so.made, ...next.made] };
    },
    { text, made: [] },
  );
}

/** Removes tables that a change created and that are now empty, innermost first. */
function withoutEmpty(text: string, path: readonly string[], created: number): string {
  let [next, at] = [text, path];
  for (let left = created; left > 0; left--) {
    const root = parseSettings(next) as Node;
    const node = nodeAt(next, root, at);
    const isEmpty = node !== undefined && /^[{[]\s*[}\]]$/.test(next.slice(node.offset, node.offset + node.length));
    if (!isEmpty || node.parent === undefined) return next;
    next = removeMember(next, node.parent);
    at = at.slice(0, -1);
  }
  return next;
}

/** Undoes one change. Returns undefined if the entry was changed after the setup. */
function without(text: string, made: Made): string | undefined {
  const root = parseSettings(text);
  const node = root === undefined ? undefined : nodeAt(text, root, made.path);
  if (node === undefined) return text;
  if (made.kind === 'widened')
    return sameData(settingOf(node), { [made.key]: 'allow' }) ? replaceNode(text, node, made.before) : text;
  if (made.kind === 'entry') {
    if (!isStillOurs(settingOf(node), made.value)) return undefined;
    if (made.before !== undefined) return replaceNode(text, node, made.before);
    return withoutEmpty(removeMember(text, node.parent as Node), made.path.slice(0, -1), made.created);
  }
  let next = text;
  for (const value of made.values) {
    const list = nodeAt(next, parseSettings(next) as Node, made.path);
    const item = list?.children?.find((one) => sameData(settingOf(one), value));
    if (item !== undefined) next = removeMember(next, item);
  }
  return withoutEmpty(next, made.path, made.created);
}

/**
 * Undoes changes. Keeps everything that was changed after the setup.
 * @throws {SettingsError} unparsable – with line and reason
 */
export function takeBackJson(text: string, made: readonly Made[]): TakenBack {
  let next = text;
  const left: string[] = [];
  for (const one of [...made].reverse()) {
    const taken = without(next, one);
    if (taken === undefined) left.push(one.path.join('.'));
    else next = taken;
  }
  const root = parseSettings(next);
  return { text: next, left, isEmpty: root === undefined ? next.trim() === '' : /^\{\s*\}$/.test(next.trim()) };
}

/**
 * Returns the value at a path. Undefined if there is none.
 * @throws {SettingsError} unparsable, unfit
 */
export function findInJson(text: string, path: readonly string[]): unknown {
  const root = parseSettings(text);
  const node = root === undefined ? undefined : nodeAt(text, root, path);
  return node === undefined ? undefined : settingOf(node);
}
