import { posix } from 'node:path';
import { SourceError } from '../access/errors.js';
import { entryPath, openFolderInside } from '../access/open-inside.js';
import { nameGlob } from './glob.js';
import { runProgram, walkArgs } from './ripgrep.js';
import { type FoundText, invalidRegex, LARGEST_SEARCHED, LineCollector, type SearchTask } from './search-task.js';

/** Text in ripgrep's records: as text, or in base64 where it is not UTF-8. */
type RecordText = { readonly text: string } | { readonly bytes: string };

interface RecordData {
  readonly path?: RecordText | null;
  readonly lines?: RecordText;
  readonly line_number?: number | null;
  readonly submatches?: readonly { readonly start: number }[];
  readonly binary_offset?: number | null;
}

interface SearchRecord {
  readonly type: string;
  readonly data: RecordData;
}

const NEWLINE = 10;

/** Searches with ripgrep. */
export async function searchWithRipgrep(task: SearchTask, binary: string): Promise<FoundText> {
  const reader = new RecordReader(task);
  const { handle } = await openFolderInside(task.roots, task.folder, task.shown);
  try {
    const outcome = await runProgram({
      binary,
      args: searchArgs(task, await walkArgs(task.folder)),
      cwd: entryPath(handle, task.folder, ''),
      separator: NEWLINE,
      take: (record) => reader.take(record),
      timeoutMs: task.timeoutMs,
      signal: task.signal,
    });
    reader.collector.timedOut = outcome.ended === 'timed-out';
    reader.collector.skipped += outcome.oversize;
    if (outcome.ended === 'exited' && outcome.exitCode === 2 && outcome.stderr !== '') throw refusal(task, outcome.stderr);
  } finally {
    await handle.close();
  }
  return reader.collector.result();
}

function searchArgs(task: SearchTask, walk: readonly string[]): readonly string[] {
  const names = task.glob === undefined || task.file !== undefined ? undefined : nameGlob(task.glob);
  return [
    '--json',
    ...walk,
    '--crlf',
    '--encoding=none',
    `--max-filesize=${LARGEST_SEARCHED}`,
    `--max-count=${task.limit + 1}`,
    `--context=${task.context}`,
    ...(task.ignoreCase ? ['--ignore-case'] : ['--case-sensitive']),
    ...(task.literal ? ['--fixed-strings'] : []),
    // Not --glob: that would bring ignored files back.
    ...(names === undefined ? [] : [`--type-add=wanted:${names}`, '--type=wanted']),
    '-e',
    task.pattern,
    '--',
    `./${task.file ?? ''}`,
  ];
}

/** ripgrep names what it dislikes in a line `error: …`; other failures are one line. */
function refusal(task: SearchTask, stderr: string): Error {
  const first = stderr.split('\n', 1)[0]?.replace(/^rg: /, '') ?? '';
  if (!/regex parse error|not allowed in a regex|Compiled regex exceeds|error parsing/i.test(stderr)) {
    return new SourceError('io', `the search failed: ${first}`, { path: task.shown });
  }
  const reason = /^error: (.+)$/m.exec(stderr)?.[1] ?? first;
  return invalidRegex(task.pattern, reason);
}

class RecordReader {
  readonly collector: LineCollector;
  readonly #task: SearchTask;

  constructor(task: SearchTask) {
    this.#task = task;
    this.collector = new LineCollector(task);
  }

  /** Takes one record; false once the limit is passed. */
  take(record: Buffer): boolean {
    const { type, data } = JSON.parse(record.toString('utf8')) as SearchRecord;
    if (type === 'end') {
      this.collector.finish((data.binary_offset ?? null) === null);
      return true;
    }
    return type === 'match' || type === 'context' ? this.#line(data, type === 'context') : true;
  }

  #line(data: RecordData, isContext: boolean): boolean {
    const { path, lines, line_number: line, submatches } = data;
    if (path === undefined || path === null || lines === undefined || typeof line !== 'number') return true;
    if (!('text' in path)) {
      if (!isContext) this.collector.skipped += 1;
      return true;
    }
    const relative = path.text.slice(2);
    if (!this.#task.accept(relative)) return true;
    const bytes = 'text' in lines ? undefined : Buffer.from(lines.bytes, 'base64');
    const text = 'text' in lines ? lines.text : (bytes?.toString('utf8') ?? '');
    const start = submatches?.[0]?.start ?? 0;
    // Offsets are in bytes; they matter for very long lines only.
    const before = text.length > 1000 && start > 0 ? (bytes ?? Buffer.from(text)).toString('utf8', 0, start).length : start;
    return this.collector.add({ path: posix.join(this.#task.folder, relative), line, isContext }, text, before);
  }
}
