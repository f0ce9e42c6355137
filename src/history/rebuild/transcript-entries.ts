import type { Step } from '../../objects/step.js';
import { namesOf } from '../../session/chat-places.js';

/** A part of the requests that a transcript shows. */
export interface TranscriptEntry {
  /** `summary`: the text by which a compaction replaced the entries that it dropped. */
  readonly kind: 'message' | 'call' | 'summary';
  /** The step of the message or call, or of the compaction. */
  readonly step: Step;
  /** The step of the compaction that dropped it; later requests lack it. Infinite if none did. */
  readonly until: number;
  /** Texts that the model saw instead of a call's result, each from a step on. */
  readonly replaced: readonly { readonly from: number; readonly text: string }[];
}

/** A compaction, with its effect on the requests after it. */
export interface TranscriptCompaction {
  readonly step: Step;
  /** The entries that it dropped, oldest first. */
  readonly dropped: readonly TranscriptEntry[];
  /** Number of cleared results that the recording does not name. They stay in `entries`. */
  readonly unnamed: number;
}

/** The parts of a session's requests as its transcript has them, oldest first. */
export interface TranscriptEntries {
  readonly entries: readonly TranscriptEntry[];
  readonly compactions: readonly TranscriptCompaction[];
}

const REPLACED = 'The model was shown this in place of the result of ';

/** Returns the event text for a result that was replaced after it had been recorded. */
export const replacedResult = (call: string, text: string): string => `${REPLACED}${call}:\n${text}`;

/** Returns the call and the new text from such an event; undefined for any other event. */
function replacementIn({ event }: Step): { readonly call: string; readonly text: string } | undefined {
  if (event?.kind !== 'shortened' || event.detail?.startsWith(REPLACED) !== true) return undefined;
  const end = event.detail.indexOf(':\n');
  return end < 0 ? undefined : { call: event.detail.slice(REPLACED.length, end), text: event.detail.slice(end + 2) };
}

type Open = { -readonly [K in keyof TranscriptEntry]: TranscriptEntry[K] } & {
  replaced: { readonly from: number; readonly text: string }[];
};

/** Returns whether a compaction cleared single results. Its step does not name them. */
const clearsResults = ({ event }: Step): boolean => event?.detail === undefined && (event?.missing ?? 0) > 0;

/**
 * Derives the content of a session's requests from its steps: messages, calls with their results,
 * and summaries. An entry stays until a compaction drops it. So whether a request has an entry
 * depends only on the step at which the request ends.
 */
export function transcriptEntries(steps: readonly Step[]): TranscriptEntries {
  const entries: Open[] = [];
  const compactions: TranscriptCompaction[] = [];
  let present: Open[] = [];
  const add = (kind: TranscriptEntry['kind'], step: Step): void => {
    const entry: Open = { kind, step, until: Number.POSITIVE_INFINITY, replaced: [] };
    entries.push(entry);
    present.push(entry);
  };
  const compact = (step: Step): void => {
    if (clearsResults(step)) {
      compactions.push({ step, dropped: [], unnamed: step.event?.missing ?? 0 });
      return;
    }
    const kept = step.event?.kept ?? 0;
    const dropped = present.slice(kept);
    for (const entry of dropped) entry.until = step.seq;
    present = present.slice(0, kept);
    compactions.push({ step, dropped, unnamed: 0 });
    if (step.event?.detail !== undefined) add('summary', step);
  };
  for (const step of steps) {
    const { message, call, event, seq } = step;
    if (event?.kind === 'compacted') compact(step);
    const replaced = replacementIn(step);
    if (replaced !== undefined) {
      const isOf = ({ step: own }: Open): boolean => own.call !== undefined && namesOf(own.call.id).has(replaced.call);
      present.findLast(isOf)?.replaced.push({ from: seq, text: replaced.text });
    }
    if (message !== undefined && message.text !== '') add('message', step);
    if (call !== undefined) add('call', step);
  }
  return { entries, compactions };
}

/** Returns the entries of the request that ends at a step, in its order. */
export const entriesAt = ({ entries }: TranscriptEntries, step: number): readonly TranscriptEntry[] =>
  entries.filter((entry) => entry.step.seq <= step && step < entry.until);

/** Returns the text that replaces a call's result in a request. Undefined without one. */
export const replacedAt = ({ replaced }: TranscriptEntry, step: number): string | undefined =>
  replaced.findLast(({ from }) => from <= step)?.text;
