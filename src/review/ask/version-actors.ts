import pLimit from 'p-limit';
import { kindOfCall, type LineRange, linesAsked } from '../../history/rebuild/call-names.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { FileAuthor } from '../../objects/file-author.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import { defined } from '../../values/defined.js';
import { versionState } from './object-log.js';
import { type SessionCall, sessionCalls } from './session-calls.js';

/** The author of a file version, as far as the database shows it. */
export interface VersionActor {
  readonly kind: 'agent' | 'person' | 'git' | 'editor' | 'unknown';
  readonly session?: SessionId;
  readonly turn?: number;
  /** The step that wrote it, that first saw it, or after which it was made. */
  readonly step?: number;
  readonly call?: ObjectId;
  readonly name?: string;
  /** The commit whose file it is, for git. */
  readonly commit?: string;
  /** A sentence with the evidence. */
  readonly why: string;
}

/** A version of a file with its author. */
export interface ActedVersion {
  readonly number: number;
  readonly validTime: Date;
  readonly txId: number;
  /** Whether the version before it, if there is one, has no recorded text. */
  readonly isFirst: boolean;
  readonly by: VersionActor;
}

/** A call of a session that named a file. */
export interface FileCall {
  readonly step: Step;
  readonly call: SessionCall;
  /** The lines that it read; undefined for all of them, and for a call that reads none. */
  readonly lines: LineRange | undefined;
}

/** A step of a session whose call named a file. */
interface Touch {
  readonly step: Step;
  readonly call: SessionCall;
  readonly txId: number | undefined;
}

type Touches = ReadonlyMap<ObjectId, readonly Omit<Touch, 'txId'>[]>;

/** A call that changed a file whose newest version the agent had not seen. */
export interface StaleCall {
  readonly step: Step;
  readonly call: SessionCall;
  readonly object: ObjectId;
  /** The version that the agent had seen, and the step that saw it. */
  readonly seen: ActedVersion & { readonly step: number };
  /** The version that it changed. */
  readonly was: ActedVersion;
}

const AT_ONCE = 8;

/** Finds the authors of file versions among the calls of one session. Reads each file once. */
export class SessionActors {
  readonly #timeline: Timeline;
  readonly #session: SessionId;
  readonly #touches: Touches;
  readonly #steps: readonly Step[];
  readonly #known = new Map<ObjectId, Promise<{ versions: readonly ActedVersion[]; touches: readonly Touch[] }>>();

