import type { OtherLines } from '../../history/rebuild/changed-outside.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionCall } from '../ask/session-calls.js';
import { otherLinesWhy } from './version-words.js';

/** A read whose lines differ from the same lines in the previous read. */
export interface ReadOtherwise {
  readonly step: Step;
  readonly call: SessionCall;
  readonly object: ObjectId;
  readonly lines: OtherLines;
}

/** A change of a file that a transcript shows but none of its calls made. */
export interface OutsideChange {
  /** The step and the call that read the new text. */
  readonly step: Step;
  readonly name: string;
  readonly object: ObjectId;
  /**
   * The lines that an earlier read showed differently. Undefined if the whole text shows the
   * change.
   */
  readonly lines: OtherLines | undefined;
  /** A sentence with the evidence. */
  readonly why: string;
}

/** The facts about a version that say whether it shows the change of a read. */
interface Acted {
  readonly validTime: Date;
  readonly isFirst: boolean;
  readonly back: number | undefined;
  readonly by: { readonly kind: string; readonly step?: number; readonly name?: string; readonly why: string };
}

const versionSince = <V extends Acted>({ step }: ReadOtherwise, versions: readonly V[]): V | undefined =>
  versions.find(({ validTime }) => validTime.getTime() >= step.at);

/**
 * Returns whether a command restored the text before the read. A later read recorded that text
 * whole.
 */
function isPutBack(read: ReadOtherwise, versions: readonly Acted[]): boolean {
  const { back, by } = versionSince(read, versions) ?? {};
  return back !== undefined && by?.kind === 'agent' && (by.step ?? Number.POSITIVE_INFINITY) < read.step.seq;
}

/** Returns the version that shows the same change as a read of other lines. */
export function shownBy<V extends Acted>(read: ReadOtherwise, versions: readonly V[]): V | undefined {
  const version = versionSince(read, versions);
  if (version === undefined) return undefined;
  const isSame = version.validTime.getTime() === read.step.at || isPutBack(read, versions);
  return isSame || (version.by.kind === 'unknown' && !version.isFirst) ? version : undefined;
}

/** The facts about a file in a transcript. */
interface ReadFile {
  readonly reads: readonly ReadOtherwise[];
  readonly versions: readonly Acted[];
  readonly steps: readonly Step[];
}

/**
 * Returns the changes of a file that no recorded call made. Reads with other lines show them, and
 * so do versions by an unknown author. A change that both show counts once.
 */
export function outsideChanges(object: ObjectId, { reads, versions, steps }: ReadFile): readonly OutsideChange[] {
  const others = reads.filter((read) => !isPutBack(read, versions));
  const told = new Set(others.map((read) => shownBy(read, versions)));
  const byLines = others.map(({ step, call, lines }) => {
    return { step, name: call.name, object, lines, why: otherLinesWhy(lines) };
  });
  const byVersions = versions.flatMap((version): readonly OutsideChange[] => {
    const { isFirst, by } = version;
    const step = steps.find(({ seq }) => seq === by.step);
    if (by.kind !== 'unknown' || isFirst || told.has(version) || step === undefined) return [];
    return [{ step, name: by.name ?? '', object, lines: undefined, why: by.why }];
  });
  return [...byLines, ...byVersions];
}
