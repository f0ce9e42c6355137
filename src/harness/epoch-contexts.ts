import type { RenderedMessage } from '../assembly/render-messages.js';
import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import type { AssembleOptions, SessionAssemblyRecord } from '../client/session/session-assembly.js';
import type { Delivery } from '../objects/assembly-proof.js';
import { defined } from '../values/defined.js';
import { chatTail, listTail } from './epoch-tail.js';
import { HarnessError } from './harness-error.js';
import { tailStart } from './history-item.js';
import { aroundList, epochOf, type LoopEpoch, LoopEpochs, type LoopList } from './loop-epochs.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

/**
 * Options that decide when an epoch ends. `model` and `window` keep their last values if omitted.
 */
export interface EpochChoice {
  /** The model's name, which determines its prices. */
  readonly model?: string;
  /** The model's window in tokens. */
  readonly window?: number;
  /** Whether the user's next message should begin an epoch. */
  readonly tidy?: boolean;
}

/** A request of layout `epoch`, and its record. */
export interface EpochTurn {
  /** The system prompt; null if there is none or it is empty. */
  readonly system: string | null;
  /** The whole request. If the harness gave its list, only the part before that list. */
  readonly messages: readonly RenderedMessage[];
  readonly record: SessionAssemblyRecord & { readonly delivered: Delivery };
  readonly epoch: LoopEpoch;
  /**
   * The part of the harness's list that stays in the request. Present only if the harness gave its
   * list.
   */
  readonly list?: LoopList;
}

/** The whole list that a harness reported, with the places of its entries in the session. */
export interface ReportedList {
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
}

const NO_USER =
  'layout epoch needs a user message in the list whose earlier calls all have their results: a request begins there';

/**
 * Throws if layout `epoch` does not support a request. Nothing has been recorded then.
 * @throws {HarnessError} `not-in-epochs`
 */
export function requireEpochForm(
  format: 'text' | 'messages' | undefined,
  list: readonly ReportedMessage[] | undefined,
): void {
  if (format === 'text')
    throw new HarnessError(
      'not-in-epochs',
      'layout epoch renders only messages: use format messages, or omit the format',
    );
  if (list !== undefined && tailStart(list) === undefined) throw new HarnessError('not-in-epochs', NO_USER);
}

/**
 * Makes the requests of one session in layout `epoch` (divergence E9). Within an epoch, each
 * request begins with the whole previous request. Calls of `next` must not overlap.
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
   * Stores the record of the next request, and returns the request. Without a harness's list, the
   * request contains the recorded chat, with the outputs of calls as blocks of active content.
   * @throws {HarnessError} `not-in-epochs` – no epoch can begin in the list
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
