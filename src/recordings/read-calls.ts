import { objectsAt, textAt, textsAt } from './fields.js';
import type { JsonObject } from './json-text.js';

/** Tools that read a file and do nothing else, in every format. */
const READING_TOOLS = new Set([
  'Read',
  'NotebookRead',
  'read',
  'read_file',
  'read_many_files',
  'read_files',
  'view',
  'view_file',
  'open',
  'goto',
  'scroll_up',
  'scroll_down',
]);
/** Editors with one command among others that reads. */
const EDITORS = new Set(['str_replace_editor', 'str_replace_based_edit_tool', 'file_editor']);
/** Tools that run a command line, and the argument that it is in. */
const COMMAND_ARGUMENTS = ['command', 'cmd', 'commands', 'code', 'input'];
const SHELLS = new Set([
  'Bash',
  'PowerShell',
  'bash',
  'exec_command',
  'execute_bash',
  'local_shell',
  'run',
  'run_commands',
  'run_shell_command',
  'shell',
  'shell_command',
  'terminal',
]);
/** Programs that print the file that they are given. */
const PRINTERS = /^(?:command\s+)?(?:cat|nl|head|tail|less|more|bat|tac|sed\s+(?:-[a-zA-Z]*n|-n)|Get-Content|type)(?=\s|$)/;

function commandLine(args: JsonObject): string {
  for (const name of COMMAND_ARGUMENTS) {
    const text = textAt(args, name);
    if (text !== undefined) return text;
    const words = textsAt(args, name);
    if (words.length > 0)
      return /^(?:.*\/)?(?:ba|z|da)?sh$/.test(words[0] ?? '') ? (words.at(-1) ?? '') : words.join(name === 'commands' ? '\n' : ' ');
    const several = objectsAt(args, name);
    if (several.length > 0) return several.map((one) => textAt(one, 'command') ?? '').join('\n');
  }
  return '';
}

/** The words of a command that are no options and no redirections; quoted words count as one. */
function operands(words: string): readonly string[] {
  const found = words.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  return found.filter((word) => !word.startsWith('-') && !/^\d*[<>]/.test(word));
}

/** Whether a command line prints a file that it names: the first command of a pipeline, without a here-document or a write. */
function printsFile(line: string): boolean {
  return line.split(/&&|\|\||;|\n/).some((pipeline) => {
    const first = (pipeline.split('|')[0] ?? '').trim();
    const program = PRINTERS.exec(first);
    if (program === null || /<<|[^2&]>\s*[^&\s]/.test(first)) return false;
    const rest = operands(first.slice(program[0].length));
    const needed = program[0].includes('sed') ? 2 : 1;
    const numbers = /^(?:head|tail)/.test(program[0]) ? rest.filter((word) => /^\+?\d+$/.test(word)).length : 0;
    return rest.length - numbers >= needed;
  });
}

/**
 * Whether a call reads a file: a reading tool, an editor's `view`, or a command line with a command that prints a file it names (`cat`, `sed -n`, `nl`,
 * `head`, `tail` and their like at the head of a pipeline). One call is one read, however many files it prints.
 */
export function isReadCall(tool: string, args: JsonObject): boolean {
  if (READING_TOOLS.has(tool)) return true;
  if (EDITORS.has(tool)) return textAt(args, 'command') === 'view';
  return SHELLS.has(tool) && printsFile(commandLine(args));
}
