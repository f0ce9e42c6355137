import * as z from 'zod';
import { toNative } from '../filesystem/access/native-path.js';
import { lastUnits } from '../values/surrogate-pairs.js';
import { defineTool, type Performed, type Work } from './define-tool.js';
import { frame, headerLine, headerValue, remaining, shownId } from './framing.js';
import { type CommandEnd, runCommand } from './run-command.js';
import { ToolError } from './tool.js';

const DEFAULT_SECONDS = 50;
const MOST_SECONDS = 600;
const KEPT_BYTES = 16 * 1024 * 1024;

const SHAPE = {
  command: z.string().min(1).describe('Shell command'),
  timeout: z
    .number()
    .positive()
    .max(MOST_SECONDS)
    .optional()
    .describe(`Seconds until it is killed (default ${DEFAULT_SECONDS}, at most ${MOST_SECONDS})`),
};

/**
 * Returns the last part of an output that fits. A command usually reports its result at the end.
 */
function lastPart(
  text: string,
  limits: { readonly chars: number; readonly lines: number },
): { readonly text: string; readonly firstLine: number; readonly totalLines: number } {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let first = lines.length;
  let chars = 0;
  while (first > 0 && lines.length - first < limits.lines) {
    const length = (lines[first - 1]?.length ?? 0) + 1;
    if (chars + length > limits.chars) break;
    chars += length;
    first--;
  }
  if (first < lines.length)
    return { text: lines.slice(first).join('\n'), firstLine: first + 1, totalLines: lines.length };
  const last = lines.at(-1) ?? '';
  return { text: lastUnits(last, limits.chars), firstLine: lines.length, totalLines: lines.length };
}

function endText({ why, exitCode, killedBy }: CommandEnd, seconds: number): string | undefined {
  if (why === 'timeout') return `Command was killed after ${seconds} s. Set a longer timeout, or split the command.`;
  if (why === 'cancelled') return 'Command was cancelled and killed.';
  if (killedBy !== null) return `Command was killed by ${killedBy}.`;
  return exitCode === 0 ? undefined : `Command exited with code ${exitCode ?? 'unknown'}.`;
}

async function perform(command: string, seconds: number, work: Work): Promise<Performed> {
  if (command.includes('\0'))
    throw new ToolError('invalid-arguments', 'the command contains a NUL character.', { next: 'Remove it.' });
  const { files } = work.client;
  const cwd = toNative((await files.locate(files.cwd)).location.path);
  const end = await runCommand({ command, cwd, timeoutMs: seconds * 1000, signal: work.signal, mostBytes: KEPT_BYTES });
  const output = end.output.toWellFormed();
  const ending = endText(end, seconds);
  const failed = ending !== undefined;
  const content = [output, ending]
    .filter((part) => part !== undefined && part !== '')
    .join(output.endsWith('\n') ? '' : '\n');
  const show = (callId: Parameters<Performed['show']>[0]): string => {
    const id = shownId(callId, work);
    const part = lastPart(output, remaining(work.limits, headerValue(id).length * 2 + 200, 4));
    const partial = part.firstLine > 1;
    const header = headerLine('bash', {
      id,
      exit: end.exitCode ?? undefined,
      lines: partial ? `${part.firstLine}-${part.totalLines}/${part.totalLines}` : undefined,
    });
    const body = part.text === '' ? '(no output)' : part.text;
    const note = partial ? `[${part.firstLine - 1} earlier lines. All of it: read id=${headerValue(id)}]` : undefined;
    return failed ? `Error: ${frame(ending, frame(header, body, [note]))}` : frame(header, body, [note]);
  };
  return {
    content,
    status: failed ? 'fail' : 'ok',
    show,
    meta: { exit_code: end.exitCode, why: end.why },
    effect: 'The command ran.',
  };
}

/** The tool `bash`. It can run any command, so it is only offered if the user allows it. */
export const bashTool = defineTool({
  name: 'bash',
  description:
    'Run a shell command in the working folder. Shows the last lines of its output; all of it stays readable by id.',
  shape: SHAPE,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  perform: ({ command, timeout = DEFAULT_SECONDS }, work) => perform(command, timeout, work),
});
