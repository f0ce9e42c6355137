import { foreignTool, type ToolForm } from '../../foreign-tools/tool-table.js';
import type { JsonObject } from '../../values/json-object.js';
import { objectsAt, textAt, textsAt } from './entries/fields.js';
import type { Loss, LossReason } from './importer.js';
import type { EntryOf, RecordedEntry, RecordingFormat } from './neutral-session.js';

type Counts = Record<string, number>;

/** Adds one to a name's count. */
export function bump(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/**
 * Returns an empty table of counts by name. It has no prototype, because a tool may be named
 * `constructor`.
 */
const byName = (): Counts => Object.create(null) as Counts;

/**
 * Counts over one or several sessions. Entries that were copied from a parent session are also
 * counted in `copied`.
 */
export class SessionCounts {
  /** Number of messages by role. */
  readonly messages = byName();
  /** Number of events by name. */
  readonly events = byName();
  /** Number of calls by the recorded name of the tool. */
  readonly tools = byName();
  /** Tokens as the provider counted them. */
  readonly usage = { answers: 0, input: 0, output: 0, cache_read: 0, cache_write: 0 };
  /** Number of system prompts in session entries. */
  prompts = 0;
  /**
   * Number of transcript items that the importer reported (`OnItem`). 0 for formats whose items are
   * counted from entries.
   */
  items = 0;
  calls = 0;
  results = 0;
  /** Number of file reads by calls; see `readsOfCall`. */
  reads = 0;
  /** Number of the reads in `reads` that a command line did. */
  shell_reads = 0;
  /** Number of files that the person or the program added to the context without a call. */
  attached_files = 0;
  compactions = 0;
  copied = 0;

  add(entry: RecordedEntry): void {
    if (entry.kind === 'session') this.prompts += entry.system_prompt === undefined ? 0 : 1;
    else if (entry.kind === 'message') bump(this.messages, entry.role);
    else if (entry.kind === 'call') this.#call(entry);
    else if (entry.kind === 'result') this.results += 1;
    else if (entry.kind === 'compaction') this.compactions += 1;
    else {
      bump(this.events, entry.name);
      if (entry.name === 'file-attached') this.attached_files += entry.files?.length ?? 0;
    }
    if ('copied' in entry && entry.copied === true) this.copied += 1;
    if (!('usage' in entry) || entry.usage === undefined) return;
    this.usage.answers += 1;
    for (const name of ['input', 'output', 'cache_read', 'cache_write'] as const)
      this.usage[name] += entry.usage[name] ?? 0;
  }

  #call({ tool, args }: EntryOf<'call'>): void {
    this.calls += 1;
    bump(this.tools, tool);
    const reads = readsOfCall(tool, args);
    this.reads += reads;
    if (isShell(tool)) this.shell_reads += reads;
  }
}

/** Counts of a session for comparison with published counts. */
interface CountedItems {
  readonly items: number;
  readonly calls: number;
  readonly reads: number;
}

/** Counts the entries of an import while it runs, in total and per session. */
export class ImportCounter {
  readonly total = new SessionCounts();
  readonly #sessions = new Map<string, SessionCounts>();
  /** The format of each session, in the order of the sessions. */
  readonly #formats = new Map<string, RecordingFormat>();

  add(entry: RecordedEntry): void {
    if (entry.kind === 'session') this.#formats.set(entry.native_id, entry.format);
    this.total.add(entry);
    this.session(entry.kind === 'session' ? entry.native_id : entry.session).add(entry);
  }

  /** Counts an item reported to `OnItem`. */
  addItem(session: string): void {
    this.session(session).items += 1;
  }

