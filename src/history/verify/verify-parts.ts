import { canonicalJson } from '../../objects/canonical-json.js';
import { RECORD_KINDS } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import { chatObjectId, type ObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from '../../objects/ids.js';
import { keptArgsHash } from '../../objects/kept-args.js';
import type { Step } from '../../objects/step.js';
import { recordId } from '../../store/context-records.js';
import { type DamageError, isDamage, isMissingPart } from '../../store/errors.js';
import { contentPartHash } from '../../store/head.js';
import { stepId } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { chunkId, INLINE_UNITS } from '../../store/texts.js';

/** Something written once that the database does not hold, or does not hold as it was written. */
export interface PartDamage {
  /** The id of the part or object. */
  readonly part: string;
  /** `lost`: it was lost with a damaged journal before the database had it (decision 0011). */
  readonly what: 'missing' | 'damaged' | 'rewritten' | 'lost';
  /** What needs it. */
  readonly of: string;
}

/** What was checked of the parts of a session, and what is wrong. */
export interface PartsReport {
  readonly checked: number;
  readonly damages: readonly PartDamage[];
}

/** The object or part that a message names first. */
export function namedIn(message: string): string | undefined {
  return (
    /\b((?:chunks?|step|snapshot|session|chat|system_prompt|assembly|record):[^\s,"]+)/.exec(message)?.[1] ??
    /"((?:[^"\\]|\\.)+)"/.exec(message)?.[1]
  );
}

/** What is read, or the error that says what of it is missing or damaged. Rejects with every other error. */
export function orDamage<T>(reading: Promise<T>): Promise<T | DamageError> {
  return reading.catch((error: unknown) => {
    if (isDamage(error)) return error;
    throw error;
  });
}

/** What is wrong with what could not be read; the caller has a word of its own for what is not there. */
export function damageKind<M extends string>(error: Error, missing: M): M | 'damaged' {
  return isMissingPart(error) ? missing : 'damaged';
}

/** Objects whose hashes cover what their session's steps say. */
async function checkHeads(present: StoreSnapshot, session: SessionId): Promise<readonly PartDamage[]> {
  const damages: PartDamage[] = [];
  for (const part of [sessionObjectId(session), chatObjectId(session), systemPromptObjectId(session)]) {
    const found = await orDamage(present.get(part));
    if (found === undefined) damages.push({ part, what: 'missing', of: session });
    else if (found instanceof Error) damages.push({ part, what: damageKind(found, 'missing'), of: found.message });
  }
  return damages;
}

/** Steps are written once: what they say now is what they said. */
function rewrittenSteps(session: SessionId, before: readonly Step[], now: readonly Step[]): readonly PartDamage[] {
  const known = new Map(now.map((step) => [step.seq, step]));
  return before.flatMap((step): readonly PartDamage[] => {
    const current = known.get(step.seq);
    const part = stepId(session, step.seq);
    if (current === undefined) return [{ part, what: 'missing', of: session }];
    return canonicalJson(current) === canonicalJson(step) ? [] : [{ part, what: 'rewritten', of: session }];
  });
}

/** Steps that were acknowledged and never came to the database. */
function lostSteps(session: SessionId, steps: readonly Step[]): readonly PartDamage[] {
  return steps.flatMap(({ seq, event }) =>
    event?.kind === 'lost' ? [{ part: stepId(session, seq), what: 'lost' as const, of: event.detail ?? session }] : [],
  );
}

/** A session whose parts are checked. */
export interface CheckedSession {
  readonly session: SessionId;
  /** Everything that is known now. */
  readonly present: StoreSnapshot;
  /** The latest moment that a context was read at: what was written once and stood there must still be the same. */
  readonly before: StoreSnapshot;
  /** The texts that contexts were made again with, and an object that each belongs to. */
  readonly seen: ReadonlyMap<Sha256, ObjectId>;
}

