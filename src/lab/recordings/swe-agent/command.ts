import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import type { ChatCall } from '../entries/chat-message.js';

/** Splits a command line into words and removes their quotes. Nothing is expanded. */
function commandWords(line: string): readonly string[] {
  const words = line.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+/gs) ?? [];
  return words.map((word) =>
    word.replace(
      /"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/gs,
      (_all, ...[double, single, escaped]: readonly (string | undefined)[]) =>
        double === undefined ? (single ?? escaped ?? '') : double.replace(/\\(["\\$`])/g, '$1'),
    ),
  );
}

type Reader = (words: readonly string[], line: string, body: string) => JsonObject | undefined;

const given = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
const lineNumber = (word: string | undefined): number | undefined =>
  word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;

const edit: Reader = (words, line, body) => {
  const range = /^edit\s+(\d+):(\d+)\s*$/.exec(line);
  if (range !== null) {
    const text = body.replace(/\n?end_of_edit\s*$/, '');
    return { start_line: Number(range[1]), end_line: Number(range[2]), replacement_text: text };
  }
  return words.length >= 2 && body === '' ? given({ search: words[0], replace: words[1] }) : undefined;
};

const NUMBER_OPTIONS: ReadonlySet<string> = new Set(['insert_line']);

/** Reads `str_replace_editor view P --view_range 1 10`. Options become arguments. */
const editor: Reader = (_words, line, body) => {
  const [command, path, ...rest] = commandWords(body === '' ? line : `${line}\n${body}`).slice(1);
  if (command === undefined || path === undefined) return undefined;
  const args: Record<string, unknown> = { command, path };
  let option: string | undefined;
  for (const word of rest) {
    const name = /^--(\w+)$/.exec(word)?.[1];
    if (name !== undefined) {
      option = name;
      args[name] = name === 'view_range' ? [] : '';
    } else if (option === 'view_range')
      args.view_range = [...(Array.isArray(args.view_range) ? args.view_range : []), Number(word)];
    else if (option !== undefined) args[option] = NUMBER_OPTIONS.has(option) ? Number(word) : word;
  }
  return args;
};

const none: Reader = () => ({});

const COMMANDS: Readonly<Record<string, Reader>> = {
  open: ([path, line]) => (path === undefined ? undefined : given({ path, line_number: lineNumber(line) })),
  goto: ([line]) => (lineNumber(line) === undefined ? undefined : { line_number: lineNumber(line) }),
  create: ([filename]) => (filename === undefined ? undefined : { filename }),
  find_file: ([name, dir]) => (name === undefined ? undefined : given({ file_name: name, dir })),
  search_dir: ([term, dir]) => (term === undefined ? undefined : given({ search_term: term, dir })),
  search_file: ([term, file]) => (term === undefined ? undefined : given({ search_term: term, file })),
  scroll_up: none,
  scroll_down: none,
  submit: (words) => (words.length === 0 ? {} : { submission: words.join(' ') }),
  str_replace_editor: editor,
  edit,
};

/**
 * Converts a command that the agent wrote as text to a call. SWE-agent's own commands keep the
 * names that they have as tools. Every other command becomes a call of `bash`.
 */
export function textCommand(action: string): Pick<ChatCall, 'tool' | 'args'> {
  const text = action.replace(/^\s+|\s+$/g, '');
  const end = text.indexOf('\n');
  const line = end < 0 ? text : text.slice(0, end);
  const body = end < 0 ? '' : text.slice(end + 1);
  const name = /^\w+/.exec(line)?.[0] ?? '';
  const plain = name === 'edit' || name === 'str_replace_editor' || (body === '' && !/[|;&<>]/.test(line));
  const read = plain ? ownMember(COMMANDS, name) : undefined;
  const args = read?.(commandWords(line).slice(1), line, body);
  return args === undefined ? { tool: 'bash', args: { command: text } } : { tool: name, args };
}
