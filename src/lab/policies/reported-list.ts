import { createHash } from 'node:crypto';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';

/** The messages in a harness's own list before a model call. */
export interface ReportedList {
  readonly system: readonly TimelineItem[];
  readonly messages: readonly ReportedMessage[];
  /** The recorded items that each message consists of. */
  readonly groups: readonly (readonly TimelineItem[])[];
}

interface Grown {
  readonly system: TimelineItem[];
  readonly messages: ReportedMessage[];
  readonly groups: TimelineItem[][];
  /** The ids of the calls in the list. */
  readonly called: Set<string | undefined>;
  upTo: number;
}

/** Rebuilds, from a recording, the messages that the harness had before each model call. */
export class ReportedLists {
  readonly #key: string;
  readonly #cwd: string | undefined;
  readonly #byConversation = new WeakMap<readonly TimelineItem[], Grown>();

  /** `variant` makes the ids of calls differ from those of other policies in the same database. */
  constructor({ key, cwd }: Timeline, variant: string) {
    this.#key = `${key}\n${variant}`;
    this.#cwd = cwd;
  }

  /**
   * Returns the list before a call. Callers must ask in the order of the calls, because a
   * conversation's list grows in place.
   */
  before(call: ModelCall): ReportedList {
    const known = this.#byConversation.get(call.items);
    const grown = known ?? { system: [], messages: [], groups: [], called: new Set(), upTo: 0 };
    this.#byConversation.set(call.items, grown);
    for (const item of call.items.slice(grown.upTo, call.visible)) this.#add(grown, item);
    grown.upTo = Math.max(grown.upTo, call.visible);
    return grown;
  }

  #add(grown: Grown, item: TimelineItem): void {
    const { system, messages, groups, called } = grown;
    const last = groups.at(-1);
    if (item.kind === 'system' && messages.length === 0) system.push(item);
    else if (item.kind === 'result') {
      // A rewind removed the call, so its result is left out too.
      if (!called.has(item.callId)) return;
      messages.push(this.#result(item));
      groups.push([item]);
    } else if (item.answer === undefined) {
      messages.push({ role: item.kind === 'user' ? 'user' : 'harness', content: item.text });
      groups.push([item]);
    } else if (last !== undefined && last[0]?.answer === item.answer) {
      last.push(item);
      messages[messages.length - 1] = this.#answer(last);
    } else {
      groups.push([item]);
      messages.push(this.#answer([item]));
    }
    if (item.kind === 'call') called.add(item.callId);
  }

  /** Returns a reproducible id with the length of a provider's ids. */
  #id(callId: string | undefined): string {
    return `call_${createHash('sha256').update(`${this.#key}\n${callId}`).digest('hex').slice(0, 24)}`;
  }

  #answer(items: readonly TimelineItem[]): ReportedMessage {
    const texts = items.flatMap(({ kind, text }) => (kind === 'text' ? [text] : []));
    const calls = items.filter(({ kind }) => kind === 'call');
    return {
      role: 'assistant',
      content: texts.length === 0 ? null : texts.join('\n'),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map(({ callId, tool = '', args = {} }) => ({
              id: this.#id(callId),
              name: tool,
              arguments: args,
            })),
          }),
    };
  }

  #result({ callId, text, isError, files }: TimelineItem): ReportedMessage {
    const shown = [...files.texts].map(([path, content]) => ({ path, content, complete: true }));
    return {
      role: 'tool',
      tool_call_id: this.#id(callId),
      content: text,
      is_error: isError,
      ...(this.#cwd === undefined ? {} : { cwd: this.#cwd }),
      ...(shown.length === 0 ? {} : { files: shown }),
    };
  }
}
