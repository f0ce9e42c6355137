import { posix } from 'node:path';
import type { ShownFile } from '../neutral-session.js';

const PATH = String.raw`(?:'([^']+)'|"([^"$\`\\]+)"|([^\s'"$\`\\|&;<>()*?[\]{}!#~-][^\s'"$\`\\|&;<>()*?[\]{}!]*))`;
const PRINTS = new RegExp(String.raw`^(?:cd ([^\s'"$\`\\|&;<>()*?]+) && )?(cat|sed -n '?(\d+),(\d+)p'?|head -n ?(\d+)) ${PATH}$`);

/** The file that a command prints and nothing else, told for the plainest commands alone. `output` is all that it printed. */
export function printedFile(command: string, output: string): ShownFile | undefined {
  const [, dir, tool, from, , count, single, double, bare] = PRINTS.exec(command.trim()) ?? [];
  const path = single ?? double ?? bare;
  if (tool === undefined || path === undefined) return undefined;
  const lines = output.split('\n').length - 1;
  const whole = tool === 'cat' || (count !== undefined && lines < Number(count));
  const start_line = Math.max(1, Number(from ?? 1));
  return { path: dir === undefined ? path : posix.join(dir, path), moment: 'after', text: output, whole, start_line };
}

// The escape character is spelled by its code, so that nothing invisible stands here.
const ANSI = new RegExp(`${String.fromCharCode(27)}(?:\\[[0-9;?]*[ -/]*[@-~]|[@-Z\\\\-_])`, 'g');
const PROMPT = /\r?\n?[\w.-]+@[\w.-]+:(\S+) [#$] ?$/;

/** What a terminal printed, without the control sequences and the prompt behind it. */
export function terminalText(output: string): { readonly text: string; readonly promptDir: string | undefined } {
  const plain = output.replace(ANSI, '');
  const prompt = PROMPT.exec(plain);
  const body = prompt === null ? plain : `${plain.slice(0, prompt.index)}\n`;
  return { text: body.replace(/\r\n/g, '\n'), promptDir: prompt?.[1] };
}
