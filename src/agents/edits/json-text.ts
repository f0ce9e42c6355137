import {
  createScanner,
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { SettingsError } from '../errors.js';
import type { SettingValue } from './change.js';

/** Token kinds of jsonc-parser. The package exports them as a const enum, which swc cannot read. */
const COMMA = 5;
const COMMENTS: ReadonlySet<number> = new Set([12, 13]);
const END_OF_TEXT = 17;

/** Returns the line of an offset, from 1. */
export const lineOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

function treeOf(text: string, errors: ParseError[]): Node | undefined {
  try {
    return parseTree(text, errors, { allowTrailingComma: true });
  } catch (error) {
    // The parser is recursive, so deep nesting overflows the stack.
    if (!(error instanceof RangeError)) throw error;
    throw new SettingsError('unparsable', 'line 1: too many levels of objects and lists', { cause: error });
  }
}

/**
 * Parses JSON with comments and trailing commas. Returns undefined if the text has only comments
 * and spaces.
 * @throws {SettingsError} unparsable – with line and reason
 */
export function parseSettings(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const root = treeOf(text, errors);
  if (root === undefined && lastToken(text, 0, text.length).isBlank) return undefined;
  const [first] = errors;
  if (first !== undefined || root === undefined) {
    const reason = first === undefined ? 'a value expected' : printParseErrorCode(first.error);
    const words = reason.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();
    throw new SettingsError('unparsable', `line ${lineOf(text, first?.offset ?? 0)}: ${words}`);
  }
  if (root.type !== 'object')
    throw new SettingsError('unfit', `line ${lineOf(text, root.offset)}: the file holds a ${root.type}, not an object`);
  return root;
}

/** Finds the last comma, and the end of the commas and comments, between two offsets. */
function lastToken(text: string, from: number, to: number) {
  const scanner = createScanner(text, false);
  scanner.setPosition(from);
  let [end, comma, isBlank] = [from, -1, true];
  for (let kind = scanner.scan(); kind !== END_OF_TEXT && scanner.getTokenOffset() < to; kind = scanner.scan()) {
    const isComment = COMMENTS.has(kind);
    if (kind === COMMA) comma = scanner.getTokenOffset();
    if (isComment || kind === COMMA) end = scanner.getTokenOffset() + scanner.getTokenLength();
    else if (scanner.getTokenValue().trim() !== '') isBlank = false;
  }
  return { end, comma, isBlank };
}

/** Returns the white space at the beginning of the line at an offset. */
function indentAt(text: string, offset: number): string {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start))?.[0] ?? '';
}

/** The layout of a file: its indentation, its line end, and whether it is one line. */
interface Layout {
  readonly unit: string;
  readonly eol: string;
  /** Whether the whole file is one line. */
  readonly isOneLine: boolean;
}

/** Returns the layout of a file, in which new parts are written. */
function layoutOf(text: string): Layout {
  const body = text.trim();
  return {
    unit: /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ',
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    isOneLine: body.length > 2 && !body.includes('\n'),
  };
}

function spelled(value: SettingValue, { unit, eol }: Layout, indent: string): string {
  return JSON.stringify(value, null, unit).replaceAll('\n', `${eol}${indent}`);
}

/**
 * Adds a member at the end of an object or list. Comments stay next to what they describe. `key` is
 * absent for a list.
 */