  get formats(): readonly RecordingFormat[] {
    return [...new Set(this.#formats.values())];
  }

  /**
   * For each session, the numbers of transcript items, calls and reads. Items are counted as the
   * session's format counts them. Reads include those by shell commands.
   */
  get counted(): readonly CountedItems[] {
    return [...this.#formats].map(([id, format]) => {
      const counts = this.session(id);
      return { items: transcriptItems(format, counts), calls: counts.calls, reads: counts.reads };
    });
  }

  /** Returns the counts of one session. */
  session(id: string): SessionCounts {
    const counts = this.#sessions.get(id) ?? new SessionCounts();
    this.#sessions.set(id, counts);
    return counts;
  }
}

const sum = (counts: Counts): number => Object.values(counts).reduce((all, count) => all + count, 0);

const messages = (counts: SessionCounts): number => sum(counts.messages);

const TRANSCRIPT_ITEMS: Readonly<Partial<Record<RecordingFormat, (counts: SessionCounts) => number>>> = {
  // Items are the records of user and assistant. For Cline, they are the messages of the file.
  'claude-code': ({ items }) => items,
  cline: ({ items }) => items,
  // Calls and their outputs are separate items.
  codex: (counts) => messages(counts) + counts.calls + counts.results,
  // Calls are parts of messages, and results are messages.
  pi: (counts) => messages(counts) + counts.results,
  // The system prompt is the first item of the list.
  'swe-agent': (counts) => counts.prompts + messages(counts) + counts.results,
  'mini-swe-agent': (counts) => counts.prompts + messages(counts) + counts.results,
  'openai-chat': (counts) => counts.prompts + messages(counts) + counts.results,
  // Calls and results are parts of messages, and the program's notes are messages.
  'gemini-cli': (counts) => messages(counts) + sum(counts.events),
};

/**
 * Returns the length of a session's transcript as its format counts it, for comparison with
 * published counts. Depending on the format, this is the importer's count, a rule over the entries,
 * or messages plus results.
 */
export function transcriptItems(format: RecordingFormat, counts: SessionCounts): number {
  return (TRANSCRIPT_ITEMS[format] ?? ((all: SessionCounts) => messages(all) + all.results))(counts);
}

const KEPT_LOSSES = 1_000;

/** The losses of an import. It counts all of them and keeps the first thousand. */
export class LossList {
  readonly each: Loss[] = [];
  readonly by_reason: Partial<Record<LossReason, number>> = {};
  total = 0;

  add(loss: Loss): void {
    this.total += 1;
    this.by_reason[loss.reason] = (this.by_reason[loss.reason] ?? 0) + 1;
    if (this.each.length < KEPT_LOSSES) this.each.push(loss);
  }

  /** Whether the whole recording was read. */
  get complete(): boolean {
    return this.by_reason['truncated-file'] === undefined;
  }

  /** The losses in the form that a report shows. */
  get report(): Pick<LossList, 'total' | 'by_reason' | 'each'> {
    return { total: this.total, by_reason: this.by_reason, each: this.each };
  }
}

/** Forms of tools that do nothing but read files. */
const READS: ReadonlySet<ToolForm> = new Set(['read-file', 'read-files', 'move-window']);
/** Names of arguments that may contain a command line. */
const COMMAND_ARGUMENTS = ['command', 'cmd', 'commands', 'code', 'input'];
/** Returns whether a tool runs a command line. */
const isShell = (tool: string): boolean => foreignTool(tool).kind === 'shell';

/** Programs that print their file arguments. */
const PRINTERS =
  /^(?:command\s+)?(?:cat|nl|head|tail|less|more|bat|tac|sed\s+(?:-[a-zA-Z]*n|-n)|Get-Content|type)(?=\s|$)/;

function commandLine(args: JsonObject): string {
  for (const name of COMMAND_ARGUMENTS) {
    const text = textAt(args, name);
    if (text !== undefined) return text;
    const words = textsAt(args, name);
    if (words.length > 0)
      return /^(?:.*\/)?(?:ba|z|da)?sh$/.test(words[0] ?? '')
        ? (words.at(-1) ?? '')
        : words.join(name === 'commands' ? '\n' : ' ');
    const several = objectsAt(args, name);
    if (several.length > 0) return several.map((one) => textAt(one, 'command') ?? '').join('\n');
  }
  return '';
}

/** Returns the words of a command without options and redirections. A quoted text is one word. */
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
 * Returns the number of file reads that a call makes. A reading tool, or `view` of an editor, makes
 * one.
 *
 * A command line makes one read for each pipeline whose first command prints a file that it names:
 * `cat`, `sed -n`, `nl`, `head` or `tail`. Here-documents and writes do not count.
 */
export function readsOfCall(tool: string, args: JsonObject): number {
  const { form } = foreignTool(tool);
  if (READS.has(form)) return 1;
  if (form === 'edit-by-command') return textAt(args, 'command') === 'view' ? 1 : 0;
  if (!isShell(tool)) return 0;
  const line = commandLine(args).replace(HERE_DOCUMENT, '').replace(CONTROL, '\n');
  return line.split(/&&|\|\||;|\n/).filter(printsFile).length;
}
