import type { RenderedMessage } from '../assembly/render-messages.js';
import type { AssembleOptions, SessionAssemblyRecord } from '../client/session/assemble-session.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { Delivery } from '../objects/assembly-proof.js';
import { defined } from '../values/defined.js';
import { chatTail, listTail } from './epoch-tail.js';
import { HarnessError } from './harness-error.js';
import { tailStart } from './history-item.js';
import { aroundList, epochOf, type LoopEpoch, LoopEpochs, type LoopList } from './loop-epochs.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

/** How the epochs of a session end; what is left out stays as it was at the request before. */
export interface EpochChoice {
  /** The model's own name, by which it has its prices, and its window in tokens. */
  readonly model?: string;
  readonly window?: number;
  /** The next message of the user begins an epoch. */
  readonly tidy?: boolean;
}

/** A request of an epoch, with its record. */
export interface EpochTurn {
  /** Null when there is none, or an empty one. */
  readonly system: string | null;
  /** The whole request, or what stands before the harness's own list. */
  readonly messages: readonly RenderedMessage[];
  readonly record: SessionAssemblyRecord & { readonly delivered: Delivery };
  readonly epoch: LoopEpoch;
  /** Where the harness gave its list. */
  readonly list?: LoopList;
}

/** A harness's whole list as it was reported. */
export interface ReportedList {
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
}

const NO_USER = 'the list has no message of the user at which no call waits: a request of layout epoch begins there';

/** Refuses what a request of layout `epoch` cannot be made of, before anything of it is recorded. @throws {HarnessError} `not-in-epochs` */
export function requireEpochForm(format: 'text' | 'messages' | undefined, list: readonly ReportedMessage[] | undefined): void {
  if (format === 'text')
    throw new HarnessError('not-in-epochs', 'layout epoch is a list of messages: ask for format messages, or leave it out');
  if (list !== undefined && tailStart(list) === undefined) throw new HarnessError('not-in-epochs', NO_USER);
}

/**
 * The requests of one session that are handed out in layout `epoch` (divergence E9): inside an epoch each begins with the whole of the one before. Its method is called
 * one time after the other.
 */
export class EpochContexts {
  readonly #client: ContextClient;
  readonly #session: ContextSession;
  readonly #epochs: LoopEpochs;
  #choice: Omit<EpochChoice, 'tidy'> = {};

  constructor(client: ContextClient, session: ContextSession) {
    this.#client = client;
    this.#session = session;
    this.#epochs = new LoopEpochs(client);
  }

  /**
   * The next request, once its record is kept. Without a list of the harness it has the chat as recorded, and the outputs of calls as contents.
   * @throws {HarnessError} `not-in-epochs` for a list that no epoch can begin in
   */
  async next(
    reported: ReportedList | undefined,
    { tidy = false, model, window, strict }: EpochChoice & Pick<AssembleOptions, 'strict'>,
    delivered: Delivery,
  ): Promise<EpochTurn> {
    this.#choice = { ...this.#choice, ...defined({ model, window }) };
    if (tidy) this.#epochs.ask();
    const session = this.#session;
    const assembly = await session.assemble(defined({ strict }));
    const tail = reported === undefined ? chatTail(assembly.state) : this.#listTail(reported, assembly.state.turn);
    const request = { session: session.id, tail, now: this.#client.now(), ownList: false, ...this.#choice };
    const made = await this.#epochs.next(request, assembly);
    const { system, before, notes } = made.context;
    const record = await session.deliver(made.context.record, { delivered });
    this.#epochs.handed(made);
    session.seen.context(assembly.input.active);
    session.handedOut({ tokens: made.tokens, isBase: made.begins });
    const common = { system, record, epoch: epochOf(made) };
    if (reported !== undefined) return { ...common, messages: before, list: aroundList(made) };
    return { ...common, messages: [...before, ...notes.map(({ message }) => message)] };
  }

  #listTail({ messages, placed }: ReportedList, turn: number) {
    const from = tailStart(messages);
    const start = placed.find(({ index, role }) => index === from && role === 'user');
    if (start === undefined) throw new HarnessError('not-in-epochs', NO_USER);
    return listTail({ messages, placed, start, turn });
  }
}