/** The texts that steps, calls and contexts hold in parts of their own, and what each belongs to. */
async function textsOf({ session, present, seen }: CheckedSession, steps: readonly Step[]): Promise<ReadonlyMap<Sha256, string>> {
  const texts = new Map<Sha256, string>(seen);
  for (const { seq, message } of steps) {
    if (message !== undefined && message.text.length > INLINE_UNITS) texts.set(hashText(message.text), stepId(session, seq));
  }
  const calls = steps.flatMap(({ call }) => call?.id ?? []);
  for (const [id, { document, marks }] of await present.heads(calls)) {
    const hash = contentPartHash(document);
    if (hash !== undefined) texts.set(hash, id);
    if (marks.whole !== undefined) texts.set(marks.whole, id);
    const args = keptArgsHash(document.args);
    if (args !== undefined) texts.set(args, id);
  }
  return texts;
}

/** Calls are written once, with the step that they belong to. */
async function rewrittenCalls({ before, present }: CheckedSession, steps: readonly Step[]): Promise<readonly PartDamage[]> {
  const ids = steps.flatMap(({ call }) => call?.id ?? []);
  const [then, now] = await Promise.all([before.heads(ids), present.heads(ids)]);
  return ids.flatMap((part): readonly PartDamage[] => {
    const [old, current] = [then.get(part)?.document, now.get(part)?.document];
    if (current === undefined) return [{ part, what: 'missing', of: 'the chat' }];
    return old === undefined || canonicalJson(old) === canonicalJson(current) ? [] : [{ part, what: 'rewritten', of: 'the chat' }];
  });
}

/** What was checked of records, and the texts that they name. */
interface CheckedRecords extends PartsReport {
  readonly texts: ReadonlyMap<Sha256, string>;
}

/** What was recorded of the session's contexts carries the id of what it says. */
async function checkRecords(present: StoreSnapshot, session: SessionId): Promise<CheckedRecords> {
  const damages: PartDamage[] = [];
  const onDamaged = ({ message }: Error): void => {
    damages.push({ part: namedIn(message) ?? session, what: 'damaged', of: 'the records of its contexts' });
  };
  const whole = await present.records(session, { kinds: RECORD_KINDS, onDamaged });
  const texts = new Map(whole.flatMap((record) => record.texts?.map((hash) => [hash, recordId(record)] as const) ?? []));
  return { checked: whole.length + damages.length, damages, texts };
}

/**
 * Checks what a session is made of as the database holds it now: texts are what they are called by, steps and calls are what they were at an earlier
 * basis, the hashes of chat, session and prompt fit. A context of the past is read at its own basis and may be whole although this finds damage: then
 * it was overwritten later.
 */
export async function verifyParts(checked: CheckedSession): Promise<PartsReport> {
  const { session, present, before } = checked;
  const damages: PartDamage[] = [...(await checkHeads(present, session))];
  let steps: readonly Step[];
  try {
    const now = await present.steps(session, { first: 1 });
    steps = await before.steps(session, { first: 1 });
    const lineage = await present.lineage(session);
    const wrong = lineage === undefined ? [] : await present.pages.wrong(lineage, now.length);
    damages.push(...wrong.map((part) => ({ part, what: 'damaged' as const, of: 'it does not say what its steps say' })));
    damages.push(...rewrittenSteps(session, steps, now), ...(await rewrittenCalls(checked, steps)));
    damages.push(...lostSteps(session, now));
    steps = now;
  } catch (error) {
    if (!isDamage(error)) throw error;
    const part = namedIn(error.message) ?? chatObjectId(session);
    return { checked: 3, damages: [...damages, { part, what: damageKind(error, 'missing'), of: error.message }] };
  }
  const records = await checkRecords(present, session);
  const texts = new Map([...records.texts, ...(await textsOf(checked, steps))]);
  for (const [hash, what] of await present.damagedTexts([...texts.keys()])) {
    damages.push({ part: chunkId(hash), what, of: texts.get(hash) ?? session });
  }
  return { checked: 3 + 2 * steps.length + texts.size + records.checked, damages: [...damages, ...records.damages] };
}
