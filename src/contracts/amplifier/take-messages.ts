import type { ContextClient } from '../../client/session/context-client.js';
import { contentText } from '../../harness/content-text.js';
import type { HarnessSession } from '../../harness/harness-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import type { ChatPlace } from '../../session/chat-places.js';
import { nativeId } from '../projection/measured-entries.js';
import { HOUSE_COUNTER } from '../projection/read-projection.js';
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

/** The result of adding messages. */
export interface AddedMessages {
  readonly added: number;
  readonly known: number;
}

/** The state of a list while messages are added. */
export interface TakenList extends Omit<RecordedList, 'state'> {
  /**
   * True if only system messages came since the session was opened. A program that resumes the
   * session may send its prompt again.
   */
  isBeginning: boolean;
}

/**
 * Pending records are written when there are this many, or when their texts have this many
 * characters.
 */
const MOST_RECORDS = 100;
const MOST_UNITS = 1_048_576;

/**
 * Adds messages to a session's list: steps for the chat, and records for fields that the chat
 * lacks. One instance serves one request.
 */
export class MessageTaker {
  readonly #session: HarnessSession;
  readonly #list: TakenList;
  readonly #client: ContextClient;
  readonly #make: ListRecords;
  #records: ContextRecord[] = [];
  #texts: string[] = [];
  readonly #shapes = new Map<number, MessageShape>();
  readonly #prompts: MessageShape[] = [];
  /** The session's last step when the request began. */
  readonly #before: number;
  #isLate = false;

  constructor(client: ContextClient, session: HarnessSession, list: TakenList) {
    this.#client = client;
    this.#session = session;
    this.#list = list;
    this.#make = new ListRecords(session, () => client.now());
    this.#before = session.session.state.seq;
  }

  /** True if a record was added for a message of an earlier request. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /**
   * Adds messages. A message that is sent again is added only once. Messages added before a failure
   * stay and are recognised when they are sent again.
   */
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
        // Back pressure: messages are acknowledged no faster than the database stores them.
        if (this.#records.length >= MOST_RECORDS || this.#units >= MOST_UNITS) await this.#keep();
      }
    } finally {
      // Runs after a failure too, so that records of added messages are stored. If this fails, a
      // retry finds that they are missing and adds them.
      await this.#keep();
    }
    return { added, known: entries.length - added };
  }

  get #units(): number {
    return this.#texts.reduce((sum, { length }) => sum + length, 0);
  }

  /** Writes the pending records of the messages added so far. */
  async #keep(): Promise<void> {
    if (this.#records.length > 0) await this.#session.session.keepRecords(this.#records, this.#texts);
    for (const [seq, shape] of this.#shapes) this.#list.bySeq.set(seq, shape);
    this.#list.prompts.push(...this.#prompts);
    this.#records = [];
    this.#texts = [];
    this.#shapes.clear();
    this.#prompts.length = 0;
  }

  /** Adds one message. Returns false if the list already had it. */
  async #take({ id, message }: NamedMessage): Promise<boolean> {
    const list = this.#list;
    if (!SYSTEM_ROLES.has(message.role)) list.isBeginning = false;
    else if (list.isBeginning && list.prompts.some((prompt) => prompt.message.content === message.content))
      return false;
    const reported = reportedOf(message, id);
    const isResult = RESULT_ROLES.has(message.role);
    const maker = isResult ? this.#maker(reported.tool_call_id) : [];
    const { recorded } = await this.#session.reportMessages([...maker, reported], { since: list.from });
    const { places } = this.#session.session;
    const place = isResult ? this.#resultPlace(reported.tool_call_id, recorded.at(-1)?.callId) : places.message(id);
    if (place !== undefined && !list.bySeq.has(place.seq) && !this.#shapes.has(place.seq)) this.#leave(message, place);
    return recorded.length > 0;
  }

  /** Queues the records of a message at its step. */
  #leave(message: AmplifierMessage, place: ChatPlace): void {
    this.#isLate ||= place.seq < this.#before;
    const { shape, texts } = shapeOf(message, HOUSE_COUNTER);
    const waiting = callsIn(message).map((call) => this.#make.waiting(call, place));
    this.#records.push(this.#make.message({ ...shape, isPrompt: false }, place), ...waiting);
    this.#texts.push(...texts);
    this.#shapes.set(place.seq, shape);
  }

  /** Sets the prompt from the leading system messages. Returns how many of them are new. */
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
    this.#records.push(
      ...fresh.map((one, i) => this.#make.message({ ...one, isPrompt: true, place: known.length + i })),
    );
    this.#prompts.push(...fresh);
    return fresh.length;
  }

  /**
   * Returns the message with a call that an earlier process recorded. The session needs it to match
   * the call's result.
   */
  #maker(call: string | undefined): readonly ReportedMessage[] {
    const made = call === undefined ? undefined : this.#list.makers.get(call);
    const maker = made === undefined ? undefined : this.#session.session.state.marks.find(({ seq }) => seq === made.by);
    if (made === undefined || maker?.native === undefined) return [];
    const announced: MadeCall = { id: made.native, name: made.tool, arguments: made.args as Json };
    return [announcementOf(announced, maker.native)];
  }

  #resultPlace(native: string | undefined, recorded: string | undefined): ChatPlace | undefined {
    const { places } = this.#session.session;
    const own =
      native === undefined
        ? undefined
        : places.calls(native).findLast(({ id }) => id === recorded || nativeId(id) === native);
    return own ?? (recorded === undefined ? undefined : places.calls(recorded).findLast(({ id }) => id === recorded));
  }
}
