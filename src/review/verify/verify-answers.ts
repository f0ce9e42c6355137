import { hashText } from '../../objects/hashes.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { AnswerPiece, AnswerProof, Step } from '../../objects/step.js';
import type { DamageError } from '../../store/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { FoundVersion } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { begun } from '../../values/promises.js';
import { damageKind, orDamage } from './verify-parts.js';

/** A tool answer that was rebuilt from stored data and differs from the one the agent got. */
export interface AnswerMismatch {
  readonly turn: number;
  readonly step: number;
  readonly call: ObjectId;
  readonly sha256: Sha256;
  readonly cause: 'differs' | 'missing-part' | 'damaged';
  readonly why: string;
}

/** The result for tool answers. Over plain MCP, a model sees only these texts (decision E7). */
export interface AnswersReport {
  readonly total: number;
  /** Answers that were rebuilt from stored data and are equal. */
  readonly equal: number;
  /** Those of `equal` that needed texts of other objects. */
  readonly fromOthers: number;
  /**
   * Answers that were not compared: their hash is stored, but stored data cannot reproduce them.
   */
  readonly keptOnly: number;
  readonly unequal: readonly AnswerMismatch[];
  /**
   * Set if the steps cannot be read, so nothing was compared. The `parts` of the session's report
   * have the reason.
   */
  readonly unread?: true;
}

type Answered = Step & { readonly call: { readonly id: ObjectId; readonly answer: AnswerProof } };

const isAnswered = (step: Step): step is Answered => step.call?.answer !== undefined;
/** Number of calls whose outputs are read together. Two such pages are in memory at a time. */
const AT_ONCE = 50;

/** The store, and a snapshot from the beginning of the verification. */
interface Database {
  readonly store: ObjectStore;
  readonly present: StoreSnapshot;
}

/** Joins the pieces of an answer. Undefined if a text of another object is missing. */
export function joinedPieces(
  pieces: readonly AnswerPiece[],
  textOf: (id: ObjectId | undefined) => string | undefined,
): string | undefined {
  const texts = pieces.map((piece) =>
    typeof piece === 'string' ? piece : textOf(piece.id)?.slice(piece.at, piece.at + piece.chars),
  );
  return texts.every((text) => text !== undefined) ? texts.join('') : undefined;
}

/** Returns the ids of the other objects that an answer shows. */
function othersOf({ call }: Answered): readonly ObjectId[] {
  return [
    ...new Set(
      (call.answer.pieces ?? []).flatMap((piece) =>
        typeof piece === 'string' || piece.id === undefined ? [] : [piece.id],
      ),
    ),
  ];
}

/** Returns the whole texts of other objects as of the time when a step was written. */
async function otherTexts({ store, present }: Database, step: Answered): Promise<ReadonlyMap<ObjectId, string>> {
  const ids = othersOf(step);
  const times = ids.length === 0 ? undefined : (await present.stepTimes(step.session, [step.seq])).get(step.seq);
  if (times === undefined) return new Map();
  const then = await store.asOf({ validTime: new Date(step.at), txId: times.txId });
  const texts = new Map<ObjectId, string>();
  for (const [id, found] of await then.getMany(ids)) {
    const whole = await then.wholeText(found);
    if (whole !== undefined) texts.set(id, whole.text);
  }
  return texts;
}

type Verdict = 'equal' | 'kept-only' | Pick<AnswerMismatch, 'cause' | 'why'>;

async function verdictOn(database: Database, step: Answered, call: FoundVersion | undefined): Promise<Verdict> {
  const { id, answer } = step.call;
  if (call === undefined)
    return { cause: 'missing-part', why: `the call ${JSON.stringify(id)} is not in the database` };
  if (call.version.content_hash === answer.sha256) return 'equal';
  const output = (await database.present.wholeText(call))?.text;
  if (answer.pieces === undefined)
    return output !== undefined && hashText(output) === answer.sha256 ? 'equal' : 'kept-only';
  const others = await otherTexts(database, step);
  const made = joinedPieces(answer.pieces, (other) => (other === undefined ? output : others.get(other)));
  if (made === undefined)
    return {
      cause: 'missing-part',
      why: `a text in the answer of the call ${JSON.stringify(id)} is not in the database`,
    };
  if (hashText(made.toWellFormed()) === answer.sha256) return 'equal';
  return {
    cause: 'differs',
    why: `the answer rebuilt from the call ${JSON.stringify(id)} differs from the one that the agent got`,
  };
}

/**
 * Reads the calls of some steps. If one is damaged, reads each call separately, so that the
 * undamaged ones are still compared.
 */
async function callsOf(
  present: StoreSnapshot,
  steps: readonly Answered[],
): Promise<ReadonlyMap<ObjectId, FoundVersion | Error>> {
  const ids = steps.map(({ call }) => call.id);
  const all = await orDamage(present.getMany(ids));
  if (!(all instanceof Error)) return all;
  const found = new Map<ObjectId, FoundVersion | Error>();
  for (const id of ids) {
    const call = await orDamage(present.get(id));
    if (call !== undefined) found.set(id, call);
  }
  return found;
}

/**
 * Rebuilds the tool answers of a session's steps from stored data and compares them with the
 * answers that the agent got. Calls `onProgress` before each page and at the end. An error that it
 * throws ends the verification. If `all` is an error, nothing is compared.
 */
export async function verifyAnswers(
  database: Database,
  all: readonly Step[] | DamageError,
  onProgress: (done: number, total: number) => void,
): Promise<AnswersReport> {
  const { present } = database;
  if (all instanceof Error) return { total: 0, equal: 0, fromOthers: 0, keptOnly: 0, unequal: [], unread: true };
  const steps = all.filter(isAnswered);
  const unequal: AnswerMismatch[] = [];
  let [equal, fromOthers, keptOnly] = [0, 0, 0];
  const read = (first: number) => begun(callsOf(present, steps.slice(first, first + AT_ONCE)));
  let next = read(0);
  for (let first = 0; first < steps.length; first += AT_ONCE) {
    onProgress(first, steps.length);
    const page = steps.slice(first, first + AT_ONCE);
    const reading = next;
    // Reads the next page while this one is compared.
    next = read(first + AT_ONCE);
    const calls = await reading;
    for (const step of page) {
      const call = calls.get(step.call.id);
      const read = call instanceof Error ? call : await orDamage(verdictOn(database, step, call));
      const found = read instanceof Error ? { cause: damageKind(read, 'missing-part'), why: read.message } : read;
      if (found === 'equal') {
        equal += 1;
        if (othersOf(step).length > 0) fromOthers += 1;
      } else if (found === 'kept-only') keptOnly += 1;
      else
        unequal.push({
          turn: step.turn,
          step: step.seq,
          call: step.call.id,
          sha256: step.call.answer.sha256,
          ...found,
        });
    }
  }
  onProgress(steps.length, steps.length);
  return { total: steps.length, equal, fromOthers, keptOnly, unequal };
}
