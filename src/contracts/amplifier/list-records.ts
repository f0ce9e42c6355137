import type { HarnessSession } from '../../harness/harness-session.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import type { ChatPlace } from '../../session/chat-places.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import type { ViewState } from '../projection/shrink-view.js';
import { compactionsOf, viewStateOf } from '../projection/view-records.js';
import type { MadeCall } from './amplifier-message.js';
import type { MessageShape } from './kept-shape.js';

/** The surface name in the records of this module. */
export const SURFACE = 'amplifier';

const MESSAGE = 'amplifier.message';
const CLEARED = 'amplifier.cleared';
/** Maximum characters of a pending call's arguments. Longer ones are not stored a second time. */
const LONGEST_ARGUMENTS = 100_000;

/** A message as its record stores it. */
export interface KeptMessage extends MessageShape {
  readonly isPrompt: boolean;
  /** The position of a prompt message among the prompt messages. Their records have equal times. */
  readonly place?: number;
}

/** The list of a session as its records describe it. */
export interface RecordedList {
  /** The stored fields of each message, by the step of its entry. */
  readonly bySeq: Map<number, MessageShape>;
  /** The system messages that form the prompt, in order. */
  readonly prompts: MessageShape[];
  /** The last step before the list was cleared; 0 if it never was. */
  readonly from: number;
  /** The decisions of the last view. */
  readonly state: ViewState;
  /** Recorded calls whose results were pending, by the calls' own ids. */
  readonly makers: ReadonlyMap<string, RecordBody<'call'>>;
}

const isKind =
  <Kind extends ContextRecord['kind']>(kind: Kind) =>
  (record: ContextRecord): record is Extract<ContextRecord, { readonly kind: Kind }> =>
    record.kind === kind;

/** Returns the records since the list was last cleared, and the last step before that. */
function sinceCleared(records: readonly ContextRecord[]): {
  readonly from: number;
  readonly records: readonly ContextRecord[];
} {
  const cleared = records.filter(isKind('event')).findLast(({ body }) => body.type === CLEARED);
  if (cleared === undefined) return { from: 0, records };
  return { from: cleared.seq, records: records.filter(({ seq, at }) => seq >= cleared.seq && at >= cleared.at) };
}

/** Returns the decisions of this surface's views. Other surfaces' decisions do not apply here. */
function stateOf(records: readonly ContextRecord[]): ViewState {
  return viewStateOf(compactionsOf(records.filter(isKind('compaction')), SURFACE));
}

/** Reads the records of a session's list. */
export async function readRecordedList(
  snapshot: StoreSnapshot,
  { id }: Pick<HarnessSession, 'id'>,
): Promise<RecordedList> {
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

/** Creates the records of a session's list at a given time. */
export class ListRecords {
  readonly #session: HarnessSession;
  readonly #now: () => number;

  constructor(session: HarnessSession, now: () => number) {
    this.#session = session;
    this.#now = now;
  }

  /**
   * Records the fields of a message that the chat lacks. Without `place`, the record belongs to the
   * session's last step.
   */
  message(data: KeptMessage, place?: ChatPlace): ContextRecord {
    const texts = data.long?.map(({ sha256 }) => sha256);
    return {
      kind: 'event',
      ...this.#at(place),
      ...defined({ texts }),
      body: { type: MESSAGE, data: data as unknown as Json },
    } as ContextRecord;
  }

  /** Records a call of a message that has no result yet. */
  waiting({ id, name, arguments: args }: MadeCall, place: ChatPlace): ContextRecord {
    const { length } = JSON.stringify(args);
    const kept = length <= LONGEST_ARGUMENTS ? args : { omitted: length };
    return {
      kind: 'call',
      ...this.#at(place),
      body: { native: id, tool: name, args: kept, by: place.seq },
    } as ContextRecord;
  }

  /** Records that the list was cleared. */
  cleared(): ContextRecord {
    return { kind: 'event', ...this.#at(), body: { type: CLEARED, data: {} } };
  }

  #at(place?: ChatPlace): Place {
    const { id, state } = this.#session.session;
    const { seq, turn } = place ?? state;
    return { owner: { session: id }, turn, seq, at: this.#now(), basis: null };
  }
}
