import { objectsAt, textAt } from '../entries/fields.js';
import { printedFile } from '../evidence/printed-file.js';
import { numberedText, shownLines } from '../evidence/shown-file.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

/** One of the answers that a result of Cline carries. */
interface Answer {
  readonly query: string;
  readonly result: string;
  readonly success: boolean;
}

function answersOf(content: unknown): readonly Answer[] {
  const list: readonly unknown[] = Array.isArray(content) ? content : [content];
  return list.filter(isJsonObject).flatMap((item) => {
    const query = textAt(item, 'query');
    const result = textAt(item, 'result') ?? textAt(item, 'error') ?? '';
    return query === undefined ? [] : [{ query, result, success: item.success !== false }];
  });
}

/** A file that was read, out of `PATH` or `PATH:A-B`. */
function readFile({ query, result }: Answer, asked: readonly JsonObject[]): ShownFile | undefined {
  const range = /^(.+):(\d+)-(\d+|end|EOF)?$/.exec(query);
  const path = range?.[1] ?? query;
  const file = asked.find((one) => textAt(one, 'path') === path);
  const shown = numberedText(result, 'spacedBar');
  if (shown === undefined) return range === null && result === '' ? { path, moment: 'after', whole: true, text: '' } : undefined;
  const all =
    range === null &&
    (file === undefined || (file.start_line === undefined && file.end_line === undefined)) &&
    !/truncated/i.test(result.slice(-200));
  return shownLines(path, shown, 'after', all ? shown.lines.length : undefined);
}

/** What the answers to a call show of files. */
export function clineEvidence(tool: string, args: JsonObject, content: unknown): readonly ShownFile[] {
  const answers = answersOf(content).filter(({ success }) => success);
  if (tool === 'read_files') return answers.flatMap((answer) => readFile(answer, objectsAt(args, 'files')) ?? []);
  if (tool === 'run_commands')
    return answers.flatMap(({ query, result }) => printedFile(query, result.endsWith('\n') ? result : `${result}\n`) ?? []);
  return [];
}

/** Whether every answer of a result tells a failure. */
export function allFailed(content: unknown): boolean {
  const answers = answersOf(content);
  return answers.length > 0 && answers.every(({ success }) => !success);
}