  private constructor(timeline: Timeline, session: SessionId, of: { touches: Touches; steps: readonly Step[] }) {
    [this.#timeline, this.#session, this.#touches, this.#steps] = [timeline, session, of.touches, of.steps];
  }

  /** Reads the steps and calls of a session. */
  static async of(asked: Timeline, session: SessionId): Promise<SessionActors> {
    const timeline = await asked.of(session);
    const steps = await timeline.steps(session);
    const calls = await sessionCalls(timeline.present, steps, timeline.paths);
    const touches = new Map<ObjectId, Omit<Touch, 'txId'>[]>();
    for (const step of steps) {
      const call = step.call === undefined ? undefined : calls.get(step.call.id);
      if (call === undefined) continue;
      for (const id of call.fileRefs) touches.set(id, [...(touches.get(id) ?? []), { step, call }]);
    }
    return new SessionActors(timeline, session, { touches, steps });
  }

  /** The files that calls of the session changed by their tools. */
  get changed(): readonly ObjectId[] {
    return [...this.#touches].flatMap(([id, touches]) => (touches.some(({ call }) => call.changes) ? [id] : []));
  }

  /** Returns the versions of a file, oldest first, each with its author. */
  async versions(object: ObjectId): Promise<readonly ActedVersion[]> {
    return (await this.#read(object)).versions;
  }

  /** Returns the calls that named a file, in order. */
  calls(object: ObjectId): readonly FileCall[] {
    return (this.#touches.get(object) ?? []).map(({ step, call }) => ({ step, call, lines: linesRead(call) }));
  }

  /** Returns the calls that changed a file on an outdated copy, in order. */
  async stale(): Promise<readonly StaleCall[]> {
    const found = await pLimit(AT_ONCE).map(this.changed, (object) => this.#staleOf(object));
    return found.flat().sort((a, b) => a.step.seq - b.step.seq);
  }

  #read(object: ObjectId) {
    const known = this.#known.get(object) ?? this.#readOnce(object);
    this.#known.set(object, known);
    return known;
  }

  async #readOnce(object: ObjectId) {
    const { present } = this.#timeline;
    const touched = this.#touches.get(object) ?? [];
    const [versions, times] = await Promise.all([
      present.historyOfHeads(object),
      present.stepTimes(
        this.#session,
        touched.map(({ step }) => step.seq),
      ),
    ]);
    const touches = touched.map((touch) => ({ ...touch, txId: times.get(touch.step.seq)?.txId }));
    return { touches, versions: versions.map((_, i) => this.#acted(versions, i, touches)) };
  }

  #acted(versions: readonly HistoryHead[], at: number, touches: readonly Touch[]): ActedVersion {
    const version = versions[at] as HistoryHead;
    const last = versions[at - 1];
    const { validTime, txId, marks } = version;
    const isFirst = last === undefined || versionState(last) === 'stub';
    const near = touches.filter((touch) => touch.txId === txId && touch.step.at >= validTime.getTime());
    const writer = near.find(({ call }) => call.changes && !call.failed);
    const shell = near.find(({ call }) => kindOfCall(call) === 'shell');
    const found = writer ?? shell ?? near[0];
    const before = this.#steps.findLast((step) => step.at <= validTime.getTime());
    const { session, ...placed } = found === undefined ? moment(before) : placeOf(found);
    const { author } = marks;
    const why =
      writer !== undefined
        ? `The call ${writer.call.name} wrote it in turn ${writer.step.turn}.`
        : author !== undefined
          ? [
              outsideWhy(author),
              ...(shell === undefined ? [] : [`${shell.call.name} ran then in turn ${shell.step.turn}.`]),
            ].join(' ')
          : shell !== undefined
            ? `It changed while ${shell.call.name} ran in turn ${shell.step.turn}.`
            : found === undefined
              ? 'It changed on the disk, outside of the calls of this session. No trace of git or an editor was found.'
              : isFirst
                ? firstWhy(found, version, last !== undefined)
                : `It changed on the disk before ${found.call.name} read it in turn ${found.step.turn}.`;
    const outside = author?.kind ?? (shell === undefined ? 'unknown' : 'agent');
    const kind: VersionActor['kind'] = writer === undefined ? outside : 'agent';
    const commit = kind === 'git' && author?.kind === 'git' ? author.commit : undefined;
    const by = { kind, why, ...defined({ session, commit }), ...placed };
    return { number: at + 1, validTime, txId, isFirst, by };
  }

  async #staleOf(object: ObjectId): Promise<readonly StaleCall[]> {
    const { versions, touches } = await this.#read(object);
    return touches.flatMap(({ step, call, txId }, i): readonly StaleCall[] => {
      if (!call.changes) return [];
      const last = touches.slice(0, i).findLast((one) => !one.call.failed);
      const seen = last === undefined ? undefined : versionAt(versions, last);
      const was = versions.findLast(
        (one) => one.validTime.getTime() <= step.at && (txId === undefined || one.txId < txId),
      );
      if (last === undefined || seen === undefined || was === undefined || was.number <= seen.number) return [];
      return [{ step, call, object, seen: { ...seen, step: last.step.seq }, was }];
    });
  }
}

const linesRead = (call: SessionCall): LineRange | undefined => (call.reads ? linesAsked(call) : undefined);

/** Says how the first text of a file, or its first mention, came to be recorded. */
function firstWhy({ step, call }: Touch, version: HistoryHead, wasKnown: boolean): string {
  const where = `in turn ${step.turn}`;
  const lines = linesRead(call);
  if (versionState(version) === 'stub')
    return lines === undefined
      ? `${call.name} found it ${where}.`
      : `${call.name} read a part of it ${where}, and the whole text was not recorded.`;
  return wasKnown
    ? `${call.name} read all of it for the first time ${where}. Nothing shows whether it had changed before.`
    : `It was there when ${call.name} first read it ${where}.`;
}

/** Says what shows that git or an editor made a version. */
function outsideWhy(author: FileAuthor): string {
  return author.kind === 'git'
    ? `git ${author.action} moved HEAD to ${author.commit.slice(0, 10)} then, and the file is that commit's.`
    : `${author.editor} saved it: its files came and went beside the file then.`;
}

const moment = (step: Step | undefined): Partial<ReturnType<typeof placeOf>> =>
  step === undefined ? {} : { session: step.session, turn: step.turn, step: step.seq };

const placeOf = ({ step, call }: Omit<Touch, 'txId'>) => ({
  session: step.session,
  turn: step.turn,
  step: step.seq,
  call: call.id,
  name: call.name,
});

/** Returns the version that a call read or wrote. */
const versionAt = (versions: readonly ActedVersion[], { step, txId }: Touch): ActedVersion | undefined =>
  versions.findLast((one) => one.validTime.getTime() <= step.at && (txId === undefined || one.txId <= txId));
