import type { LayoutName } from '../../assembly/assembly-record.js';
import type { HandedOver, LoopContext } from '../../harness/loop-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { HistoryEvent } from '../../objects/step.js';
import type { Verb } from '../../session/verb-outcome.js';

/** What the process beside a harness is told when it begins, as one line of JSON. */
export interface Beginning {
  readonly what: 'pi' | 'opencode';
  /** The working folder of the agent, and where its files may lie. */
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  readonly layout?: LayoutName;
}

/** A list of messages as it differs from the one sent before for the same session. */
export interface SentList {
  readonly session: string;
  readonly parent?: string;
  /** The number of the list that it continues; 0 for none. */
  readonly after: number;
  readonly number: number;
  /** How many messages at the beginning are those of the list before. */
  readonly prefix: number;
  readonly messages: readonly ReportedMessage[];
  readonly system?: string | null;
  readonly compacted?: boolean;
}

/** What can be asked of the process beside a harness, and what it answers. */
export interface Calls {
  /** Resolves when the database answers. */
  readonly ready: { readonly params: object; readonly result: null };
  /** Follows the history and answers what the next list is made of, over the pipe without what the last answer had; null: the harness's own list is the context. */
  readonly context: { readonly params: SentList; readonly result: LoopContext | null };
  readonly follow: { readonly params: SentList; readonly result: null };
  /** Keeps the record of what was handed over; resolves when it is durable. */
  readonly handed: { readonly params: HandedOver & { readonly session: string }; readonly result: { readonly kept: boolean } };
  readonly verb: {
    readonly params: { readonly session: string; readonly verb: Verb; readonly ids: readonly string[]; readonly callId?: string };
    readonly result: { readonly text: string; readonly ok: boolean };
  };
  /** A call has begun. */
  readonly expect: { readonly params: { readonly session: string; readonly callId: string }; readonly result: null };
  readonly event: { readonly params: { readonly session: string; readonly event: HistoryEvent }; readonly result: null };
  readonly close: { readonly params: { readonly session: string }; readonly result: null };
}

export type CallName = keyof Calls;

/** One request, as one line of JSON. */
export type BesideRequest = {
  readonly [N in CallName]: { readonly id: number; readonly call: N; readonly params: Calls[N]['params'] };
}[CallName];

/** One answer, as one line of JSON; `resend` asks for the whole list. */
export type BesideAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly resend?: true } };
