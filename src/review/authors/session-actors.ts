import pLimit from 'p-limit';
import type { ToolKind } from '../../foreign-tools/tool-table.js';
import { isNamedBy, shellChanges } from '../../harness/tool-output/shell-changes.js';
import { kindOfCall } from '../../history/rebuild/call-names.js';
import { otherLinesIn } from '../../history/rebuild/changed-outside.js';
import { modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import { askOnce } from '../../values/promises.js';
import { type Described, describe } from '../ask/described-objects.js';
import { versionState } from '../ask/object-log.js';
import { type SessionCall, sessionCalls } from '../ask/session-calls.js';
import type {
  ActedVersion,
  BeforeCall,
  FileCall,
  PutBackFile,
  SeenFile,
  StaleCall,
  UnrecordedChange,
} from './acted-versions.js';
import { isShownLater, textOfVersion } from './made-changes.js';
import { type OutsideChange, outsideChanges, type ReadOtherwise, shownBy } from './outside-changes.js';
import { actedVersion, linesRead, placeOf, type ShellRun, type Touch } from './version-author.js';
import { otherLinesWhy } from './version-words.js';

/** The facts about a file in the calls of a session. */
interface ReadFile {
  readonly name: string;
  readonly heads: readonly HistoryHead[];
  readonly versions: readonly ActedVersion[];
  readonly touches: readonly Touch[];
  /** The calls that changed it without a recorded new text. */
  readonly unrecorded: readonly Touch[];
}

type Named = Pick<Touch, 'step' | 'call' | 'changes'>;
type Touches = ReadonlyMap<ObjectId, readonly Named[]>;

const AT_ONCE = 8;
/** Maximum number of files in which a replaced text is looked for. */
const MOST_SEEN = 100;

/** Finds the authors of file versions from the calls of one session. Reads each file once. */
export class SessionActors {
  readonly #timeline: Timeline;
  readonly #session: SessionId;
  readonly #touches: Touches;
  readonly #steps: readonly Step[];
  readonly #runs: readonly ShellRun[];
  /** The reads, in order, that show other lines than the previous read of the file. */
  readonly #readOtherwise: readonly ReadOtherwise[];
  /** The last step of the request that led to each step of an answer. */
  readonly #requests: ReadonlyMap<number, number>;
  readonly #known = new Map<ObjectId, Promise<ReadFile>>();

  private constructor(
    timeline: Timeline,
    session: SessionId,
    of: { touches: Touches; steps: readonly Step[]; runs: readonly ShellRun[]; otherwise: readonly ReadOtherwise[] },
  ) {
    [this.#timeline, this.#session, this.#touches, this.#steps] = [timeline, session, of.touches, of.steps];
    [this.#runs, this.#readOtherwise] = [of.runs, of.otherwise];
    this.#requests = new Map(modelCallsOf(of.steps).flatMap(({ step, answer }) => answer.map((seq) => [seq, step])));
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
    const touches = new Map<ObjectId, Named[]>();
    for (const { step, call } of made) {
      for (const id of call.fileRefs) {
        const written = shellOf.get(step)?.written ?? [];
        const changes = call.changes || written.some((path) => isNamedBy(pathOf(names.get(id)) ?? '', path));
        touches.set(id, [...(touches.get(id) ?? []), { step, call, changes }]);
      }
    }
    return new SessionActors(timeline, session, { touches, steps, runs, otherwise });
  }

  /** The calls that change files by their tools, in order. */
  get edits(): readonly { readonly step: Step; readonly call: SessionCall }[] {
    const all = [...this.#touches.values()].flat().filter(({ call }) => call.changes);
    const bySeq = new Map(all.map(({ step, call }) => [step.seq, { step, call }]));
    return [...bySeq].sort(([a], [b]) => a - b).map(([, edit]) => edit);
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

  /** Returns the files that edits without a recorded result changed, as a later text shows. */
  async shownLater(): Promise<ReadonlyMap<number, readonly ObjectId[]>> {
    const open = this.edits.filter(({ call }) => call.unanswered);
    const found = await pLimit(AT_ONCE).map(open, async ({ step, call }) => {
      const files = await Promise.all(
        call.fileRefs.map(async (id) => {
          const isMade = (await this.#read(id)).touches.some((one) => one.step === step && one.isMade);
          return isMade ? [id] : [];
        }),
      );
      return [step.seq, files.flat()] as const;
    });
    return new Map(found);
  }

  /** Returns the calls that named a file, in order. */
  async calls(object: ObjectId): Promise<readonly FileCall[]> {
    return (await this.#read(object)).touches.map(fileCall);
  }

  /** Returns what is known of a file before a call that named it; undefined for another call. */
  async before(object: ObjectId, step: number): Promise<BeforeCall | undefined> {
    const { name, versions, touches } = await this.#read(object);
    const at = touches.findIndex((one) => one.step.seq === step);
    const touch = touches[at];
    if (touch === undefined) return undefined;
    const request = this.#requests.get(step) ?? step - 1;
    // The model has a result from its next request on. It knows its own changes at once.
    const shown = touches.slice(0, at).filter((one) => showsText(one) && (one.step.seq <= request || one.call.changes));
    const last = shown.at(-1);
    const seen = last === undefined ? undefined : versionAt(versions, last);
    const own = versions.find(({ by }) => by.step === step)?.number ?? Number.POSITIVE_INFINITY;
    const was = versions.findLast(
      (one) => one.number < own && one.validTime.getTime() <= touch.step.at && isKnownTo(touch, one),
    );
    const since = seen?.validTime.getTime() ?? 0;
    const lost = (await this.unrecorded(object)).filter((one) => one.step.seq < step && one.step.at > since);
    return {
      ...{ name, versions, request, was, lost, shown: shown.map(fileCall) },
      seen: seen === undefined || last === undefined ? undefined : { ...seen, step: last.step.seq },
    };
  }

  /** Returns the files whose texts the agent had before a call, the last seen first. */
  async seenBefore(step: number): Promise<readonly SeenFile[]> {
    const request = this.#requests.get(step) ?? step - 1;
    const last = [...this.#touches].flatMap(([object, all]) => {
      const seq = all.findLast((one) => one.step.seq <= request && !one.call.failed)?.step.seq;
      return seq === undefined ? [] : [{ object, seq }];
    });
    const newest = last.sort((a, b) => b.seq - a.seq).slice(0, MOST_SEEN);
    const found = await pLimit(AT_ONCE).map(newest, async ({ object }): Promise<readonly SeenFile[]> => {
      const { name, versions, touches } = await this.#read(object);
      const shown = touches.filter((one) => one.step.seq <= request && showsText(one));
      const at = shown.at(-1);
      if (at === undefined) return [];
      return [{ object, name, version: versionAt(versions, at)?.number, shown: shown.map(fileCall) }];
    });
    return found.flat();
  }

  /** Returns the whole text of a version; undefined if it was not recorded. */
  async text(object: ObjectId, number: number): Promise<string | undefined> {
    return textOfVersion(this.#timeline.present, (await this.#read(object)).heads[number - 1]);
  }

  /** Returns the file changes that a transcript shows but none of its calls made, in order. */
  async outside(): Promise<readonly (OutsideChange & { readonly isUnacted: boolean })[]> {
    const files = [...this.#touches].filter(([, all]) => all.some(({ call }) => call.reads));
    const found = await pLimit(AT_ONCE).map(files, async ([object]) => {
      const { versions, touches } = await this.#read(object);
      const reads = this.#readOtherwise.filter((one) => one.object === object);
      const found = outsideChanges(object, { reads, versions, steps: this.#steps });
      return found.map((change) => ({ ...change, isUnacted: isUnacted(change, touches) }));
    });
    return found.flat().sort((a, b) => a.step.seq - b.step.seq);
  }

  /**
   * Returns the files that commands such as `git stash` restored, by step: a later version has the
   * text of an earlier one.
   */
  async putBack(isWanted: (seq: number) => boolean): Promise<ReadonlyMap<number, readonly PutBackFile[]>> {
    const runs = this.#runs.filter(({ step, shell }) => shell.putsBack.length > 0 && isWanted(step.seq));
    const found = new Map<number, PutBackFile[]>(runs.map(({ step }) => [step.seq, []]));
    if (runs.length === 0) return found;
    await pLimit(AT_ONCE).map(this.#touches.keys(), async (object) => {
      for (const version of await this.versions(object))
        if (version.back !== undefined) found.get(version.by.step ?? 0)?.push({ object, version });
    });
    return found;
  }

  /** Returns the calls that changed a file whose newest text the agent had not seen, in order. */
  async stale(): Promise<readonly StaleCall[]> {
    const found = await pLimit(AT_ONCE).map(this.changed, (object) => this.#staleOf(object));
    return found.flat().sort((a, b) => a.step.seq - b.step.seq);
  }

  #read(object: ObjectId): Promise<ReadFile> {
    return askOnce(this.#known, object, () => this.#readOnce(object));
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
    const name = pathOf((await describe(this.#timeline, [object])).get(object)) ?? '';
    const shown = new Set<Step>();
    for (const touch of touched)
      if (touch.call.changes && touch.call.unanswered && (await isShownLater(present, touch, { name, versions })))
        shown.add(touch.step);
    const touches = touched.map((touch): Touch => {
      const isMade = touch.changes && (!touch.call.failed || shown.has(touch.step));
      return { ...touch, isMade, txId: times.get(touch.step.seq)?.txId };
    });
    const [steps, runs, otherwise] = [this.#steps, this.#runs, this.#readOtherwise];
    const acted = versions.map((_, i) => actedVersion(i, { object, versions, touches, name, steps, runs, otherwise }));
    const written = new Set(
      acted.flatMap(({ by, number }) => (versionState(versions[number - 1] as HistoryHead) === 'stub' ? [] : by.step)),
    );
    const unrecorded = touches.filter(({ step, isMade }) => isMade && !written.has(step.seq));
    return { name, heads: versions, touches, unrecorded, versions: acted };
  }

  async #staleOf(object: ObjectId): Promise<readonly StaleCall[]> {
    const { touches } = await this.#read(object);
    // Only a tool relies on the text that was read before. A command reads the file itself.
    const changing = touches.filter(({ call }) => call.changes);
    const found = await pLimit(AT_ONCE).map(changing, async ({ step, call }): Promise<readonly StaleCall[]> => {
      const { seen, was } = (await this.before(object, step.seq)) ?? {};
      if (seen === undefined || was === undefined || was.number <= seen.number) return [];
      return [{ step, call, object, seen, was }];
    });
    return found.flat();
  }
}

const pathOf = (described: Described | undefined): string | undefined =>
  described?.type === 'file' ? described.displayPath : undefined;

/** Kinds of tools that name files and show no text of them. */
const LISTING: ReadonlySet<ToolKind> = new Set(['list', 'tree', 'glob']);

/** Returns whether the agent had a text of the file from a call. */
const showsText = ({ call, isMade }: Touch): boolean =>
  isMade || (!call.failed && !call.changes && !LISTING.has(kindOfCall(call)));

/**
 * Returns whether no call changed a file, or tried to, from the last read of the old text to the
 * read of the new one.
 */
function isUnacted({ step, lines }: OutsideChange, touches: readonly Touch[]): boolean {
  const before = touches.filter((one) => one.step.seq < step.seq);
  const last = before.findLastIndex(({ call, isMade }) => {
    const { from = 1, to = Number.POSITIVE_INFINITY } = linesRead(call) ?? {};
    return call.reads && !call.failed && !isMade && from <= (lines?.from ?? 1) && (lines?.to ?? to) <= to;
  });
  return last >= 0 && before.slice(last + 1).every(({ changes }) => !changes);
}

const fileCall = ({ txId: _, ...touch }: Touch): FileCall => ({ ...touch, lines: linesRead(touch.call) });

/** Returns whether a version was stored by a call's transaction, as far as that is known. */
const isKnownTo = ({ txId }: Touch, version: ActedVersion): boolean => txId === undefined || version.txId <= txId;

/** Returns the version that a call read or wrote. */
const versionAt = (versions: readonly ActedVersion[], touch: Touch): ActedVersion | undefined =>
  versions.findLast((one) => one.validTime.getTime() <= touch.step.at && isKnownTo(touch, one));

const actorsOf = new WeakMap<Timeline, Map<SessionId, Promise<SessionActors>>>();

/** Returns the authors of a session's file versions, cached by timeline. */
export function sessionActors(timeline: Timeline, session: SessionId): Promise<SessionActors> {
  const known = actorsOf.get(timeline) ?? new Map<SessionId, Promise<SessionActors>>();
  actorsOf.set(timeline, known);
  return askOnce(known, session, () => SessionActors.of(timeline, session));
}
