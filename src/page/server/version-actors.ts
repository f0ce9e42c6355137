import pLimit from 'p-limit';
import { isNamedBy, type ShellChanges, shellChanges } from '../../harness/tool-output/shell-changes.js';
import { kindOfCall, type LineRange, linesAsked } from '../../history/rebuild/call-names.js';
import { otherLinesIn } from '../../history/rebuild/changed-outside.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { versionState } from '../../review/ask/object-log.js';
import { type SessionCall, sessionCalls } from '../../review/ask/session-calls.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import { defined } from '../../values/defined.js';
import { type Described, describe } from './described-objects.js';
import { type OutsideChange, outsideChanges, type ReadOtherwise, shownBy } from './outside-changes.js';
import { firstWhy, otherLinesWhy, outsideWhy, shellWhy } from './version-words.js';

/** The author of a file version, as far as the database shows it. */
export interface VersionActor {
  readonly kind: 'agent' | 'person' | 'git' | 'editor' | 'unknown';
  readonly session?: SessionId;
  readonly turn?: number;
  /** The step that wrote the version, that first saw it, or after which it was written. */
  readonly step?: number;
  readonly call?: ObjectId;
  readonly name?: string;
  /** The commit that the version belongs to, for git. */
  readonly commit?: string;
  /** A sentence with the evidence. */
  readonly why: string;
}

/** A version of a file with its author. */
export interface ActedVersion {
  readonly number: number;
  readonly validTime: Date;
  readonly txId: number;
  /** Whether there is no previous version, or only a stub. */
  readonly isFirst: boolean;
  /**
   * The number of the last earlier version with the same text, if a version between them differs.
   */
  readonly back: number | undefined;
  readonly by: VersionActor;
}

/** A change of a file that has no version, because its text is not known. */
export interface UnrecordedChange {
  readonly step: Step;
  /** False for a command that names the file but may not have changed it, such as a formatter. */
  readonly isSure: boolean;
  readonly by: VersionActor;
}

/** A call of a session that named a file. */
export interface FileCall {
  readonly step: Step;
  readonly call: SessionCall;
  /** Whether it changed the file, by its tool or by a command that names the file. */
  readonly changes: boolean;
  /** The lines that it read. Undefined if it read all lines or none. */
  readonly lines: LineRange | undefined;
}

/** A step of a session whose call named a file. */
interface Touch extends Omit<FileCall, 'lines'> {
  readonly txId: number | undefined;
}

/** The facts about a file in the calls of a session. */
interface ReadFile {
  readonly versions: readonly ActedVersion[];
  readonly touches: readonly Touch[];
  /** The calls that changed it and whose text was not recorded. */
  readonly unrecorded: readonly Touch[];
}

/** A call of a shell, with the changes that its script shows. */
interface ShellRun {
  readonly step: Step;
  readonly call: SessionCall;
  readonly shell: ShellChanges;
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

/** Finds the authors of file versions from the calls of one session. Reads each file once. */
export class SessionActors {
  readonly #timeline: Timeline;
  readonly #session: SessionId;
  readonly #touches: Touches;
  readonly #steps: readonly Step[];
  readonly #runs: readonly ShellRun[];
  /** The reads that the import found to differ from the read before, in order. */
  readonly #readOtherwise: readonly ReadOtherwise[];
  readonly #known = new Map<ObjectId, Promise<ReadFile>>();

