import type { HarnessSession } from '../../harness/harness-session.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import type { ViewState } from '../../projection/shrink-view.js';
import { compactionsOf, viewStateOf } from '../../projection/view-records.js';
import type { ChatPlace } from '../../session/chat-places.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { MadeCall } from './amplifier-message.js';
import type { MessageShape } from './kept-shape.js';

/** What the records of this surface are said to be of. */
export const SURFACE = 'amplifier';

const MESSAGE = 'amplifier.message';
const CLEARED = 'amplifier.cleared';
/** Longer arguments of a waiting call are not kept a second time. */
const LONGEST_ARGUMENTS = 100_000;

/** A message as its record has it. */
export interface KeptMessage extends MessageShape {
  readonly isPrompt: boolean;
  /** Of a message of the prompt: where it stands among those, which are recorded at one time. */
  readonly place?: number;
}

/** What the records of a session say of its list. */
export interface RecordedList {
  /** By the step of the entry. */
  readonly bySeq: Map<number, MessageShape>;
  /** The system messages that are the prompt together, in their order. */
  readonly prompts: MessageShape[];
  /** The last step before the list began anew; 0 where it never did. */
  readonly from: number;
  /** What the last view decided. */
  readonly state: ViewState;
  /** Calls that waited for their results, by their own ids. */
  readonly makers: ReadonlyMap<string, RecordBody<'call'>>;
}

const isKind =
  <Kind extends ContextRecord['kind']>(kind: Kind) =>
  (record: ContextRecord): record is Extract<ContextRecord, { readonly kind: Kind }> =>
    record.kind === kind;

/** The records since the list began, and the step before it. */
function sinceCleared(records: readonly ContextRecord[]): { readonly from: number; readonly records: readonly ContextRecord[] } {
  const cleared = records.filter(isKind('event')).findLast(({ body }) => body.type === CLEARED);
  if (cleared === undefined) return { from: 0, records };
  return { from: cleared.seq, records: records.filter(({ seq, at }) => seq >= cleared.seq && at >= cleared.at) };
}

/** What the views of this surface decided; those of others decide nothing here. */
function stateOf(records: readonly ContextRecord[]): ViewState {
  return viewStateOf(compactionsOf(records.filter(isKind('compaction')), SURFACE));
}

/** Reads what is recorded of a session's list. */
export async function readRecordedList(snapshot: StoreSnapshot, { id }: Pick<HarnessSession, 'id'>): Promise<RecordedList> {
  const { from, records } = sinceCleared(await snapshot.records(id, { kinds: ['event', 'compaction', 'call'] }));
  const kept = records
    .filter(isKind('event'))
    .filter(({ body }) => body.type === MESSAGE)
    .map(({ seq, body }) => ({ seq, shape: body.data as unknown as KeptMessage }));
  const prompts = kept.filter(({ shape }) => shape.isPrompt).map(({ shape }) => shape);
  return {
    bySeq: new Map(kept.flatMap(({ seq, shape }) => (shape.isPrompt ? [] : [[seq, shape] as const]))),
    prompts: prompts.toSorted((a, b) => (a.place ?? 0) - (b.place ?? 0)),
    from,
    state: stateOf(records),
    makers: new Map(records.filter(isKind('call')).map(({ body }) => [body.native, body])),
  };
}

type Place = Pick<ContextRecord, 'owner' | 'turn' | 'seq' | 'at' | 'basis'>;

/** Makes the records of a session's list, as of a moment. */
export class ListRecords {
  readonly #session: HarnessSession;
  readonly #now: () => number;

  constructor(session: HarnessSession, now: () => number) {
    this.#session = session;
    this.#now = now;
  }

  /** What a message says beside its text; of one of the prompt at the session's last step. */
  message(data: KeptMessage, place?: ChatPlace): ContextRecord {
    const texts = data.long?.map(({ sha256 }) => sha256);
    return {
      kind: 'event',
      ...this.#at(place),
      ...defined({ texts }),
      body: { type: MESSAGE, data: data as unknown as Json },
    } as ContextRecord;
  }

  /** That a message made a call whose result has not come. */
  waiting({ id, name, arguments: args }: MadeCall, place: ChatPlace): ContextRecord {
    const { length } = JSON.stringify(args);
    const kept = length <= LONGEST_ARGUMENTS ? args : { omitted: length };
    return { kind: 'call', ...this.#at(place), body: { native: id, tool: name, args: kept, by: place.seq } } as ContextRecord;
  }

  /** That the list begins anew. */
  cleared(): ContextRecord {
    return { kind: 'event', ...this.#at(), body: { type: CLEARED, data: {} } };
  }

  #at(place?: ChatPlace): Place {
    const { id, state } = this.#session.session;
    const { seq, turn } = place ?? state;
    return { owner: { session: id }, turn, seq, at: this.#now(), basis: null };
  }
}
