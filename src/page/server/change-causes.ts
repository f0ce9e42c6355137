import type { ObjectMetadata } from '../../assembly/metadata.js';
import { kindOfCall, MAY_CHANGE } from '../../history/rebuild/call-names.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { Described } from '../../review/ask/described-objects.js';
import type { ActsBetween } from '../../review/ask/request-pair.js';
import { isVerb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import { ownMember } from '../../values/own-member.js';

/**
 * The change of one item between two requests:
 * - `came`, `left`: the item appeared or disappeared
 * - `loaded`: its line became its text
 * - `collapsed`: its text became a line
 * - `changed`: its text differs
 * - `moved`: its position among the other items differs
 */
export type ChangeKind = 'came' | 'loaded' | 'changed' | 'moved' | 'collapsed' | 'left';

/**
 * The cause of a change: the agent, a person, the window of tool results, the file watcher, a new
 * epoch of contexts, or the harness. Agent and person act by a call, a message or a change of the
 * sets.
 *
 * `rendering`: no event. The item is rendered differently because other items changed.
 */
export type Actor = 'agent' | 'person' | 'window' | 'watcher' | 'epoch' | 'harness' | 'rendering';

export const ACTORS: Readonly<Record<string, Actor>> = { user: 'person', assistant: 'agent' };

/** The inputs of a comparison. */
export interface Between {
  readonly acts: ActsBetween;
  readonly pool: ReadonlyMap<ObjectId, ObjectMetadata>;
  readonly named: ReadonlyMap<ObjectId, Described>;
}

/** A cause in one phrase, with the step that caused it. */
export interface Told {
  readonly actor: Actor;
  readonly why: string;
  readonly step?: number;
}

/** The key and the object of a changed item. */
interface Stated {
  readonly key: string;
  readonly object?: ObjectId;
}

/** Finds the cause in the session's sets, if a set changed between the two requests. */
function bySets(object: ObjectId, { acts }: Between): Told | undefined {
  const found = acts.setChange(object, ['deactivate', 'activate', 'index']);
  if (found === undefined) return undefined;
  const { step, change } = found;
  const { seq, by, undoes } = step;
  const tool = acts.toolOf(step);
  const isPersons = by !== undefined && change !== 'index';
  const done = { deactivate: 'made inactive', activate: 'made active', index: 'found' }[change];
  if (isPersons) {
    const person = undoes === undefined ? 'a person' : `a person who undid step ${undoes}`;
    return { actor: 'person', why: `${done} by ${person}, step ${seq}`, step: seq };
  }
  const named = `${acts.authorOf(step)}, step ${seq}`;
  if (change === 'deactivate' && tool !== 'deactivate')
    return { actor: 'window', why: `collapsed by the window at ${named}`, step: seq };
  const actor = change === 'index' && tool === undefined ? 'harness' : 'agent';
  return { actor, why: `${done} by ${named}`, step: seq };
}

/**
 * Finds the cause of a new file version: a call that wrote it, or the author of the change on disk.
 */
function byVersion(object: ObjectId, { acts, pool }: Between): Told | undefined {
  const [before, after] = [acts.from, acts.to].map((request) => request.pool.find(({ id }) => id === object));
  if (before?.type !== 'file' || after?.type !== 'file' || before.contentHash === after.contentHash) return undefined;
  const touches = ({ call }: Step): boolean => {
    const metadata = call === undefined ? undefined : pool.get(call.id);
    return metadata?.type === 'toolcall' && metadata.fileRefs.includes(object);
  };
  const touching = acts.steps.filter(touches);
  const write = touching.findLast((step) => MAY_CHANGE.has(kindOfCall({ tool: acts.toolOf(step) ?? '' })));
  if (write !== undefined)
    return { actor: 'agent', why: `written by ${acts.toolOf(write)}, step ${write.seq}`, step: write.seq };
  const read = touching.at(-1);
  const why =
    read === undefined
      ? 'changed on the disk, seen by the watcher'
      : `changed on the disk, seen by ${acts.toolOf(read)}, step ${read.seq}`;
  return { actor: 'watcher', why, ...defined({ step: read?.seq }) };
}

function byEpoch({ acts: { newEpoch } }: Between): Told | undefined {
  if (newEpoch === undefined) return undefined;
  const { number, reason, border } = newEpoch;
  return { actor: 'epoch', why: `epoch ${number} began (${reason})`, step: border };
}

function ofStep(key: string, { acts: { reader } }: Between): Told | undefined {
  const seq = key.startsWith('step:') ? Number(key.slice('step:'.length)) : undefined;
  const step = reader.steps.find((one) => one.seq === seq);
  if (step?.message === undefined) return undefined;
  const { role } = step.message;
  return { actor: ownMember(ACTORS, role) ?? 'harness', why: `a message of ${role}, step ${step.seq}`, step: step.seq };
}

/** Finds the cause if the object is a call or a verb between the two requests. */
function ownCall(object: ObjectId, { acts }: Between): Told | undefined {
  const step = acts.steps.find(({ call }) => call?.id === object);
  if (step === undefined) return undefined;
  const tool = acts.toolOf(step);
  return { actor: 'agent', why: `${isVerb(tool) ? 'the verb' : 'the call'} ${tool}, step ${step.seq}`, step: step.seq };
}

const GONE: ReadonlySet<ChangeKind> = new Set(['left', 'collapsed']);

/**
 * Determines the cause of a change between two requests of a transcript from the session's steps.
 */
function toldByTranscript({ key, object }: Stated, kind: ChangeKind, between: Between): Told {
  const { steps } = between.acts;
  const compacted = steps.findLast(({ event }) => event?.kind === 'compacted');
  if (GONE.has(kind) && compacted !== undefined) {
    const why = `the harness compacted its history at step ${compacted.seq}`;
    return { actor: 'harness', why, step: compacted.seq };
  }
  const own = object === undefined ? ofStep(key, between) : ownCall(object, between);
  if (own !== undefined) return own;
  if (compacted !== undefined && key === `step:${compacted.seq}`)
    return { actor: 'harness', why: `the summary of the compaction at step ${compacted.seq}`, step: compacted.seq };
  const replaced = steps.findLast(({ event }) => event?.kind === 'shortened');
  if (replaced !== undefined)
    return { actor: 'harness', why: `the harness shortened it at step ${replaced.seq}`, step: replaced.seq };
  return { actor: 'harness', why: 'the transcript does not show why' };
}

/** Determines the cause of a change from the session's steps and versions. */
export function toldOf(stated: Stated, kind: ChangeKind, between: Between): Told {
  if (between.acts.to.rebuilt === undefined) return toldByTranscript(stated, kind, between);
  const { key, object } = stated;
  const rendering: Told = { actor: 'rendering', why: 'shown in another form, because the rest of the context changed' };
  if (object === undefined) {
    const own = GONE.has(kind) ? undefined : ofStep(key, between);
    const compacted = between.acts.steps.findLast(({ event }) => event?.kind === 'compacted');
    if (own === undefined && compacted !== undefined && key !== 'system')
      return {
        actor: 'harness',
        why: `the harness compacted its history at step ${compacted.seq}`,
        step: compacted.seq,
      };
    const last = between.acts.steps.at(-1);
    const chat: Told | undefined =
      key === 'chat' && last !== undefined
        ? { actor: 'harness', why: `the chat went on up to step ${last.seq}`, step: last.seq }
        : undefined;
    const prompt: Told | undefined =
      key === 'system' ? { actor: 'harness', why: 'the harness set another system prompt' } : undefined;
    return own ?? byEpoch(between) ?? chat ?? prompt ?? { actor: 'harness', why: "the harness's own list went on" };
  }
  const inSets = bySets(object, between);
  if (GONE.has(kind)) return inSets ?? byEpoch(between) ?? rendering;
  return (
    ownCall(object, between) ??
    (kind === 'changed' ? byVersion(object, between) : undefined) ??
    inSets ??
    byEpoch(between) ??
    rendering
  );
}
