import { canonicalJson } from '../../objects/canonical-json.js';
import { RECORD_KINDS } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
  systemPromptObjectId,
} from '../../objects/ids.js';
import { keptArgsHash } from '../../objects/kept-args.js';
import type { Step } from '../../objects/step.js';
import { recordId } from '../../store/context-records.js';
import { type DamageError, isDamage, isMissingPart } from '../../store/errors.js';
import { contentPartHash } from '../../store/head.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import type { Head } from '../../store/snapshot-rows.js';
import { stepId } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { chunkId, INLINE_UNITS } from '../../store/texts.js';

/** A part that is missing, or that differs from what was written. */
export interface PartDamage {
  /** The id of the part or object. */
  readonly part: string;
  /** `lost`: it was lost with a damaged journal before it reached the database (decision 0011). */
  readonly what: 'missing' | 'damaged' | 'rewritten' | 'lost';
  /** The object that needs it. */
  readonly of: string;
}

/** The result for the parts of a session. */
export interface PartsReport {
  readonly checked: number;
  readonly damages: readonly PartDamage[];
}

/** Returns the object or part that a message names first. */
export function namedIn(message: string): string | undefined {
  return (
    /\b((?:chunks?|step|snapshot|session|chat|system_prompt|assembly|record):[^\s,"]+)/.exec(message)?.[1] ??
    /"((?:[^"\\]|\\.)+)"/.exec(message)?.[1]
  );
}

/**
 * Awaits a read. Resolves to its error if that reports missing or damaged data; rejects with every
 * other error.
 */
export function orDamage<T>(reading: Promise<T>): Promise<T | DamageError> {
  return reading.catch((error: unknown) => {
    if (isDamage(error)) return error;
    throw error;
  });
}

/** Returns the kind of damage in an error. `missing` is the caller's word for missing data. */
export function damageKind<M extends string>(error: Error, missing: M): M | 'damaged' {
  return isMissingPart(error) ? missing : 'damaged';
}

/** Returns the ids of a session's own objects: its head, chat and system prompt. */
export const ownObjects = (session: SessionId): readonly ObjectId[] => [
  sessionObjectId(session),
  chatObjectId(session),
  systemPromptObjectId(session),
];

/** Checks a session's own objects, whose hashes cover its steps. */
async function checkHeads(present: StoreSnapshot, session: SessionId): Promise<readonly PartDamage[]> {
  const parts = ownObjects(session);
  const found = await Promise.all(parts.map((part) => orDamage(present.get(part))));
  return parts.flatMap((part, i): readonly PartDamage[] => {
    const one = found[i];
    if (one === undefined) return [{ part, what: 'missing', of: session }];
    return one instanceof Error ? [{ part, what: damageKind(one, 'missing'), of: one.message }] : [];
  });
}

/** Returns steps that have changed. Steps are written once. */
function rewrittenSteps(session: SessionId, before: readonly Step[], now: readonly Step[]): readonly PartDamage[] {
  const known = new Map(now.map((step) => [step.seq, step]));
  return before.flatMap((step): readonly PartDamage[] => {
    const current = known.get(step.seq);
    const part = stepId(session, step.seq);
    if (current === undefined) return [{ part, what: 'missing', of: session }];
    return current === step || canonicalJson(current) === canonicalJson(step)
      ? []
      : [{ part, what: 'rewritten', of: session }];
  });
}

/** Returns steps that were acknowledged but never reached the database. */
function lostSteps(session: SessionId, steps: readonly Step[]): readonly PartDamage[] {
  return steps.flatMap(({ seq, event }) =>
    event?.kind === 'lost' ? [{ part: stepId(session, seq), what: 'lost' as const, of: event.detail ?? session }] : [],
  );
}

/** A session whose parts are to be checked. */
export interface CheckedSession {
  readonly session: SessionId;
  /** A snapshot of the newest state. */
  readonly present: StoreSnapshot;
  /**
   * A snapshot at the latest basis of a context. Parts are written once, so they must still be as
   * they were at this basis.
   */
  readonly before: StoreSnapshot;
  /** When the session's documents were written, if the transaction log shows it. */
  readonly writes: LoggedWrites | undefined;
  /** Hashes of the separately stored texts of rebuilt contexts, each with an object that has it. */
  readonly seen: ReadonlyMap<Sha256, ObjectId>;
  /** The present steps, or the error of reading them. */
  readonly steps: readonly Step[] | DamageError;
}

/** Heads of calls by id. */
type CallHeads = ReadonlyMap<string, Head>;

/** Returns the ids of the calls of some steps. */
export const callsIn = (steps: readonly Step[]): readonly ObjectId[] => steps.flatMap(({ call }) => call?.id ?? []);

/**
 * Returns the hashes of the separately stored texts of steps, calls and contexts, each with its
 * owner.
 */
function textsOf(
  { session, seen }: CheckedSession,
  steps: readonly Step[],
  calls: CallHeads,
): ReadonlyMap<Sha256, string> {
  const texts = new Map<Sha256, string>(seen);
  for (const { seq, message } of steps) {
    if (message !== undefined && message.text.length > INLINE_UNITS)
      texts.set(hashText(message.text), stepId(session, seq));
  }
  for (const id of callsIn(steps)) {
    const head = calls.get(id);
    if (head === undefined) continue;
    const { document, marks } = head;
    const hash = contentPartHash(document);
    if (hash !== undefined) texts.set(hash, id);
    if (marks.whole !== undefined) texts.set(marks.whole, id);
    const args = keptArgsHash(document.args);
    if (args !== undefined) texts.set(args, id);
  }
  return texts;
}

