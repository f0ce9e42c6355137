import { defined } from '../../../values/defined.js';
import { numberAt, objectAt, textAt } from '../entries/fields.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';

type Usage = NonNullable<EntryOf<'message'>['usage']>;

/** Tokens of an answer as the provider counted them; undefined where nothing was. */
export function piUsage(message: JsonObject): Usage | undefined {
  const usage = objectAt(message, 'usage');
  if (usage === undefined) return undefined;
  return {
    input: numberAt(usage, 'input'),
    output: numberAt(usage, 'output'),
    cache_read: numberAt(usage, 'cacheRead'),
    cache_write: numberAt(usage, 'cacheWrite'),
    total: numberAt(usage, 'totalTokens'),
  };
}

/** A command that the person ran, as the model is told of it. */
export function bashExecutionText(message: JsonObject): string {
  const output = textAt(message, 'output') ?? '';
  const lines = [`Ran \`${textAt(message, 'command') ?? ''}\``, output === '' ? '(no output)' : `\`\`\`\n${output}\n\`\`\``];
  const code = numberAt(message, 'exitCode');
  if (message.cancelled === true) lines.push('(command cancelled)');
  else if (code !== undefined && code !== 0) lines.push(`Command exited with code ${code}`);
  if (message.truncated === true) lines.push(`[Output truncated. Full output: ${textAt(message, 'fullOutputPath') ?? 'not kept'}]`);
  return lines.join('\n');
}

/** The note that `read` puts behind a part of a file. */
const NOTE = /\n\n\[(?:\d+ more lines in file\. Use offset=\d+ to continue|Showing lines \d+-\d+ of (\d+)[^\]]*)\]$/;

/** What the result of `read` shows of its file; undefined where it shows none, as of a picture. */
export function readEvidence(args: JsonObject, message: JsonObject, text: string): ShownFile | undefined {
  const path = textAt(args, 'path');
  if (path === undefined || path === '' || message.isError === true) return undefined;
  const start = numberAt(args, 'offset') ?? 1;
  const cut = objectAt(objectAt(message, 'details'), 'truncation');
  const note = NOTE.exec(text);
  const bare = textAt(cut, 'content') ?? (note === null ? text : text.slice(0, note.index));
  const total = start === 1 ? numberAt(cut, 'totalLines') : undefined;
  const whole = note === null && cut === undefined && start === 1 && numberAt(args, 'limit') === undefined;
  if (start < 1 || /^Read image file|^\[Line \d+ is/.test(text)) return { path, moment: 'after', whole: false };
  return { path, moment: 'after', text: bare, whole, start_line: start, ...defined({ total_lines: total }) };
}
