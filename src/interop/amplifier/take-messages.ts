import type { ContextClient } from '../../client/session/context-client.js';
import { contentText } from '../../harness/content-text.js';
import type { HarnessSession } from '../../harness/harness-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { HOUSE_COUNTER } from '../../history/project/read-projection.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { nativeId } from '../../projection/measured-entries.js';
import type { ChatPlace } from '../../session/chat-places.js';
import {
  type AmplifierMessage,
  announcementOf,
  callsIn,
  type MadeCall,
  type NamedMessage,
  namedEntries,
  RESULT_ROLES,
  reportedOf,
  SYSTEM_ROLES,
} from './amplifier-message.js';
import { type MessageShape, shapeOf } from './kept-shape.js';
import { ListRecords, type RecordedList } from './list-records.js';

/** What became of messages. */
export interface AddedMessages {
  readonly added: number;
  readonly known: number;
}

/** What is known of a list while messages are taken into it. */
export interface TakenList extends Omit<RecordedList, 'state'> {
  /** Nothing but system messages came since the session was opened: a program that resumes it may give its prompt again. */
  isBeginning: boolean;
}

/** Records that are written at once, at least, while a list is taken, and characters of texts. */
const MOST_RECORDS = 100;
const MOST_UNITS = 1_048_576;

/** Takes messages into the list of a session: as steps of it, and in records what the chat does not keep of them. Used for one request. */
export class MessageTaker {
  readonly #session: HarnessSession;
  readonly #list: TakenList;
  readonly #client: ContextClient;
  readonly #make: ListRecords;
  #records: ContextRecord[] = [];
  #texts: string[] = [];
  readonly #shapes = new Map<number, MessageShape>();
  readonly #prompts: MessageShape[] = [];
  /** The last step before the request. */
  readonly #before: number;
  #isLate = false;

  constructor(client: ContextClient, session: HarnessSession, list: TakenList) {
    this.#client = client;
    this.#session = session;
    this.#list = list;
    this.#make = new ListRecords(session, () => client.now());
    this.#before = session.session.state.seq;
  }

  /** Whether something was left for a message that an earlier request took. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Takes messages, each once however often it is sent. What was taken before a failure stays, and is known when the same messages are sent again. */
  async take(messages: readonly NamedMessage[]): Promise<AddedMessages> {
    const entries = messages.flatMap((one) => namedEntries(one, this.#client.now()));
    const isAtPrompt = this.#session.session.state.seq <= this.#list.from;
    const first = entries.findIndex(({ message }) => !isAtPrompt || !SYSTEM_ROLES.has(message.role));
    const prompts = first < 0 ? entries : entries.slice(0, first);
    let added = 0;
    try {
      if (isAtPrompt) added += await this.#takePrompts(prompts);
      for (const one of entries.slice(prompts.length)) {
        if (await this.#take(one)) added += 1;
        // A long list is not acknowledged faster than the database takes it.
        if (this.#records.length >= MOST_RECORDS || this.#units >= MOST_UNITS) await this.#keep();
      }
    } finally {
      // Also of what was taken before a failure. Where this fails too, the same messages are sent again and find their records missing.
      await this.#keep();
    }
    return { added, known: entries.length - added };
  }

  get #units(): number {
    return this.#texts.reduce((sum, { length }) => sum + length, 0);
  }

  /** Writes what the messages leave that were taken so far. */
  async #keep(): Promise<void> {
    if (this.#records.length > 0) await this.#session.session.keepRecords(this.#records, this.#texts);
    for (const [seq, shape] of this.#shapes) this.#list.bySeq.set(seq, shape);
    this.#list.prompts.push(...this.#prompts);
    this.#records = [];
    this.#texts = [];
    this.#shapes.clear();
    this.#prompts.length = 0;
  }

  /** Takes one message; false where it was known already. */
  async #take({ id, message }: NamedMessage): Promise<boolean> {
    const list = this.#list;
    if (!SYSTEM_ROLES.has(message.role)) list.isBeginning = false;
    else if (list.isBeginning && list.prompts.some((prompt) => prompt.message.content === message.content)) return false;
    const reported = reportedOf(message, id);
    const isResult = RESULT_ROLES.has(message.role);
    const maker = isResult ? this.#maker(reported.tool_call_id) : [];
    const { recorded } = await this.#session.reportMessages([...maker, reported], { since: list.from });
    const { places } = this.#session.session;
    const place = isResult ? this.#resultPlace(reported.tool_call_id, recorded.at(-1)?.callId) : places.message(id);
    if (place !== undefined && !list.bySeq.has(place.seq) && !this.#shapes.has(place.seq)) this.#leave(message, place);
    return recorded.length > 0;
  }

  /** What a message leaves that stands at a place. */
  #leave(message: AmplifierMessage, place: ChatPlace): void {
    this.#isLate ||= place.seq < this.#before;
    const { shape, texts } = shapeOf(message, HOUSE_COUNTER);
    const waiting = callsIn(message).map((call) => this.#make.waiting(call, place));
    this.#records.push(this.#make.message({ ...shape, isPrompt: false }, place), ...waiting);
    this.#texts.push(...texts);
    this.#shapes.set(place.seq, shape);
  }

  /** System messages at the beginning are the prompt together, which is set once; answers how many of them are new. */
  async #takePrompts(messages: readonly NamedMessage[]): Promise<number> {
    const { prompts: known } = this.#list;
    const textOf = ({ message }: MessageShape): string => String(message.content);
    const seen = new Set(known.map(textOf));
    const fresh = messages.flatMap(({ message }): readonly MessageShape[] => {
      const content = contentText(message.content);
      if (seen.has(content)) return [];
      seen.add(content);
      const { shape } = shapeOf({ ...message, content: [] }, HOUSE_COUNTER);
      return [{ message: { ...shape.message, content }, isText: false }];
    });
    if (fresh.length === 0) return 0;
    await this.#session.setSystemPrompt([...known, ...fresh].map(textOf).join('\n\n'));
    this.#records.push(...fresh.map((one, i) => this.#make.message({ ...one, isPrompt: true, place: known.length + i })));
    this.#prompts.push(...fresh);
    return fresh.length;
  }

  /** The message that made a call, as an earlier process took it: the session then knows whose result it is. */
  #maker(call: string | undefined): readonly ReportedMessage[] {
    const made = call === undefined ? undefined : this.#list.makers.get(call);
    const maker = made === undefined ? undefined : this.#session.session.state.marks.find(({ seq }) => seq === made.by);
    if (made === undefined || maker?.native === undefined) return [];
    const announced: MadeCall = { id: made.native, name: made.tool, arguments: made.args as Json };
    return [announcementOf(announced, maker.native)];
  }

  #resultPlace(native: string | undefined, recorded: string | undefined): ChatPlace | undefined {
    const { places } = this.#session.session;
    const own = native === undefined ? undefined : places.calls(native).findLast(({ id }) => id === recorded || nativeId(id) === native);
    return own ?? (recorded === undefined ? undefined : places.calls(recorded).findLast(({ id }) => id === recorded));
  }
}
