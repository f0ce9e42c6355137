import pLimit, { type LimitFunction } from 'p-limit';
import type { ContextClient } from '../../client/session/context-client.js';
import { contentText } from '../../harness/content-text.js';
import type { HarnessSession } from '../../harness/harness-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { HOUSE_COUNTER, ProjectionReader } from '../../history/project/read-projection.js';
import { Timeline } from '../../history/rebuild/timeline.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import { sessionObjectId } from '../../objects/ids.js';
import { nativeId } from '../../projection/measured-entries.js';
import type { Projection } from '../../projection/project-session.js';
import { NO_VIEW, type ViewState } from '../../projection/shrink-view.js';
import { viewRecords, viewStateOf } from '../../projection/view-records.js';
import { AmplifierError } from './amplifier-error.js';
import {
  type AmplifierMessage,
  announcementOf,
  callsIn,
  type MadeCall,
  type MessageShape,
  type NamedMessage,
  namedEntries,
  RESULT_ROLES,
  reportedOf,
  SYSTEM_ROLES,
  sameKey,
  shapeOf,
} from './amplifier-message.js';
import { type MessagesView, messagesView, type ViewWish } from './amplifier-view.js';
import { isRunOf, type KeptShapes, type ListedEntry, listedEntries, listedMessages } from './message-list.js';

/** What became of messages. */
export interface AddedMessages {
  readonly added: number;
  readonly known: number;
}

/** How a whole list was taken: as the first, as one that goes on from ours, as one that ours has in it, or instead of ours. */
export type ListOutcome = 'imported' | 'extended' | 'ignored' | 'replaced';

/** A view, and how large the list and the view before it were. */
export interface ListView extends MessagesView {
  /** Messages of the whole list. */
  readonly all: number;
  /** Messages of the list that stood in the view before. */
  readonly before: number;
}

const MESSAGE = 'amplifier.message';
const CLEARED = 'amplifier.cleared';
const SURFACE = 'amplifier';
/** Records that are written at once, at least, while a list is taken. */
const MOST_RECORDS = 100;
/** Longer arguments of a waiting call are not kept a second time. */
const LONGEST_ARGUMENTS = 100_000;

type KeptEvent = ContextRecord<'event'>;
interface KeptMessage extends MessageShape {
  readonly isPrompt: boolean;
  /** Of a message of the prompt: where it stands among those, which are recorded at one time. */
  readonly place?: number;
}

/** What is known of a session between requests. */
interface Known {
  readonly serial: LimitFunction;
  readonly reader: ProjectionReader;
  /** As the records have it, which no other process writes as long as this one has the session. */
  kept: KeptShapes;
  state: ViewState;
  /** Calls that an earlier process took and whose results it did not, by their own ids. */
  readonly makers: ReadonlyMap<string, RecordBody<'call'>>;
  /** Nothing but system messages came since the session was opened: a program that resumes it may give its prompt again. */
  isBeginning: boolean;
}

/** Messages that are being taken, and the records that they leave. */
interface Taking {
  readonly known: Known;
  readonly records: ContextRecord[];
}

/** The list as it stands; no projection where the database does not have the session yet. */
interface ReadList {
  readonly projection: Projection | undefined;
  readonly listed: readonly ListedEntry[];
}

const KNOWN = new WeakMap<HarnessSession, Promise<Known>>();

const isKind =
  <Kind extends ContextRecord['kind']>(kind: Kind) =>
  (record: ContextRecord): record is Extract<ContextRecord, { readonly kind: Kind }> =>
    record.kind === kind;

const messageIn = ({ body }: KeptEvent): KeptMessage => body.data as unknown as KeptMessage;

/** The records since the list began, and the step before it. */
function sinceCleared(records: readonly ContextRecord[]): { readonly from: number; readonly records: readonly ContextRecord[] } {
  const cleared = records.filter(isKind('event')).findLast(({ body }) => body.type === CLEARED);
  if (cleared === undefined) return { from: 0, records };
  return { from: cleared.seq, records: records.filter(({ seq, at }) => seq >= cleared.seq && at >= cleared.at) };
}

