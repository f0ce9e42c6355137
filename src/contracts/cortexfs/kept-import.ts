import * as z from 'zod';
import { canonicalJson } from '../../objects/canonical-json.js';
import type { ContextRecord, RecordKind } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { SessionId } from '../../objects/ids.js';
import { isLargeText } from '../../objects/large-text.js';
import { fileFindings } from './check-file.js';
import { isPathWithin } from './session-paths.js';

/**
 * The number of a step and its imported line. If the step's text was cut out, the parts before and
 * after it.
 */
const keptLine = z.union([z.tuple([z.int(), z.string()]), z.tuple([z.int(), z.string(), z.string()])]);

const keptImport = z.object({
  /** The number of the import within the session, from 1. */
  number: z.int().positive(),
  /** `after` is the last step before the import. `upto` is the last step of the import. */
  after: z.int().nonnegative(),
  upto: z.int().nonnegative(),
  /**
   * The content hashes of the imported steps. Lines are restored only for steps that the session
   * has.
   */
  steps: z.array(z.string()),
  /** The new lines of `messages.jsonl` and `events.jsonl`. */
  messages: z.array(keptLine),
  events: z.array(keptLine),
  /** The number of lines of each file before the new ones. */
  messagesBefore: z.int().nonnegative(),
  eventsBefore: z.int().nonnegative(),
  /** All other files that differ from the previous import, by path; null for a removed file. */
  files: z.record(z.string(), z.string().nullable()),
  /** Whether the directory contained `context/palimpsest.jsonl`. */
  hasOwn: z.boolean(),
  /** The keys of all records in the directory. */
  records: z.array(z.string()),
});

/**
 * The stored form of an imported directory. Exports restore the directory from it byte for byte.
 */
export type KeptImport = z.output<typeof keptImport> & {
  /** Set if the session has only the beginning of the import. */
  readonly isCut?: true;
};
/** A line of a stored import. */
export type KeptLine = z.output<typeof keptLine>;

const FORMAT = 'cortexfs';
/**
 * The record kinds that store an import. Earlier versions stored it as events, so readers of events
 * had to load all imported data.
 */
export const KEPT_KINDS = ['import', 'event'] as const satisfies readonly RecordKind[];
/** A record that can hold a piece of an import. */
export type KeptRecord = ContextRecord<(typeof KEPT_KINDS)[number]>;
/** The event type in which earlier versions stored an import. */
const EVENT_TYPE = 'cortexfs.import';
/**
 * Length of a JSON piece. It is half of a record's limit, because escaping can double a piece's
 * length.
 */
const PIECE_UNITS = 200_000;
/** Minimum characters of a text that is cut out of its line. */
const LEAST_CUT = 200;

const eventPart = z.object({ part: z.int().nonnegative(), parts: z.int().positive(), text: z.string() });

/** The content of a step: its message, or the stored result of its call. */
export type StepContent =
  | { readonly role: string; readonly text: string }
  | { readonly tool: string; readonly status: string; readonly text: string | null };

/** Returns a hash that identifies a step by its content. Empty if the step has no content. */
export function stepMark(content: StepContent | undefined): string {
  if (content === undefined) return '';
  const origin = 'role' in content ? [content.role] : [content.tool, content.status];
  return hashText(canonicalJson([...origin, content.text?.toWellFormed() ?? null])).slice(0, 16);
}

/**
 * Cuts a long step text out of its line. A very large text stays in the line, because its step
 * stores it only in part.
 */
export function keptLineOf(seq: number, line: string, text: string | null | undefined): KeptLine {
  if (text === null || text === undefined || text.length < LEAST_CUT || isLargeText(text)) return [seq, line];
  const quoted = JSON.stringify(text);
  const at = line.indexOf(quoted);
  return at < 0 ? [seq, line] : [seq, line.slice(0, at), line.slice(at + quoted.length)];
}

/** Restores a whole line from its pieces and the text of its step. */
export function wholeLine(line: KeptLine, text: string | null | undefined): string {
  const [, before, after] = line;
  return after === undefined ? before : `${before}${JSON.stringify(text ?? '')}${after}`;
}