/** Returns calls whose heads have changed. Calls are written once, together with their step. */
function rewrittenCalls(ids: readonly ObjectId[], then: CallHeads, now: CallHeads): readonly PartDamage[] {
  return ids.flatMap((part): readonly PartDamage[] => {
    const [old, current] = [then.get(part)?.document, now.get(part)?.document];
    if (current === undefined) return [{ part, what: 'missing', of: 'the chat' }];
    return old === undefined || old === current || canonicalJson(old) === canonicalJson(current)
      ? []
      : [{ part, what: 'rewritten', of: 'the chat' }];
  });
}

/** The result for the steps of a session and their calls. */
interface CheckedSteps {
  readonly steps: readonly Step[];
  readonly calls: CallHeads;
  readonly damages: readonly PartDamage[];
}

/**
 * Returns the steps at `before` if the log shows that they have not changed since. Undefined if the
 * log does not show it.
 */
function stepsThen({ session, before, writes }: CheckedSession, now: readonly Step[]): readonly Step[] | undefined {
  const { validTime, txId } = before.basis;
  if (writes === undefined || txId === undefined || !writes.isUnwritten(stepId(session, now.length + 1)))
    return undefined;
  const then: Step[] = [];
  for (const step of now) {
    const isThere = writes.isAsNow(stepId(session, step.seq), { validTime, txId });
    if (isThere === undefined) return undefined;
    if (isThere) then.push(step);
  }
  return then;
}

/**
 * Returns the heads of calls at `before`. Reuses current heads if the log shows that they have not
 * changed.
 */
async function headsThen(
  { before, writes }: CheckedSession,
  ids: readonly ObjectId[],
  now: CallHeads,
): Promise<CallHeads> {
  const then = new Map<string, Head>();
  const others = ids.filter((id) => {
    const head = now.get(id);
    const isSame =
      head !== undefined &&
      head.validTime <= before.basis.validTime &&
      writes?.isUnchanged(id, before.basis.txId) === true;
    if (isSame) then.set(id, head);
    return !isSame;
  });
  for (const [id, head] of await before.heads(others)) then.set(id, head);
  return then;
}

/**
 * Checks that steps and calls are as they were at `before`, and that step pages match their steps.
 * If steps cannot be read, returns the error; an error of the current steps comes first.
 */
async function checkSteps(checked: CheckedSession): Promise<CheckedSteps | DamageError> {
  const { session, present, before, steps: now } = checked;
  if (now instanceof Error) return now;
  const [then, lineage] = await Promise.all([
    stepsThen(checked, now) ?? orDamage(before.steps(session, { first: 1 })),
    orDamage(present.lineage(session)),
  ]);
  if (then instanceof Error) return then;
  if (lineage instanceof Error) return lineage;
  const old = callsIn(then);
  const [wrong, calls] = await Promise.all([
    lineage === undefined ? [] : orDamage(present.pages.wrong(lineage, now.length)),
    present.heads([...new Set([...old, ...callsIn(now)])]),
  ]);
  if (wrong instanceof Error) return wrong;
  const were = await headsThen(checked, old, calls);
  const damages = [
    ...wrong.map((part) => ({ part, what: 'damaged' as const, of: 'it differs from its steps' })),
    ...rewrittenSteps(session, then, now),
    ...rewrittenCalls(old, were, calls),
    ...lostSteps(session, now),
  ];
  return { steps: now, calls, damages };
}

/** The result for context records, with the hashes of the texts that they name. */
interface CheckedRecords extends PartsReport {
  readonly texts: ReadonlyMap<Sha256, string>;
}

/** Checks that the id of each context record matches its content. */
async function checkRecords(present: StoreSnapshot, session: SessionId): Promise<CheckedRecords> {
  const damages: PartDamage[] = [];
  const onDamaged = ({ message }: Error): void => {
    damages.push({ part: namedIn(message) ?? session, what: 'damaged', of: 'the records of its contexts' });
  };
  const whole = await present.records(session, { kinds: RECORD_KINDS, onDamaged });
  const texts = new Map(
    whole.flatMap((record) => record.texts?.map((hash) => [hash, recordId(record)] as const) ?? []),
  );
  return { checked: whole.length + damages.length, damages, texts };
}

/**
 * Checks the parts of a session in the newest state of the database. Texts, chat, session and
 * prompt must match their hashes. Steps and calls must be as at an earlier basis.
 *
 * This check may find damage although every past context is intact: a part may have been
 * overwritten after the basis of the contexts.
 */
export async function verifyParts(checked: CheckedSession): Promise<PartsReport> {
  const { session, present } = checked;
  const [heads, found, records] = await Promise.all([
    checkHeads(present, session),
    checkSteps(checked),
    checkRecords(present, session),
  ]);
  if (found instanceof Error) {
    const part = namedIn(found.message) ?? chatObjectId(session);
    return { checked: 3, damages: [...heads, { part, what: damageKind(found, 'missing'), of: found.message }] };
  }
  const { steps } = found;
  const damages: PartDamage[] = [...heads, ...found.damages];
  const texts = new Map([...records.texts, ...textsOf(checked, steps, found.calls)]);
  for (const [hash, what] of await present.damagedTexts([...texts.keys()])) {
    damages.push({ part: chunkId(hash), what, of: texts.get(hash) ?? session });
  }
  return { checked: 3 + 2 * steps.length + texts.size + records.checked, damages: [...damages, ...records.damages] };
}