function shapesOf(records: readonly ContextRecord[], from: number): KeptShapes {
  const kept = records.filter(isKind('event')).filter(({ body }) => body.type === MESSAGE);
  const prompts = kept.map(messageIn).filter(({ isPrompt }) => isPrompt);
  return {
    bySeq: new Map(kept.filter((event) => !messageIn(event).isPrompt).map((event) => [event.seq, messageIn(event)])),
    prompts: prompts.toSorted((a, b) => (a.place ?? 0) - (b.place ?? 0)),
    from,
  };
}

/** What the views of this surface decided; those of others decide nothing here. */
function stateOf(records: readonly ContextRecord[]): ViewState {
  return viewStateOf(
    records
      .filter(isKind('compaction'))
      .filter(({ body }) => (body.extra as { readonly surface?: string } | undefined)?.surface === SURFACE),
  );
}

/** Whether a list is another one with some of its messages left out. */
function isWithin(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const key of part) {
    const found = whole.indexOf(key, at);
    if (found < 0) return false;
    at = found + 1;
  }
  return true;
}

/**
 * A session as Amplifier's context manager (contract 2.1, and 1.0 on top of it): its list is the session's projection since the list began, with what the chat does not keep of a
 * message in records of its own. Views are rendered and never stored; what they decided is.
 */
export class AmplifierContext {
  readonly #client: ContextClient;
  readonly #session: HarnessSession;

  constructor(client: ContextClient, session: HarnessSession) {
    this.#client = client;
    this.#session = session;
  }

