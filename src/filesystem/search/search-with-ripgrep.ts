import { closeSync, read } from 'node:fs';
import { promisify } from 'node:util';
import { SourceError } from '../access/errors.js';
import { openDescriptorInside } from '../access/open-inside.js';
import { runProgram } from './ripgrep.js';
import { type FoundText, invalidRegex, LARGEST_SEARCHED, LineCollector, type SearchTask } from './search-task.js';

/** Text in ripgrep's records: plain, or base64 if it is not UTF-8. */
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

/** An open file, verified to lie inside the roots. */
interface OpenedFile {
  readonly path: string;
  readonly fd: number;
}

const NEWLINE = 10;
/** Files of the first run. A frequent text usually reaches the limit in these few files. */
const FIRST_RUN = 64;
/** Maximum descriptors of one run: half the limit of a process on the strictest systems. */
const MOST_AT_ONCE = 512;
const PIECE_BYTES = 1024 * 1024;
/** The first descriptor after standard input and outputs. */
const FIRST_DESCRIPTOR = 3;

/**
 * Searches with ripgrep, which opens no file by name. It inherits descriptors of files that were
 * verified to lie inside the roots. So a file that is replaced by a link during the search gives no
 * access to another file.
 */
export async function searchWithRipgrep(task: SearchTask, binary: string): Promise<FoundText> {
  const collector = new LineCollector(task);
  let size = FIRST_RUN;
  let at = 0;
  let goesOn: boolean;
  // Runs at least once, so that an invalid pattern is rejected even without files.
  do {
    const files = await openFiles({ task, collector }, task.paths.slice(at, at + size));
    try {
      goesOn = await searchOpened({ task, collector, binary }, files);
    } finally {
      for (const { fd } of files) closeSync(fd);
    }
    at += size;
    size = Math.min(size * 2, MOST_AT_ONCE);
  } while (goesOn && at < task.paths.length);
  return collector.result();
}

/**
 * Opens files in order. Skips those that are gone, not readable, not regular or too large. Throws
 * if a named file cannot be opened.
 */
async function openFiles(
  { task, collector }: Pick<Search, 'task' | 'collector'>,
  paths: readonly string[],
): Promise<readonly OpenedFile[]> {
  const opened = await Promise.allSettled(
    paths.map(async (path) => ({ path, ...(await openDescriptorInside(task.roots, path, task.named)) })),
  );
  const files = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = opened.find((one) => one.status === 'rejected');
  if (failed !== undefined && (task.named !== undefined || !(failed.reason instanceof SourceError))) {
    for (const { fd } of files) closeSync(fd);
    throw failed.reason;
  }
  const searched: OpenedFile[] = [];
  for (const { path, fd, size } of files) {
    const bytes = Number(size);
    const why =
      bytes > LARGEST_SEARCHED ? 'too-large' : task.named !== undefined && (await isBinary(fd)) ? 'binary' : undefined;
    if (why === undefined) searched.push({ path, fd });
    else {
      collector.leftOut.push({ path, bytes, why });
      closeSync(fd);
    }
  }
  return searched;
}

const readAt = promisify(read);

/**
 * Returns whether a file contains a NUL without a UTF-16 byte order mark. ripgrep reports such a
 * file only if it has a match.
 */
async function isBinary(fd: number): Promise<boolean> {
  const piece = Buffer.alloc(PIECE_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await readAt(fd, piece, 0, piece.length, at);
    const bytes = piece.subarray(0, bytesRead);
    if (at === 0 && /^(?:\xff\xfe|\xfe\xff)/.test(bytes.toString('latin1', 0, 2))) return false;
    if (bytesRead === 0 || bytes.includes(0)) return bytesRead > 0;
    at += bytesRead;
  }
}

/** A running search. */
interface Search {
  readonly task: SearchTask;
  readonly collector: LineCollector;
  readonly binary: string;
}

/** Searches opened files; returns false if the search ends with them. */
async function searchOpened({ task, collector, binary }: Search, files: readonly OpenedFile[]): Promise<boolean> {
  const reader = new RecordReader(collector, files);
  const outcome = await runProgram({
    binary,
    args: [
      ...searchArgs(task),
      ...(files.length === 0 ? ['-'] : files.map((_, index) => `${DESCRIPTORS}${index + FIRST_DESCRIPTOR}`)),
    ],
    descriptors: files.map(({ fd }) => fd),
    separator: NEWLINE,
    take: (record) => reader.take(record),
    timeoutMs: task.deadline - performance.now(),
    signal: task.signal,
  });
  collector.timedOut ||= outcome.ended === 'timed-out';
  collector.skipped += outcome.oversize;
  if (outcome.ended === 'exited' && outcome.exitCode === 2 && outcome.stderr !== '')
    throw refusal(task, outcome.stderr);
  return outcome.ended === 'exited';
}

const DESCRIPTORS = '/proc/self/fd/';

function searchArgs(task: SearchTask): readonly string[] {
  return [
    '--json',
    '--no-config',
    '--no-ignore',
    '--no-messages',
    '--color=never',
    // Searches the files one after another, in the given order.
    '--threads=1',
    '--crlf',
    // Strips a byte order mark from the first line and detects UTF-16 by it.
    '--encoding=auto',
    `--max-count=${task.limit + 1}`,
    `--context=${task.context}`,
    ...(task.ignoreCase ? ['--ignore-case'] : ['--case-sensitive']),
    ...(task.literal ? ['--fixed-strings'] : []),
    '-e',
    task.pattern,
    '--',
  ];
}

/**
 * Returns the error that ripgrep's output reports. ripgrep names the fault of a pattern in a line
 * `error: …`, and any other failure in a single line.
 */
function refusal({ named = '', pattern }: SearchTask, stderr: string): Error {
  const first = stderr.split('\n', 1)[0]?.replace(/^rg: /, '') ?? '';
  if (!/regex parse error|not allowed in a regex|Compiled regex exceeds|error parsing/i.test(stderr)) {
    return new SourceError('io', `the search failed: ${first}`, { path: named });
  }
  const reason = /^error: (.+)$/m.exec(stderr)?.[1] ?? first;
  return invalidRegex(pattern, reason);
}

class RecordReader {
  readonly #collector: LineCollector;
  readonly #files: readonly OpenedFile[];

  constructor(collector: LineCollector, files: readonly OpenedFile[]) {
    this.#collector = collector;
    this.#files = files;
  }

  /** Takes one record; returns false once the limit is exceeded. */
  take(record: Buffer): boolean {
    const { type, data } = JSON.parse(record.toString('utf8')) as SearchRecord;
    if (type === 'end') return this.#collector.finish((data.binary_offset ?? null) === null);
    if (type === 'match' || type === 'context') this.#line(data, type === 'context');
    return true;
  }

  #line({ path, lines, line_number: line, submatches }: RecordData, isContext: boolean): void {
    if (path === undefined || path === null || !('text' in path) || lines === undefined || typeof line !== 'number')
      return;
    const file = this.#files[Number(path.text.slice(DESCRIPTORS.length)) - FIRST_DESCRIPTOR];
    if (file === undefined) return;
    const bytes = 'text' in lines ? undefined : Buffer.from(lines.bytes, 'base64');
    const text = 'text' in lines ? lines.text : (bytes?.toString('utf8') ?? '');
    const start = submatches?.[0]?.start ?? 0;
    // ripgrep's offsets are in bytes. They are only needed for very long lines.
    const before =
      text.length > 1000 && start > 0 ? (bytes ?? Buffer.from(text)).toString('utf8', 0, start).length : start;
    this.#collector.add({ path: file.path, line, isContext }, text, before);
  }
}
