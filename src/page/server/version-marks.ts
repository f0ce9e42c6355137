import pLimit from 'p-limit';
import type { Ways } from '../../history/search/exposure.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionCall } from '../../review/ask/session-calls.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';

const AT_ONCE = 8;

/** A change of a file at a step. */
export interface VersionMark {
  readonly kind: 'version';
  readonly step: number;
  readonly at: Date;
  readonly object: ObjectId;
  readonly number: number;
}

/** A version of a file: its valid time in milliseconds since 1970, and its number, from 1. */
interface Versioned {
  readonly at: number;
  readonly number: number;
}

/** Returns the step that a version is placed at; undefined for a version that has no mark. */
type StepOf = (object: ObjectId, version: Versioned) => number | undefined;

/** Returns the changes of files as marks. */
export async function versionMarks(
  present: StoreSnapshot,
  files: readonly ObjectId[],
  stepOf: StepOf,
): Promise<readonly VersionMark[]> {
  const found = await pLimit(AT_ONCE).map(files, async (object) => {
    const versions = await present.versions(object);
    return versions.flatMap(({ validTime: at }, i) => {
      const step = stepOf(object, { at: at.getTime(), number: i + 1 });
      return step === undefined ? [] : [{ kind: 'version', step, at, object, number: i + 1 } as const];
    });
  });
  return found.flat();
}

/** The facts that distinguish a change of a file from its first whole text. */
interface ShownFiles {
  readonly steps: readonly Step[];
  readonly ways: Ways;
  readonly calls: ReadonlyMap<ObjectId, Pick<SessionCall, 'changes' | 'fileRefs'>>;
}

/**
 * Places a version at the last step up to its time, if it changed a text that the context had. That
 * is known if the context had the whole text before, or if a call of that moment changed the file.
 */
export function changeSteps({ steps, ways, calls }: ShownFiles): StepOf {
  const times = new Map(steps.map(({ seq, at }) => [seq, at]));
  const changed = new Set(
    steps.flatMap(({ at, call }) => {
      const made = call === undefined ? undefined : calls.get(call.id);
      return made?.changes === true ? made.fileRefs.map((file) => `${at} ${file}`) : [];
    }),
  );
  const [first, last] = [steps[0]?.at ?? 0, steps.at(-1)?.at ?? 0];
  return (file, { at, number }) => {
    if (number === 1 || at < first || at > last) return undefined;
    const wasWhole = ways
      .get(file)
      ?.some(({ step, state }) => (state === 'active' || state === 'pinned') && (times.get(step) ?? at) < at);
    if (wasWhole !== true && !changed.has(`${at} ${file}`)) return undefined;
    return steps.findLast((one) => one.at <= at)?.seq;
  };
}
