import { foreignTool, type ToolForm } from '../../foreign-tools/tool-table.js';
import { objectsAt, textAt, textsAt } from './entries/fields.js';
import type { JsonObject } from './json/json-text.js';

/** Forms of tools that read a file and do nothing else. */
const READS: ReadonlySet<ToolForm> = new Set(['read-file', 'read-files', 'move-window']);
/** The arguments that a command line is in. */
const COMMAND_ARGUMENTS = ['command', 'cmd', 'commands', 'code', 'input'];
/** Whether a tool runs a command line. */
export const isShell = (tool: string): boolean => foreignTool(tool).kind === 'shell';

/** Programs that print the files that they name. */
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

/** The words of a command without options and redirections; quoted words count as one. */
function operands(words: string): readonly string[] {
  const found = words.match(/"[^"]*"|'[^']*'|[^\s"']+/g) ?? [];
  return found.filter((word) => !word.startsWith('-') && !/^\d*[<>]/.test(word));
}

const HERE_DOCUMENT = /<<-?\s*(['"]?)(\w+)\1[^\n]*\n[\s\S]*?\n\s*\2(?=\W|$)/g;
const CONTROL = /\bdo\s|\bthen\s|\belse\s/g;

function printsFile(pipeline: string): boolean {
  const first = (pipeline.split('|')[0] ?? '').trim();
  const program = PRINTERS.exec(first);
  if (program === null || /<<|(?:^|[^2&\d])>\s*[^&\s]/.test(first)) return false;
  const rest = operands(first.slice(program[0].length));
  const needed = program[0].includes('sed') ? 2 : 1;
  const numbers = /^(?:head|tail)/.test(program[0]) ? rest.filter((word) => /^\+?\d+$/.test(word)).length : 0;
  return rest.length - numbers >= needed;
}

/**
 * How many reads of files a call is: one for a reading tool and for an editor's `view`, and for a command line as many as it has commands that print a file
 * that they name (`cat`, `sed -n`, `nl`, `head`, `tail` and their like at the head of a pipeline; here-documents and writes are none).
 */
export function readsOfCall(tool: string, args: JsonObject): number {
  const { form } = foreignTool(tool);
  if (READS.has(form)) return 1;
  if (form === 'edit-by-command') return textAt(args, 'command') === 'view' ? 1 : 0;
  if (!isShell(tool)) return 0;
  const line = commandLine(args).replace(HERE_DOCUMENT, '').replace(CONTROL, '\n');
  return line.split(/&&|\|\||;|\n/).filter(printsFile).length;
}