  /**
   * Adds messages, each once however often it is sent. Every message is taken, whatever the budget; a result whose call nobody made is one of a call without arguments.
   * What was added before a failure stays, and is known when the same messages are sent again.
   */
  async add(messages: readonly NamedMessage[]): Promise<AddedMessages> {
    const known = await this.#known();
    return known.serial(() => this.#add(messages, known));
  }

  /** The whole list, as it was given. */
  async messages(): Promise<readonly AmplifierMessage[]> {
    const known = await this.#known();
    return known.serial(async () => listedMessages((await this.#read(known)).listed, known.kept));
  }

  /**
   * Takes a whole list: imports it where there is none, adds what goes on from ours, ignores one that ours has in it; any other is refused unless it is to stand
   * instead of ours.
   * @throws {AmplifierError} `other-history`
   */
  async set(messages: readonly NamedMessage[], { replace = false }: { readonly replace?: boolean } = {}): Promise<ListOutcome> {
    const known = await this.#known();
    return known.serial(async () => {
      const ours = listedMessages((await this.#read(known)).listed, known.kept).map(sameKey);
      const theirs = messages.flatMap((one) => namedEntries(one, 0).map(({ message }) => sameKey(message)));
      if (ours.length === 0) {
        await this.#add(messages, known);
        return 'imported';
      }
      // Sent again, since its answer never came: what is missing of it is taken, its records too.
      if (!replace && isRunOf(messages, this.#marksSince(known))) {
        await this.#add(messages, known);
        return 'imported';
      }
      if (isWithin(theirs, ours)) return 'ignored';
      if (ours.every((key, i) => theirs[i] === key)) {
        let at = 0;
        const more = messages.filter((one) => {
          const first = at;
          at += namedEntries(one, 0).length;
          return first >= ours.length;
        });
        await this.#add(more, known);
        return 'extended';
      }
      if (!replace) {
        throw new AmplifierError(
          'other-history',
          `the session has ${ours.length} messages, and the ${theirs.length} that are set neither go on from them nor are a part of them; clear the list, or set with replace`,
        );
      }
      await this.#clear(known);
      await this.#add(messages, known);
      return 'replaced';
    });
  }

  /** Begins the list anew; the session keeps every turn, its index and its earlier versions. Answers how many messages it had. */
  async clear(): Promise<number> {
    const known = await this.#known();
    return known.serial(async () => {
      const { length } = listedMessages((await this.#read(known)).listed, known.kept);
      if (length > 0) await this.#clear(known);
      return length;
    });
  }

  /**
   * The list within a limit of tokens. What was decided for an earlier view holds on; what is decided now is recorded first.
   * @throws {ProjectionError} `invalid-budget`, `budget-too-small`
   */
  async view(wish: ViewWish): Promise<ListView> {
    const known = await this.#known();
    return known.serial(async () => {
      const { projection, listed } = await this.#read(known);
      const { kept, state } = known;
      const made = messagesView(listed, { kept, wish, counter: HOUSE_COUNTER, state });
      const { shrunk } = made.view;
      if (shrunk !== undefined && projection !== undefined) {
        const records = viewRecords(projection, made.view, { target: SURFACE, trigger: 'token_pressure', at: this.#client.now() });
        const extra = { surface: SURFACE, steps: [...shrunk.steps] };
        await this.#record(
          ...records.map((record) => (record.kind === 'compaction' ? { ...record, body: { ...record.body, extra } } : record)),
        );
        known.state = made.view.state;
      }
      const gone = new Set<string>(state.gone);
      return { ...made, all: listedMessages(listed, kept).length, before: listed.filter(({ entry }) => !gone.has(entry.id)).length };
    });
  }

  async #add(messages: readonly NamedMessage[], known: Known): Promise<AddedMessages> {
    const taking: Taking = { known, records: [] };
    const entries = messages.flatMap((one) => namedEntries(one, this.#client.now()));
    const isAtPrompt = this.#session.session.state.seq <= known.kept.from;
    const first = entries.findIndex(({ message }) => !isAtPrompt || !SYSTEM_ROLES.has(message.role));
    const prompts = first < 0 ? entries : entries.slice(0, first);
    let added = 0;
    try {
      if (isAtPrompt) added += await this.#takePrompts(prompts, taking);
      for (const one of entries.slice(prompts.length)) {
        if (await this.#take(one, taking)) added += 1;
        // A long list is not acknowledged faster than the database takes it.
        if (taking.records.length >= MOST_RECORDS) await this.#keep(taking);
      }
    } finally {
      // Also of what was taken before a failure. Where this fails too, the same messages are sent again and find their records missing.
      await this.#keep(taking);
    }
    return { added, known: entries.length - added };
  }

  #marksSince({ kept }: Known) {
    return this.#session.session.state.marks.filter(({ seq }) => seq > kept.from);
  }

  /** Writes what the messages leave that were taken so far. */
  async #keep({ known, records }: Taking): Promise<void> {
    await this.#record(...records);
    const { bySeq, prompts } = shapesOf(records, 0);
    known.kept = { ...known.kept, bySeq: new Map([...known.kept.bySeq, ...bySeq]), prompts: [...known.kept.prompts, ...prompts] };
    records.length = 0;
  }

  /** Takes one message; false where it was known already. */
  async #take({ id, message }: NamedMessage, { known, records }: Taking): Promise<boolean> {
    if (!SYSTEM_ROLES.has(message.role)) known.isBeginning = false;
    else if (known.isBeginning && known.kept.prompts.some((prompt) => prompt.message.content === message.content)) return false;
    const reported = reportedOf(message, id);
    const isResult = RESULT_ROLES.has(message.role);
    const maker = isResult ? this.#maker(reported.tool_call_id, known) : [];
    const { recorded } = await this.#session.reportMessages([...maker, reported], { since: known.kept.from });
    const seq = this.#stepOf(isResult ? { call: reported.tool_call_id, recorded: recorded.at(-1)?.callId } : { native: id });
    if (seq !== undefined && !known.kept.bySeq.has(seq)) {
      const calls = callsIn(message);
      records.push(this.#kept({ ...shapeOf(message), isPrompt: false }, seq), ...calls.map((call) => this.#waiting(call, seq)));
    }
    return recorded.length > 0;
  }

  /** System messages at the beginning are the prompt together, which is set once; answers how many of them are new. */
  async #takePrompts(messages: readonly NamedMessage[], { known, records }: Taking): Promise<number> {
    const textOf = ({ message }: MessageShape): string => String(message.content);
    const seen = new Set(known.kept.prompts.map(textOf));
    const fresh = messages.flatMap(({ message }): readonly MessageShape[] => {
      const content = contentText(message.content);
      if (seen.has(content)) return [];
      seen.add(content);
      return [{ message: { ...shapeOf({ ...message, content: [] }).message, content }, isText: false }];
    });
    if (fresh.length === 0) return 0;
    await this.#session.setSystemPrompt([...known.kept.prompts, ...fresh].map(textOf).join('\n\n'));
    const { length } = known.kept.prompts;
    const { seq } = this.#session.session.state;
    records.push(...fresh.map((one, i) => this.#kept({ ...one, isPrompt: true, place: length + i }, seq)));
    return fresh.length;
  }

  async #clear(known: Known): Promise<void> {
    await this.#session.setSystemPrompt(null);
    await this.#record({ kind: 'event', ...this.#now(), body: { type: CLEARED, data: {} } });
    known.kept = { bySeq: new Map(), prompts: [], from: this.#session.session.state.seq };
    known.state = NO_VIEW;
  }

  /** The message that made a call, as an earlier process took it: the session then knows whose result it is. */
  #maker(call: string | undefined, { makers }: Known): readonly ReportedMessage[] {
    const made = call === undefined ? undefined : makers.get(call);
    const maker = made === undefined ? undefined : this.#session.session.state.marks.find(({ seq }) => seq === made.by);
    if (made === undefined || maker?.native === undefined) return [];
    const announced: MadeCall = { id: made.native, name: made.tool, arguments: made.args as Json };
    return [announcementOf(announced, maker.native)];
  }

  #stepOf(
    wanted: { readonly native: string } | { readonly call: string | undefined; readonly recorded: string | undefined },
  ): number | undefined {
    const { marks } = this.#session.session.state;
    if ('native' in wanted) return marks.findLast(({ native }) => native === wanted.native)?.seq;
    return marks.findLast(({ call }) => call !== undefined && (call === wanted.recorded || nativeId(call) === wanted.call))?.seq;
  }

  #now(seq = this.#session.session.state.seq): Pick<ContextRecord, 'owner' | 'turn' | 'seq' | 'at' | 'basis'> {
    const { id, state } = this.#session.session;
    const turn = state.marks.findLast((mark) => mark.seq <= seq)?.turn ?? 0;
    return { owner: { session: id }, turn, seq, at: this.#client.now(), basis: null };
  }

  #kept(data: KeptMessage, seq: number): ContextRecord {
    return { kind: 'event', ...this.#now(seq), body: { type: MESSAGE, data: data as unknown as Json } } as ContextRecord;
  }

  #waiting({ id, name, arguments: args }: MadeCall, seq: number): ContextRecord {
    const { length } = JSON.stringify(args);
    const kept = length <= LONGEST_ARGUMENTS ? args : { omitted: length };
    return { kind: 'call', ...this.#now(seq), body: { native: id, tool: name, args: kept, by: seq } } as ContextRecord;
  }

  async #record(...records: readonly ContextRecord[]): Promise<void> {
    if (records.length === 0) return;
    const store = await this.#client.delivered({ others: false });
    await store.putRecords(records);
  }

  async #records(): Promise<readonly ContextRecord[]> {
    const snapshot = await (await this.#client.delivered({ others: false })).latest();
    return snapshot.records(this.#session.id, { kinds: ['event', 'compaction', 'call'] });
  }

  async #known(): Promise<Known> {
    const known = KNOWN.get(this.#session) ?? this.#readKnown();
    KNOWN.set(this.#session, known);
    return known.catch((error: unknown) => {
      KNOWN.delete(this.#session);
      throw error;
    });
  }

  async #readKnown(): Promise<Known> {
    const { from, records } = sinceCleared(await this.#records());
    return {
      serial: pLimit(1),
      reader: new ProjectionReader(),
      kept: shapesOf(records, from),
      state: stateOf(records),
      makers: new Map(records.filter(isKind('call')).map(({ body }) => [body.native, body])),
      isBeginning: true,
    };
  }

  async #read({ reader, kept }: Known): Promise<ReadList> {
    const timeline = await Timeline.open(await this.#client.delivered({ others: false }), this.#client.files);
    const { id } = this.#session;
    const exists = (await timeline.present.existing([sessionObjectId(id)])).length > 0;
    const projection = exists ? await reader.read(timeline, id) : undefined;
    return { projection, listed: projection === undefined ? [] : listedEntries(projection, kept) };
  }
}