/** Returns the end of a piece that starts at `from`, never inside a surrogate pair. */
function pieceEnd(text: string, from: number): number {
  const end = from + PIECE_UNITS;
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code <= 0xdbff ? end - 1 : end;
}

/** Returns the records that store an import. Equal imports give equal records. */
export function keptRecords(session: SessionId, kept: KeptImport): readonly ContextRecord<'import'>[] {
  const text = JSON.stringify(kept);
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = pieceEnd(text, from);
    pieces.push(text.slice(from, end));
    from = end;
  }
  const whole = hashText(text);
  return pieces.map((piece, part) => ({
    kind: 'import',
    owner: { session },
    turn: 0,
    seq: kept.after,
    at: kept.number,
    basis: null,
    body: { format: FORMAT, whole, part, parts: pieces.length, text: piece },
  }));
}

/** Parses a stored import. Returns undefined for invalid text, which a bundle may contain. */
function readKept(text: string): KeptImport | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const read = keptImport.safeParse(value);
  if (!read.success) return undefined;
  const isSound = ([path, file]: readonly [string, string | null]): boolean =>
    isPathWithin(path) && (file === null || fileFindings(path, file).length === 0);
  return Object.entries(read.data.files).every(isSound) ? read.data : undefined;
}

/**
 * Returns the piece of an import in a record, with the hash of the whole import. Undefined if the
 * record has none.
 */
function pieceOf(
  record: KeptRecord,
): { readonly whole: string; readonly part: z.output<typeof eventPart> } | undefined {
  if (record.kind === 'import') {
    const { format, whole, ...part } = record.body;
    return format === FORMAT ? { whole, part } : undefined;
  }
  const { type, subject: whole = '', data } = record.body;
  const part = type === EVENT_TYPE ? eventPart.safeParse(data) : undefined;
  return part?.success === true ? { whole, part: part.data } : undefined;
}

/**
 * Returns the imports stored in a session's records, in order. Skips imports that are incomplete,
 * have paths outside the directory, or contain files that violate the format.
 */
export function keptImports(records: readonly KeptRecord[]): readonly KeptImport[] {
  const pieces = new Map<string, z.output<typeof eventPart>[]>();
  for (const record of records) {
    const piece = pieceOf(record);
    if (piece === undefined) continue;
    const known = pieces.get(piece.whole);
    if (known === undefined) pieces.set(piece.whole, [piece.part]);
    else known.push(piece.part);
  }
  const imports = [...pieces].flatMap(([whole, found]): readonly KeptImport[] => {
    const text = found
      .toSorted((a, b) => a.part - b.part)
      .map((part) => part.text)
      .join('');
    const read = found.length === found[0]?.parts && hashText(text) === whole ? readKept(text) : undefined;
    return read === undefined ? [] : [read];
  });
  return imports.sort((a, b) => a.number - b.number);
}

/** Returns true if a record can hold a piece of an import. */
export const isKeptRecord = (record: ContextRecord): record is KeptRecord =>
  (KEPT_KINDS as readonly string[]).includes(record.kind);

/** Returns the newest version of each imported file, except the append-only ones. */
export function keptFiles(imports: readonly KeptImport[]): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [path, text] of imports.flatMap((one) => Object.entries(one.files))) {
    if (text === null) files.delete(path);
    else files.set(path, text);
  }
  return files;
}

/**
 * Returns the part of a stored import that a session has up to step `last`. Undefined if the
 * session has no part of it. The session has only a part if the import was interrupted, if the
 * moment is in the past, or after a fork. Files come only with a complete import. `markOf` returns
 * the content hash of a step, or undefined if the step does not exist.
 */
export function keptUpTo(
  one: KeptImport,
  last: number,
  markOf: (seq: number) => string | undefined,
): KeptImport | undefined {
  const { after, upto, steps } = one;
  let reach = after;
  while (reach < Math.min(upto, last) && steps[reach - after] === markOf(reach + 1)) reach++;
  if (reach === upto) return one;
  if (reach === after) return undefined;
  const before = ([seq]: KeptLine): boolean => seq <= reach;
  return {
    ...one,
    upto: reach,
    messages: one.messages.filter(before),
    events: one.events.filter(before),
    files: {},
    isCut: true,
  };
}
