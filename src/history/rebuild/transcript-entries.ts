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
  /** Texts that the model saw instead of a call's result, each with its first step. */
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

/** Returns whether a compaction cleared single results. */
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
  const add = (kind: TranscriptEntry['kind'], step: Step, before?: Open): void => {
    const entry: Open = { kind, step, until: Number.POSITIVE_INFINITY, replaced: [] };
    for (const list of [entries, present])
      list.splice(before === undefined ? list.length : list.indexOf(before), 0, entry);
  };
  const compact = (step: Step): void => {
    const { kept = 0, keptFrom = Number.POSITIVE_INFINITY, missing = 0, detail } = step.event ?? {};
    const gone = step.event?.gone === undefined ? undefined : new Set(step.event.gone);
    if (clearsResults(step)) {
      const cleared = present.filter(({ step: own }) => own.call !== undefined && gone?.has(own.seq) === true);
      for (const { replaced } of cleared) replaced.push({ from: step.seq, text: '' });
      compactions.push({ step, dropped: [], unnamed: Math.max(0, missing - cleared.length) });
      return;
    }
    const stays = ({ step: own }: Open, i: number): boolean =>
      gone === undefined ? i < kept || own.seq >= keptFrom : !gone.has(own.seq);
    const dropped = present.filter((entry, i) => !stays(entry, i));
    const place = present.indexOf(dropped[0] as Open);
    for (const entry of dropped) entry.until = step.seq;
    present = present.filter(stays);
    compactions.push({ step, dropped, unnamed: 0 });
    // A summary takes the place of what it summarises, before the entries that stay behind it.
    if (detail !== undefined && detail !== '') add('summary', step, present[place]);
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
