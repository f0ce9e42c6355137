import { setImmediate } from 'node:timers/promises';
import { RE2JS } from 're2js';
import { SourceError } from '../access/errors.js';
import { openFileInside } from '../access/open-inside.js';
import { type FoundText, invalidRegex, LARGEST_SEARCHED, LineCollector, type SearchTask } from './search-task.js';

const LINES_AT_ONCE = 2000;
/**
 * Matches the anchors `\A` and `\z`. If lines are matched one by one, these anchors mean the ends
 * of a line. In a match of the whole text, they mean the ends of the text.
 */
const TEXT_ANCHOR = /\\[Az]/;

/**
 * Searches without an external program, with a linear-time regular expression engine. It is slower
 * than ripgrep, and `\w`, `\d`, `\b` match ASCII only. The result has the same form.
 */
export async function searchInProcess(task: SearchTask): Promise<FoundText> {
  const expression = compile(task, 0);
  const wholeText = compile(task, RE2JS.MULTILINE);
  const collector = new LineCollector(task);
  for (const path of task.paths) {
    task.signal?.throwIfAborted();
    const text = await readText({ task, collector }, path);
    // Most files have no match. Matching the whole text shows that much sooner than matching each
    // line.
    if (text === undefined || !(TEXT_ANCHOR.test(task.pattern) || wholeText.test(text))) continue;
    collector.timedOut = !(await searchLines({ task, collector, expression }, path, text));
    if (!collector.finish(true) || collector.timedOut) break;
  }
  return collector.result();
}

function compile(task: SearchTask, flags: number): RE2JS {
  try {
    const source = task.literal ? RE2JS.quote(task.pattern) : task.pattern;
    return RE2JS.compile(source, task.ignoreCase ? flags | RE2JS.CASE_INSENSITIVE : flags);
  } catch (error) {
    const message = error instanceof Error ? error.message : 'it is not a valid regular expression';
    throw invalidRegex(task.pattern, message.replace(/^error parsing regexp: /, ''), error);
  }
}

/**
 * Decodes text without its byte order mark, which distinguishes UTF-16 from UTF-8. Undefined for
 * bytes with a NUL.
 */
function decoded(bytes: Buffer): string | undefined {
  const [first, second] = bytes;
  const utf16 =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
  if (utf16 === undefined && bytes.includes(0)) return undefined;
  return new TextDecoder(utf16 ?? 'utf-8').decode(bytes);
}

/**
 * Returns the text of a file with single-character line endings. `undefined` if it is gone, not
 * readable, binary or too large. For a file that the agent named, throws if it cannot be opened.
 */
async function readText(
  { task, collector }: Pick<Search, 'task' | 'collector'>,
  path: string,
): Promise<string | undefined> {
  const opened = await openFileInside(task.roots, path, task.named).catch((error: unknown) => {
    if (task.named === undefined && error instanceof SourceError) return undefined;
    throw error;
  });
  if (opened === undefined) return undefined;
  try {
    const bytes = Number(opened.stats.size);
    if (bytes > LARGEST_SEARCHED) {
      collector.leftOut.push({ path, bytes, why: 'too-large' });
      return undefined;
    }
    const text = decoded(await opened.handle.readFile());
    if (text === undefined && task.named !== undefined) collector.leftOut.push({ path, bytes, why: 'binary' });
    return text?.replaceAll('\r\n', '\n');
  } catch {
    return undefined;
  } finally {
    await opened.handle.close();
  }
}

/** A running search. */
interface Search {
  readonly task: SearchTask;
  readonly collector: LineCollector;
  readonly expression: RE2JS;
}

/** Collects the matches of one file. Returns false if the time limit passes first. */
async function searchLines({ task, collector, expression }: Search, path: string, text: string): Promise<boolean> {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  let shownTo = 0;
  for (const [index, line] of lines.entries()) {
    if (index % LINES_AT_ONCE === LINES_AT_ONCE - 1) {
      await setImmediate();
      task.signal?.throwIfAborted();
    }
    if (performance.now() > task.deadline) return false;
    const matcher = expression.matcher(line);
    if (!matcher.find()) continue;
    for (let before = Math.max(shownTo, index - task.context); before < index; before += 1) {
      // The context after the last match was already added.
      collector.add({ path, line: before + 1, isContext: true }, lines[before] ?? '');
    }
    if (!collector.add({ path, line: index + 1, isContext: false }, line, matcher.start())) return true;
    shownTo = index + 1;
    // The following lines are context of this match, up to the next one.
    const end = Math.min(lines.length, index + 1 + task.context);
    for (; shownTo < end && !expression.matcher(lines[shownTo] ?? '').find(); shownTo += 1) {
      collector.add({ path, line: shownTo + 1, isContext: true }, lines[shownTo] ?? '');
    }
  }
  return true;
}
