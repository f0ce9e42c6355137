import { isNamedBy, type ShellChanges } from '../../harness/tool-output/shell-changes.js';
import { kindOfCall, type LineRange, linesAsked } from '../../history/rebuild/call-names.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import { defined } from '../../values/defined.js';
import { versionState } from '../ask/object-log.js';
import type { SessionCall } from '../ask/session-calls.js';
import type { ActedVersion, FileCall, VersionActor } from './acted-versions.js';
import type { ReadOtherwise } from './outside-changes.js';
import { firstWhy, outsideWhy, shellWhy } from './version-words.js';

/** A step of a session whose call named a file. */
export interface Touch extends Omit<FileCall, 'lines'> {
  readonly txId: number | undefined;
}

/** A call of a shell, with the changes that its script shows. */
export interface ShellRun {
  readonly step: Step;
  readonly call: SessionCall;
  readonly shell: ShellChanges;
}

/** The versions of a file, the calls that named it, and the facts about its session. */
interface NamedVersions {
  readonly object: ObjectId;
  readonly versions: readonly HistoryHead[];
  readonly touches: readonly Touch[];
  readonly name: string;
  readonly steps: readonly Step[];
  readonly runs: readonly ShellRun[];
  /** The reads that differ from the previous read of the file. */
  readonly otherwise: readonly ReadOtherwise[];
}

/** A file and a period, in milliseconds since 1970. */
interface Stretch {
  readonly path: string;
  readonly after: number;
  readonly upto: number;
}

/**
 * Returns the version that a version restores: the last earlier one with the same text, if a
 * version between them differs.
 */
function earlierAlike(versions: readonly HistoryHead[], at: number): number | undefined {
  const hash = versions[at]?.document?.file_hash;
  const isAlike = (one: HistoryHead | undefined): boolean =>
    one?.document?.file_hash === hash && one?.marks.gone !== true;
  if (typeof hash !== 'string' || isAlike(versions[at - 1]) || !isAlike(versions[at])) return undefined;
  return versions.slice(0, Math.max(0, at - 1)).findLast(isAlike)?.number;
}

/** Returns whether a call may have changed a file: a failed edit did not. */
const mayChange = (call: SessionCall): boolean => !call.failed || kindOfCall(call) === 'shell';

/** Returns the lines that a call read; undefined for all of them, or none. */
export const linesRead = (call: SessionCall): LineRange | undefined => (call.reads ? linesAsked(call) : undefined);

const moment = (step: Step | undefined): Partial<ReturnType<typeof placeOf>> =>
  step === undefined ? {} : { session: step.session, turn: step.turn, step: step.seq };

export const placeOf = ({ step, call }: Pick<Touch, 'step' | 'call'>) => ({
  session: step.session,
  turn: step.turn,
  step: step.seq,
  call: call.id,
  name: call.name,
});

/** Returns the last command between two versions that may have restored an earlier text. */
function putBackBy(
  runs: readonly ShellRun[],
  { path, after, upto }: Stretch,
): { readonly run: ShellRun; readonly command: string } | undefined {
  for (const run of runs.toReversed()) {
    if (run.step.at <= after || run.step.at > upto) continue;
    const found = run.shell.putsBack.findLast(
      ({ paths }) => paths === undefined || paths.some((one) => isNamedBy(path, one)),
    );
    if (found !== undefined) return { run, command: found.command };
  }
  return undefined;
}

/** Returns a version of a file, given by its index, with its author. */
export function actedVersion(
  at: number,
  { object, versions, touches, name, steps, runs, otherwise }: NamedVersions,
): ActedVersion {
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
  const writer = near.find(({ isMade }) => isMade);
  const shell = near.find(({ call }) => kindOfCall(call) === 'shell');
  const after = last?.validTime.getTime() ?? Number.NEGATIVE_INFINITY;
  // If a call ran while the file changed, it ended at the first step after the change.
  const next = near[0]?.step ?? steps.find((step) => step.at >= validTime.getTime());
  const upto = next?.at ?? validTime.getTime();
  const putBack = writer === undefined && back !== undefined ? putBackBy(runs, { path: name, after, upto }) : undefined;
  const earlier =
    writer === undefined && shell === undefined && putBack === undefined && last !== undefined
      ? touches.findLast(({ step, isMade }) => isMade && step.at > after && step.at <= validTime.getTime())
      : undefined;
  const found = writer ?? putBack?.run ?? shell ?? earlier ?? near[0];
  const before = steps.findLast((step) => step.at <= validTime.getTime());
  const { session, ...placed } = found === undefined ? moment(before) : placeOf(found);
  const { author } = marks;
  const other = otherwise.find((one) => one.object === object && one.step === found?.step)?.lines;
  const why =
    writer !== undefined
      ? `The call ${writer.call.name} wrote it in turn ${writer.step.turn}.`
      : author !== undefined
        ? [
            outsideWhy(author),
            ...(shell === undefined ? [] : [`${shell.call.name} ran at that time, in turn ${shell.step.turn}.`]),
          ].join(' ')
        : (shellWhy({ back, putBack, shell, earlier }) ??
          (found === undefined
            ? 'It changed on the disk, outside the calls of this session. No trace of git or an editor was found.'
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
