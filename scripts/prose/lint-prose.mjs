/** Lints one text or source file against the prose rules of this project. */
import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import { bannedWords, mayBreakRules, plainSentences } from './rules.mjs';
import { piecesOf } from './source-text.mjs';

const MAX_COLUMNS = 120;
const MAX_COMMENT_COLUMNS = 100;

const kernel = new TextlintKernel();
const options = {
  ext: '.md',
  plugins: [{ pluginId: 'markdown', plugin: markdown.default ?? markdown }],
  rules: [
    { ruleId: 'banned-words', rule: bannedWords },
    { ruleId: 'plain-sentences', rule: plainSentences },
  ],
};

const lint = async (filePath, text) => (await kernel.lintText(text, { ...options, filePath })).messages;

/** Joins pieces to one text with blank lines between them. Records the source line of each line. */
const joined = (pieces) => {
  const text = [];
  const lines = [];
  for (const piece of pieces) {
    for (const [index, line] of piece.text.split('\n').entries()) {
      text.push(line.trimStart());
      lines.push(piece.line + index);
    }
    text.push('');
    lines.push(piece.line);
  }
  return { text: text.join('\n'), lines };
};

/** Returns whether a line cannot be broken, because it is a single word or has a long address. */
const isUnbreakable = (line) => /^\s*(?:\/\/|\*|[-*])?\s*\S+$/.test(line) || /https?:\/\/\S{60}/.test(line);

const linesOfComments = (pieces) => {
  const lines = new Set();
  for (const { kind, line, text } of pieces) {
    if (kind === 'comment') for (let at = 0; at <= text.split('\n').length; at += 1) lines.add(line + at);
  }
  return lines;
};

/** Returns the number of lines of a Markdown file's front matter. Its fields must not be broken. */
const frontMatter = (source) => (/^---\n[\s\S]*?\n---\n/.exec(source)?.[0].split('\n').length ?? 1) - 1;

/** Returns the lines that are too long, except Markdown's front matter, code and tables. */
const longLines = (path, source, pieces) => {
  const found = [];
  const comments = linesOfComments(pieces);
  const isMarkdown = path.endsWith('.md');
  const begin = isMarkdown ? frontMatter(source) : 0;
  let fenced = false;
  for (const [index, line] of source.split('\n').entries()) {
    if (index < begin) continue;
    if (isMarkdown && /^\s*```/.test(line)) fenced = !fenced;
    if (fenced || isUnbreakable(line) || (isMarkdown && /^\s*(?:\||!\[)/.test(line))) continue;
    const ownComment = comments.has(index + 1) && /^\s*(?:\/\/|\/?\*)/.test(line);
    const most = ownComment ? MAX_COMMENT_COLUMNS : MAX_COLUMNS;
    if (line.length > most)
      found.push({ line: index + 1, message: `a line of ${line.length} columns: at most ${most}` });
  }
  return found;
};

const byLine = (findings) => findings.sort((a, b) => a.line - b.line);

/** Returns the findings `{ line, message }` of a Markdown text. */
export const lintMarkdown = async (path, source) =>
  byLine([
    ...(await lint(path, source)).map(({ line, message }) => ({ line, message })),
    ...longLines(path, source, []),
  ]);

/**
 * Returns the findings `{ line, message }` in a source file's comments and test names and, outside
 * of tests, in its messages.
 */
export const lintCode = async (path, source) => {
  const pieces = piecesOf(path, source);
  const read = pieces.filter(({ kind }) => kind !== 'string' || !/\.test\.tsx?$/.test(path));
  const { text, lines } = joined(read.filter((piece) => mayBreakRules(piece.text)));
  const messages = (await lint(path, text)).map(({ line, message }) => ({ line: lines[line - 1] ?? 1, message }));
  return byLine([...messages, ...longLines(path, source, pieces)]);
};