export function insertMember(
  text: string,
  container: Node,
  { key, value }: { readonly key?: string | undefined; readonly value: SettingValue },
): string {
  const layout = layoutOf(text);
  const close = container.offset + container.length - 1;
  const [first, last] = [container.children?.at(0), container.children?.at(-1)];
  const from = last === undefined ? container.offset + 1 : last.offset + last.length;
  const { end, comma } = lastToken(text, from, close);
  const head = text.slice(0, from) + (last !== undefined && comma < 0 ? ',' : '') + text.slice(from, end);
  const name = key === undefined ? '' : `${JSON.stringify(key)}:`;
  const inside = text.slice(container.offset, close);
  if (last === undefined ? layout.isOneLine : !inside.includes('\n')) {
    const gap = last === undefined || /,\s|^[{[]\s/.test(inside) || !/,/.test(inside) ? ' ' : '';
    const lead = last === undefined ? '' : gap;
    return `${head}${lead}${name}${key === undefined ? '' : gap}${JSON.stringify(value)}${text.slice(end)}`;
  }
  const outer = indentAt(text, container.offset);
  const isOwnLine = first !== undefined && /\n[ \t]*$/.test(text.slice(container.offset, first.offset));
  const indent = isOwnLine && first !== undefined ? indentAt(text, first.offset) : outer + layout.unit;
  const spelling = `${name}${key === undefined ? '' : ' '}${spelled(value, layout, indent)}`;
  const member = `${layout.eol}${indent}${spelling}${comma < 0 ? '' : ','}`;
  return head + member + (last === undefined ? `${layout.eol}${outer}${text.slice(close)}` : text.slice(end));
}

/** Removes a property or a list item with its comma. Comments stay. */
export function removeMember(text: string, member: Node): string {
  const container = member.parent as Node;
  const siblings = container.children ?? [];
  const at = siblings.indexOf(member);
  const [previous, next] = [siblings[at - 1], siblings[at + 1]];
  let [start, end] = [member.offset, member.offset + member.length];
  const { comma } = lastToken(text, end, next?.offset ?? container.offset + container.length - 1);
  if (comma >= 0 && /^\s*$/.test(text.slice(end, comma))) end = comma + 1;
  const line = /\r?\n[ \t]*$/.exec(text.slice(container.offset, start));
  const rest = /^[ \t]*(?=\r?\n)/.exec(text.slice(end));
  if (line !== null && rest !== null) {
    start -= line[0].length;
    end += rest[0].length;
  } else if (next === undefined) start -= /[ \t]*$/.exec(text.slice(0, start))?.[0].length ?? 0;
  else end += /^[ \t]*/.exec(text.slice(end))?.[0].length ?? 0;
  let before = text.slice(0, start);
  if (previous !== undefined && next === undefined && comma < 0) {
    const separator = lastToken(text, previous.offset + previous.length, member.offset).comma;
    before = text.slice(0, separator) + text.slice(separator + 1, start);
  }
  const left = before + text.slice(end);
  if (previous !== undefined || next !== undefined) return left;
  // An object that is now empty closes on the line where it opens.
  const inside = /^[{[]\s*(?=[}\]])/.exec(left.slice(container.offset))?.[0];
  return inside === undefined
    ? left
    : left.slice(0, container.offset + 1) + left.slice(container.offset + inside.length);
}

/** Replaces the text of a node. */
export const replaceNode = (text: string, { offset, length }: Node, spelling: string): string =>
  text.slice(0, offset) + spelling + text.slice(offset + length);

/** Replaces the value of a node. The new value has the file's layout. */
export function replaceValue(text: string, node: Node, value: SettingValue): string {
  const layout = layoutOf(text);
  const spelling = layout.isOneLine ? JSON.stringify(value) : spelled(value, layout, indentAt(text, node.offset));
  return replaceNode(text, node, spelling);
}

/**
 * Finds the value at a path. Undefined if there is none.
 * @throws {SettingsError} unfit – a key on the path occurs twice, and agents may read either one
 */
export function nodeAt(text: string, root: Node, path: readonly string[]): Node | undefined {
  for (let depth = 0; depth < path.length; depth++) {
    const table = findNodeAtLocation(root, path.slice(0, depth));
    const named = (table?.type === 'object' ? (table.children ?? []) : []).filter(
      (property) => property.children?.[0]?.value === path[depth],
    );
    if (named.length > 1)
      throw new SettingsError(
        'unfit',
        `line ${lineOf(text, named[1]?.offset ?? 0)}: ${JSON.stringify(path[depth])} occurs a second time`,
      );
  }
  return findNodeAtLocation(root, [...path]);
}

/** Returns the value of a node. */
export const settingOf = (node: Node): unknown => getNodeValue(node) as unknown;