  private constructor(
    timeline: Timeline,
    session: SessionId,
    of: { touches: Touches; steps: readonly Step[]; runs: readonly ShellRun[]; otherwise: readonly ReadOtherwise[] },
  ) {
    [this.#timeline, this.#session, this.#touches, this.#steps] = [timeline, session, of.touches, of.steps];
    [this.#runs, this.#readOtherwise] = [of.runs, of.otherwise];
  }

  /** Reads the steps and calls of a session. */
  static async of(asked: Timeline, session: SessionId): Promise<SessionActors> {
    const timeline = await asked.of(session);
    const steps = await timeline.steps(session);
    const calls = await sessionCalls(timeline.present, steps, timeline.paths);
    const made = steps.flatMap((step) => {
      const call = step.call === undefined ? undefined : calls.get(step.call.id);
      return call === undefined ? [] : [{ step, call }];
    });
    const runs = made.flatMap(({ step, call }): readonly ShellRun[] => {
      const shell = kindOfCall(call) === 'shell' ? shellChanges(call.args) : undefined;
      return shell === undefined || shell.written.length + shell.putsBack.length === 0 ? [] : [{ step, call, shell }];
    });
    const shellOf = new Map(runs.map(({ step, shell }) => [step, shell]));
    const writing = runs.filter(({ shell }) => shell.written.length > 0);
    const noted = made.flatMap((one) => (one.step.notes ?? []).map((note) => ({ ...one, lines: otherLinesIn(note) })));
    const named = [...writing, ...noted.filter(({ lines }) => lines !== undefined)];
    const names = await describe(timeline, [...new Set(named.flatMap(({ call }) => call.fileRefs))]);
    const otherwise = noted.flatMap(({ step, call, lines }): readonly ReadOtherwise[] => {
      if (lines === undefined) return [];
      const isOf = (id: ObjectId): boolean => isNamedBy(pathOf(names.get(id)) ?? '', lines.path);
      const object = call.fileRefs.find(isOf) ?? (call.fileRefs.length === 1 ? call.fileRefs[0] : undefined);
      return object === undefined ? [] : [{ step, call, object, lines }];
    });
    const touches = new Map<ObjectId, Omit<Touch, 'txId'>[]>();
    for (const { step, call } of made) {
      for (const id of call.fileRefs) {
        const written = shellOf.get(step)?.written ?? [];
        const changes = call.changes || written.some((path) => isNamedBy(pathOf(names.get(id)) ?? '', path));
        touches.set(id, [...(touches.get(id) ?? []), { step, call, changes }]);
      }
    }
    return new SessionActors(timeline, session, { touches, steps, runs, otherwise });
  }

  /** The files that the session's calls changed, by their tools or by commands that name them. */
  get changed(): readonly ObjectId[] {
    return [...this.#touches].flatMap(([id, touches]) => (touches.some(({ changes }) => changes) ? [id] : []));
  }

  /** Returns the versions of a file, oldest first, each with its author. */
  async versions(object: ObjectId): Promise<readonly ActedVersion[]> {
    return (await this.#read(object)).versions;
  }

  /**
   * Returns the changes of a file without a recorded text, in order: by calls of the session, and
   * from outside.
   */
  async unrecorded(object: ObjectId): Promise<readonly UnrecordedChange[]> {
    const { unrecorded, versions } = await this.#read(object);
    const outside = this.#readOtherwise.filter((one) => one.object === object && shownBy(one, versions) === undefined);
    const byCalls = unrecorded.map((touch): UnrecordedChange => {
      const { session, ...placed } = placeOf(touch);
      const isSure = touch.call.changes;
      const did = isSure ? 'changed it' : 'may have changed it';
      const why = `${touch.call.name} ${did} in turn ${touch.step.turn}, and the text was not recorded.`;
      return { step: touch.step, isSure, by: { kind: 'agent', why, session, ...placed } };
    });
    const byOthers = outside.map(({ step, call, lines }): UnrecordedChange => {
      const why = `${otherLinesWhy(lines)} ${call.name} read the new text in turn ${step.turn}.`;
      return { step, isSure: true, by: { kind: 'unknown', why } };
    });
    return [...byCalls, ...byOthers].sort((a, b) => a.step.seq - b.step.seq);
  }

  /** Returns the calls that named a file, in order. */
  calls(object: ObjectId): readonly FileCall[] {
    return (this.#touches.get(object) ?? []).map((touch) => ({ ...touch, lines: linesRead(touch.call) }));
  }

  /** Returns the changes in a transcript that no recorded call made, in order. */
  async outside(): Promise<readonly OutsideChange[]> {
    const files = [...this.#touches].filter(([, all]) => all.some(({ call }) => call.reads));
    const found = await pLimit(AT_ONCE).map(files, async ([object]): Promise<readonly OutsideChange[]> => {
      const { versions } = await this.#read(object);
      const reads = this.#readOtherwise.filter((one) => one.object === object);
      return outsideChanges(object, { reads, versions, steps: this.#steps });
    });
    return found.flat().sort((a, b) => a.step.seq - b.step.seq);
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

  async #readOnce(object: ObjectId): Promise<ReadFile> {
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
    const name = pathOf((await describe(this.#timeline, [object])).get(object));
    const acted = versions.map((_, i) => this.#acted({ object, versions, at: i, touches, name }));
    const written = new Set(
      acted.flatMap(({ by, number }) => (versionState(versions[number - 1] as HistoryHead) === 'stub' ? [] : by.step)),
    );
    const unrecorded = touches.filter(({ step, call, changes }) => changes && !call.failed && !written.has(step.seq));
    return { touches, unrecorded, versions: acted };
  }

  /** Returns the last command between two versions that may have restored an earlier text. */
  #putBack({ path, after, upto }: Stretch): { readonly run: ShellRun; readonly command: string } | undefined {
    for (const run of this.#runs.toReversed()) {
      if (run.step.at <= after || run.step.at > upto) continue;
      const found = run.shell.putsBack.findLast(
        ({ paths }) => paths === undefined || paths.some((one) => isNamedBy(path, one)),
      );
      if (found !== undefined) return { run, command: found.command };
    }
    return undefined;
  }

  #acted({ object, versions, at, touches, name = '' }: NamedVersions): ActedVersion {
    const version = versions[at] as HistoryHead;
    const last = versions[at - 1];
    const back = earlierAlike(versions, at);
    const { validTime, txId, marks } = version;
    const isFirst = last === undefined || versionState(last) === 'stub';
    const behind = touches.filter(
      ({ txId: tx, step, call }) => tx === txId && step.at >= validTime.getTime() && mayChange(call),
    );
    // In an import, a call and its version have the same time, and a transaction may have many
    // calls.
    const exact = behind.filter(({ step }) => step.at === validTime.getTime());
    const near = exact.length > 0 ? exact : behind;
    const writer = near.find(({ call, changes }) => changes && !call.failed);
    const shell = near.find(({ call }) => kindOfCall(call) === 'shell');
    const after = last?.validTime.getTime() ?? Number.NEGATIVE_INFINITY;
    // If a call ran while the file changed, it ended at the first step after the change.
    const next = near[0]?.step ?? this.#steps.find((step) => step.at >= validTime.getTime());
    const upto = next?.at ?? validTime.getTime();
    const putBack = writer === undefined && back !== undefined ? this.#putBack({ path: name, after, upto }) : undefined;
    const earlier =
      writer === undefined && shell === undefined && putBack === undefined && last !== undefined
        ? touches.findLast(
            ({ step, call, changes }) => changes && !call.failed && step.at > after && step.at <= validTime.getTime(),
          )
        : undefined;
    const found = writer ?? putBack?.run ?? shell ?? earlier ?? near[0];
    const before = this.#steps.findLast((step) => step.at <= validTime.getTime());
    const { session, ...placed } = found === undefined ? moment(before) : placeOf(found);
    const { author } = marks;
    const other = this.#readOtherwise.find((one) => one.object === object && one.step === found?.step)?.lines;
    const why =
      writer !== undefined
        ? `The call ${writer.call.name} wrote it in turn ${writer.step.turn}.`
        : author !== undefined
          ? [
              outsideWhy(author),
              ...(shell === undefined ? [] : [`${shell.call.name} ran then in turn ${shell.step.turn}.`]),
            ].join(' ')
          : (shellWhy({ back, putBack, shell, earlier }) ??
            (found === undefined
              ? 'It changed on disk, outside the calls of this session. No trace of git or an editor was found.'
              : isFirst
                ? firstWhy(found, {
                    isStub: versionState(version) === 'stub',
                    wasKnown: last !== undefined,
                    lines: linesRead(found.call),
                    other,
                  })
                : `It changed on the disk before ${found.call.name} read it in turn ${found.step.turn}.`));
    const outside = author?.kind ?? ((putBack ?? shell ?? earlier) === undefined ? 'unknown' : 'agent');
    const kind: VersionActor['kind'] = writer === undefined ? outside : 'agent';
    const commit = kind === 'git' && author?.kind === 'git' ? author.commit : undefined;
    const by = { kind, why, ...defined({ session, commit }), ...placed };
    return { number: at + 1, validTime, txId, isFirst, back, by };
  }

  async #staleOf(object: ObjectId): Promise<readonly StaleCall[]> {
    const { versions, touches } = await this.#read(object);
    return touches.flatMap(({ step, call, txId }, i): readonly StaleCall[] => {
      // Only a tool relies on the text that was read before. A command reads the file itself.
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

/** The versions of a file, the place of one of them, and the calls that named the file. */
interface NamedVersions {
  readonly object: ObjectId;
  readonly versions: readonly HistoryHead[];
  readonly at: number;
  readonly touches: readonly Touch[];
  readonly name: string | undefined;
}

/** A file and a period, in milliseconds since 1970. */
interface Stretch {
  readonly path: string;
  readonly after: number;
  readonly upto: number;
}

const pathOf = (described: Described | undefined): string | undefined =>
  described?.type === 'file' ? described.displayPath : undefined;

/** Returns the last earlier version with the same text, if a version between them differs. */
function earlierAlike(versions: readonly HistoryHead[], at: number): number | undefined {
  const hash = versions[at]?.document?.file_hash;
  const isAlike = (one: HistoryHead | undefined): boolean =>
    one?.document?.file_hash === hash && one?.marks.gone !== true;
  if (typeof hash !== 'string' || isAlike(versions[at - 1]) || !isAlike(versions[at])) return undefined;
  return versions.slice(0, Math.max(0, at - 1)).findLast(isAlike)?.number;
}

/** Returns whether a call may have changed a file: a failed edit did not. */
const mayChange = (call: SessionCall): boolean => !call.failed || kindOfCall(call) === 'shell';

const linesRead = (call: SessionCall): LineRange | undefined => (call.reads ? linesAsked(call) : undefined);

const moment = (step: Step | undefined): Partial<ReturnType<typeof placeOf>> =>
  step === undefined ? {} : { session: step.session, turn: step.turn, step: step.seq };

const placeOf = ({ step, call }: Pick<Touch, 'step' | 'call'>) => ({
  session: step.session,
  turn: step.turn,
  step: step.seq,
  call: call.id,
  name: call.name,
});

/** Returns the version that a call read or wrote. */
const versionAt = (versions: readonly ActedVersion[], { step, txId }: Touch): ActedVersion | undefined =>
  versions.findLast((one) => one.validTime.getTime() <= step.at && (txId === undefined || one.txId <= txId));
