import { HistoryError } from '../../history/rebuild/history-error.js';
import { parseRange } from '../../history/rebuild/moment.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import type { EpochProof } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import { type Request, type RequestReader, requestAt } from './request-reader.js';

/** Two requests of one session. */
export interface RequestPair {
  readonly from: Request;
  readonly to: Request;
}

/**
 * Rebuilds two requests: the last one up to each moment of a range. If the range has no beginning,
 * the first request is the one that precedes the second.
 *
 * @throws {HistoryError} `malformed-moment`, `beyond-end`
 */
export async function requestPair(
  timeline: Timeline,
  reader: RequestReader,
  { range, count }: { readonly range: string; readonly count: CountTexts },
): Promise<RequestPair> {
  const { requests, session } = reader;
  const moments = parseRange(range);
  const last = await requestAt(timeline, moments.to, reader);
  const first =
    moments.from === undefined ? requests[requests.indexOf(last) - 1] : await requestAt(timeline, moments.from, reader);
  if (first === undefined)
    throw new HistoryError('beyond-end', `the context at step ${last.step} is the first one of session ${session}`);
  const from = await reader.request(first, count);
  return { from, to: first === last ? from : await reader.request(last, count) };
}

/** Returns the steps between two requests. */
export function stepsBetween({ steps }: RequestReader, { from, to }: RequestPair): readonly Step[] {
  const [low, high] = [from.side.step, to.side.step].sort((a, b) => a - b) as [number, number];
  return steps.filter(({ seq }) => seq > low && seq <= high);
}

/** The steps between two requests, from which the cause of a difference is found. */
export class ActsBetween {
  readonly from: Request;
  readonly to: Request;
  readonly steps: readonly Step[];
  readonly reader: RequestReader;

  private constructor(reader: RequestReader, { from, to }: RequestPair, steps: readonly Step[]) {
    [this.from, this.to, this.steps, this.reader] = [from, to, steps, reader];
  }

  /** Reads the steps between two requests with their calls. */
  static async read(reader: RequestReader, pair: RequestPair): Promise<ActsBetween> {
    const steps = stepsBetween(reader, pair);
    await reader.read(steps);
    return new ActsBetween(reader, pair, steps);
  }

  /** The epoch of the second request, if the first request belongs to another epoch. */
  get newEpoch(): EpochProof | undefined {
    const [before, after] = [this.from.of.proof?.epoch, this.to.of.proof?.epoch];
    return before?.number === after?.number && before?.border === after?.border ? undefined : after;
  }

  /** Returns the tool of a step's call; undefined for a message. */
  toolOf({ call }: Step): string | undefined {
    return call === undefined ? undefined : (this.reader.calls.get(call.id)?.head.split(' ', 1)[0] ?? 'a call');
  }

  /** Returns a phrase that names the call or message of a step. */
  authorOf(step: Step): string {
    return this.toolOf(step) ?? `a message of ${step.message?.role ?? 'an unknown role'}`;
  }

  /**
   * Returns the last step that added an object to a set or removed it, and the step's first such
   * change.
   */
  setChange<Name extends keyof SetChanges>(
    object: ObjectId,
    names: readonly Name[],
  ): { readonly step: Step; readonly change: Name } | undefined {
    for (const step of this.steps.toReversed()) {
      const change = names.find((name) => step.changes[name]?.includes(object));
      if (change !== undefined) return { step, change };
    }
    return undefined;
  }
}
