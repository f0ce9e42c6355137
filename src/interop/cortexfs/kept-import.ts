import * as z from 'zod';
import { canonicalJson } from '../../objects/canonical-json.js';
import type { ContextRecord, RecordKind } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { SessionId } from '../../objects/ids.js';
import { isLargeText } from '../../objects/large-text.js';
import { fileFindings } from './check-file.js';
import { isPathWithin } from './session-paths.js';

/** A line as it was imported, with the step that it shows; in two pieces where the JSON text of what the step says stands between them. */
const keptLine = z.union([z.tuple([z.int(), z.string()]), z.tuple([z.int(), z.string(), z.string()])]);

const keptImport = z.object({
  /** Which import of the session it is, from 1. */
  number: z.int().positive(),
  /** The step that the session stood at before, and the last one that the import brought. */
  after: z.int().nonnegative(),
  upto: z.int().nonnegative(),
  /** The marks of the steps that it brings: the session has the lines of those alone that it has. */
  steps: z.array(z.string()),
  /** The lines of `messages.jsonl` and `events.jsonl` behind those that were known. */
  messages: z.array(keptLine),
  events: z.array(keptLine),
  /** How many lines stand before them. */
  messagesBefore: z.int().nonnegative(),
  eventsBefore: z.int().nonnegative(),
  /** All other files that are not as the import before had them, by path; null for one that is not there any more. */
  files: z.record(z.string(), z.string().nullable()),
  /** Whether the directory had our own file. */
  hasOwn: z.boolean(),
  /** The keys of all records that the directory shows. */
  records: z.array(z.string()),
});

/** What is kept of a directory that was imported, so that an export gives it back byte for byte. */
export type KeptImport = z.output<typeof keptImport> & {
  /** Only its beginning is meant. */
  readonly isCut?: true;
};
/** A line of it. */
export type KeptLine = z.output<typeof keptLine>;

const FORMAT = 'cortexfs';
/** The kinds of records that hold it: earlier versions wrote events, whose readers had to load what was imported. */
export const KEPT_KINDS = ['import', 'event'] as const satisfies readonly RecordKind[];
/** A record that may hold a piece of it. */
export type KeptRecord = ContextRecord<(typeof KEPT_KINDS)[number]>;
/** The type of the events that earlier versions kept it in. */
const EVENT_TYPE = 'cortexfs.import';
/** Of its JSON text: half of what a record takes, since quotes in it are written in two. */
const PIECE_UNITS = 200_000;
/** Texts that are shorter are kept with their line. */
const LEAST_HOLE = 200;

const eventPart = z.object({ part: z.int().nonnegative(), parts: z.int().positive(), text: z.string() });

/** What a step says: of a call what it answered, as it is stored. */
export type SaidStep =
  | { readonly role: string; readonly text: string }
  | { readonly tool: string; readonly status: string; readonly text: string | null };

/** What tells a step from others by what it says; empty for one that says nothing. */
export function stepMark(said: SaidStep | undefined): string {
  if (said === undefined) return '';
  const who = 'role' in said ? [said.role] : [said.tool, said.status];
  return hashText(canonicalJson([...who, said.text?.toWellFormed() ?? null])).slice(0, 16);
}

/** A line with a hole where its step's text stands, if that is long; not if it is so large that the step has it abridged. */
export function keptLineOf(seq: number, line: string, said: string | null | undefined): KeptLine {
  if (said === null || said === undefined || said.length < LEAST_HOLE || isLargeText(said)) return [seq, line];
  const hole = JSON.stringify(said);
  const at = line.indexOf(hole);
  return at < 0 ? [seq, line] : [seq, line.slice(0, at), line.slice(at + hole.length)];
}

/** The whole line again. */
export function wholeLine(line: KeptLine, said: string | null | undefined): string {
  const [, before, after] = line;
  return after === undefined ? before : `${before}${JSON.stringify(said ?? '')}${after}`;
}

/** Where a piece of a text ends that begins at `from`: never between the halves of a pair. */
function pieceEnd(text: string, from: number): number {
  const end = from + PIECE_UNITS;
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code <= 0xdbff ? end - 1 : end;
}

/** The records that keep an import; the same for the same import. */
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

/** An import from its text; undefined where no import of a checked directory can have written it: a bundle brings any record. */
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

/** The piece that a record holds, with the hash of the whole; undefined of one that holds none. */
function pieceOf(record: KeptRecord): { readonly whole: string; readonly part: z.output<typeof eventPart> } | undefined {
  if (record.kind === 'import') {
    const { format, whole, ...part } = record.body;
    return format === FORMAT ? { whole, part } : undefined;
  }
  const { type, subject: whole = '', data } = record.body;
  const part = type === EVENT_TYPE ? eventPart.safeParse(data) : undefined;
  return part?.success === true ? { whole, part: part.data } : undefined;
}

/**
 * What some records of a session keep of imports, in their order. An import of which a piece is missing was not finished, and counts for nothing; nor does one that names files outside of the
 * directory, or holds files that break the document.
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

/** Whether a record may hold a piece of an import. */
export const isKeptRecord = (record: ContextRecord): record is KeptRecord => (KEPT_KINDS as readonly string[]).includes(record.kind);

/** All files of some imports but for those that only grow, as the last of them has each. */
export function keptFiles(imports: readonly KeptImport[]): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [path, text] of imports.flatMap((one) => Object.entries(one.files))) {
    if (text === null) files.delete(path);
    else files.set(path, text);
  }
  return files;
}

/**
 * What an import kept of the steps that a session has, up to `last`: it may have been broken off and somebody gone on, or a moment of the past is asked for, or a fork left it before its end. Its files
 * are of its end, and belong to all of it alone. Undefined where the session has nothing of it. `markOf` gives the mark of a step, undefined for one that is not there.
 */
export function keptUpTo(one: KeptImport, last: number, markOf: (seq: number) => string | undefined): KeptImport | undefined {
  const { after, upto, steps } = one;
  let reach = after;
  while (reach < Math.min(upto, last) && steps[reach - after] === markOf(reach + 1)) reach++;
  if (reach === upto) return one;
  if (reach === after) return undefined;
  const before = ([seq]: KeptLine): boolean => seq <= reach;
  return { ...one, upto: reach, messages: one.messages.filter(before), events: one.events.filter(before), files: {}, isCut: true };
}
