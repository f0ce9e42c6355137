/** Finds the prose of a source file: comments, and strings and markup that a person reads. */
import { parseSync, Visitor } from 'oxc-parser';

/** Matches directives for tools, which are not prose. */
const DIRECTIVE = /^\s*(biome-ignore|@ts-|eslint|#!|\/ <reference|v8 ignore|istanbul)/;
/**
 * Matches strings that count as prose: those of four words or more. Shorter ones are names and
 * keys. A string that begins with a bracket is code of another language.
 */
const PROSE = /^(?!\s*\()[^<>{}=;]*(?:[a-zA-Z',.:()-]+\s+){3,}[a-zA-Z]/;
const TESTS = new Set(['test', 'it', 'describe', 'property']);

/** Strips the comment marks of one block or line comment, and keeps its line breaks. */
const stripped = (comment) =>
  comment.type === 'Line'
    ? comment.value.replace(/^ /, '')
    : comment.value
        .replace(/^\*/, '')
        .split('\n')
        .map((line) => line.replace(/^\s*\* ?/, ''))
        .join('\n')
        .trim();

/**
 * Returns whether two line comments form one paragraph: they are on adjacent lines without code.
 */
const continues = (source, former, next) =>
  former.type === 'Line' && next.type === 'Line' && /^[ \t]*\r?\n[ \t]*$/.test(source.slice(former.end, next.start));

const commentsOf = (source, comments) => {
  const pieces = [];
  for (const comment of comments) {
    const last = pieces.at(-1);
    if (last !== undefined && continues(source, last, comment)) {
      last.text += `\n${stripped(comment)}`;
      last.end = comment.end;
    } else if (!DIRECTIVE.test(comment.value)) {
      pieces.push({
        kind: 'comment',
        type: comment.type,
        start: comment.start,
        end: comment.end,
        text: stripped(comment),
      });
    }
  }
  return pieces;
};

/** Returns the text of a string or template, with `x` in place of each expression. */
const literalText = (node) =>
  node.type === 'TemplateLiteral' ? node.quasis.map((part) => part.value.cooked ?? '').join('`x`') : node.value;

const nameOf = (callee) => {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return nameOf(callee.object);
  return callee.type === 'CallExpression' ? nameOf(callee.callee) : '';
};

const stringsOf = (program) => {
  const pieces = [];
  const named = new Set();
  const take = (node, always) => {
    const text = literalText(node);
    if (typeof text !== 'string' || named.has(node.start)) return;
    if (!always && !PROSE.test(text)) return;
    named.add(node.start);
    pieces.push({ kind: always ? 'test' : 'string', start: node.start, end: node.end, text });
  };
  const takeMarkup = (node) => {
    const own = node.children.filter(({ type }) => type === 'JSXText');
    const text = node.children.map((child) => (child.type === 'JSXText' ? child.value : '`x`')).join('');
    if (own.length === 0 || !PROSE.test(text.trim().replaceAll('`', ''))) return;
    const start = own[0].start + (own[0].value.length - own[0].value.trimStart().length);
    pieces.push({ kind: 'string', start, end: node.end, text: text.trim() });
  };
  new Visitor({
    JSXElement: takeMarkup,
    JSXFragment: takeMarkup,
    CallExpression(node) {
      const [first] = node.arguments;
      if (first === undefined || !TESTS.has(nameOf(node.callee))) return;
      if (first.type === 'TemplateLiteral' || first.type === 'Literal') take(first, true);
    },
    Literal: (node) => take(node, false),
    TemplateLiteral: (node) => take(node, false),
  }).visit(program);
  return pieces;
};

/**
 * Returns the pieces of prose of one source file in their order: `{ kind, start, end, line, text
 * }`. `kind` is `comment`, `string` or `test` (the name of a test). `line` counts from 1.
 *
 * @throws Error if the file does not parse.
 */
export const piecesOf = (path, source) => {
  const { program, comments, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0].message}. Mend its syntax first.`);
  const pieces = [...commentsOf(source, comments), ...stringsOf(program)].sort((a, b) => a.start - b.start);
  let line = 1;
  let at = 0;
  for (const piece of pieces) {
    for (; at < piece.start; at += 1) if (source[at] === '\n') line += 1;
    piece.line = line;
  }
  return pieces;
};
