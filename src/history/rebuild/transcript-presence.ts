import type { ObjectId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { kindOfCall, linesAsked, type NamedCall, namedCall, showsText } from './call-names.js';
import type { TranscriptEntries, TranscriptEntry } from './transcript-entries.js';

/** Consecutive requests that had an object. They end at a step from `from` to before `until`. */
export interface Presence {
  readonly from: number;
  /** Infinite if the object was never dropped. */
  readonly until: number;
  /** Whether the requests had its whole text, and not only a part, such as some lines of a file. */
  readonly whole: boolean;
  /**
   * When it came, in milliseconds since 1970. The requests have the file's version of that time.
   */
  readonly at: number;
}

/** The presences of a session's calls and files, in order. */
export type Presences = ReadonlyMap<ObjectId, readonly Presence[]>;

/** The facts of a call that decide which files it shows. */
interface ShowingCall extends NamedCall {
  readonly failed: boolean;
  readonly fileRefs: readonly ObjectId[];
}

/** Maximum number of files that a call shows. A call that names more files lists them. */
const MOST_SHOWN = 3;

/** Returns whether a call shows or changes text of the files that it names. */
function hasText(call: ShowingCall): boolean {
  const kind = kindOfCall(call);
  const isText = kind === 'read' || kind === 'write' || kind === 'edit' || kind === 'patch' || showsText(call);
  return isText && !call.failed && call.fileRefs.length <= MOST_SHOWN;
}

/** A file, and whether an earlier call read all of it. */
interface KnownFile {
  readonly file: ObjectId;
  readonly isKnown: boolean;
}

/** Returns whether a call contains the whole text of a file, because it wrote or read all of it. */
function hasWhole(call: ShowingCall, { step }: TranscriptEntry, { file, isKnown }: KnownFile): boolean {
  const kind = kindOfCall(call);
  if (kind === 'write') return true;
  if (kind === 'edit' || kind === 'patch') return false;
  const isAll = kind !== 'read' || linesAsked(call) === undefined;
  return isAll && (isKnown || step.changes.activate?.includes(file) === true);
}

/**
 * Returns which requests of a transcript had each call, and each file in full or in part. A call
 * and its files are in the requests from its own step until a compaction drops the call.
 */
export function presencesOf(
  { entries }: TranscriptEntries,
  callOf: (id: ObjectId) => ShowingCall | undefined,
): Presences {
  const found = new Map<ObjectId, Presence[]>();
  // Files that a call read in full. When such a file is read again, no set changes.
  const known = new Set<ObjectId>();
  const add = (id: ObjectId, presence: Presence): void => {
    const own = found.get(id);
    if (own === undefined) found.set(id, [presence]);
    else own.push(presence);
  };
  for (const entry of entries) {
    const { step, until: end, replaced } = entry;
    const { call: made, seq: from, at } = step;
    if (entry.kind !== 'call' || made === undefined) continue;
    // The text that took the place of a result shows none of its files.
    const until = Math.min(end, replaced[0]?.from ?? end);
    add(made.id, { from, until, whole: true, at });
    if (until < end) add(made.id, { from: until, until: end, whole: false, at });
    const call = callOf(made.id);
    if (call === undefined || !hasText(call)) continue;
    for (const file of new Set(call.fileRefs)) {
      const whole = hasWhole(call, entry, { file, isKnown: known.has(file) });
      if (whole) known.add(file);
      add(file, { from, until, whole, at });
    }
  }
  return found;
}

/** Reads the calls of a transcript, and returns where its requests had each object. */
export async function readPresences(present: StoreSnapshot, told: TranscriptEntries): Promise<Presences> {
  const calls = new Map<ObjectId, ShowingCall>();
  const learn = (id: ObjectId, document: Readonly<Record<string, unknown>>): void => {
    const refs = Array.isArray(document.file_refs) ? (document.file_refs as ObjectId[]) : [];
    calls.set(id, { ...namedCall(document), failed: document.status !== 'ok', fileRefs: refs });
  };
  const ids = told.entries.flatMap(({ step }) => step.call?.id ?? []);
  for (const id of ids) {
    const call = present.knownCall(id);
    if (call !== undefined) learn(id, call.document);
  }
  for (const [id, { document }] of await present.heads(ids.filter((id) => !calls.has(id))))
    learn(id as ObjectId, document);
  return presencesOf(told, (id) => calls.get(id));
}

/** Returns the presence of an object at the request that ends at a step. */
export function presentAt(presences: readonly Presence[] = [], step: number): 'whole' | 'part' | undefined {
  const here = presences.filter(({ from, until }) => from <= step && step < until);
  return here.length === 0 ? undefined : here.some(({ whole }) => whole) ? 'whole' : 'part';
}
