import { defined } from '../../../values/defined.js';
import { chatCalls, chatThinking, chatUsage } from '../entries/chat-calls.js';
import { idAt, momentOf, numberAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';

type Common = { session: string; place: string; at?: number; native_id?: string };

const ROLES: Readonly<Record<string, EntryOf<'message'>['role']>> = {
  user: 'user',
  assistant: 'assistant',
  system: 'system',
  developer: 'developer',
};
/** Moments below this are seconds. */
const LAST_SECOND = 1e11;

function momentIn(message: JsonObject): number | undefined {
  const given = message.timestamp ?? message.created_at ?? message.created;
  return typeof given === 'number' && given < LAST_SECOND ? Math.round(given * 1000) : momentOf(given);
}

/** Turns the messages of one conversation, one by one, into entries; the session is told with its first message. */
export class ChatMessages {
  private readonly open: { readonly id: string; readonly tool: string }[] = [];
  private begun = false;

  constructor(
    private readonly session: string,
    private readonly place: string,
    private readonly onLoss: OnLoss,
  ) {}

  *entries(message: JsonObject, place: string): Iterable<RecordedEntry> {
    const role = textAt(message, 'role');
    const prompt = !this.begun && (role === 'system' || role === 'developer');
    if (!this.begun) yield this.opening(prompt ? partsText(message.content, place, this.onLoss) : undefined);
    if (prompt) return;
    const common: Common = { session: this.session, place, ...defined({ at: momentIn(message), native_id: idAt(message, 'id') }) };
    if (role === 'tool' || role === 'function') yield this.result(message, common);
    else yield* this.said(message, role ?? '', common);
  }

  *end(): Iterable<RecordedEntry> {
    if (!this.begun) yield this.opening(undefined);
  }

  private opening(system_prompt: string | undefined): RecordedEntry {
    this.begun = true;
    return { kind: 'session', format: 'openai-chat', native_id: this.session, place: this.place, ...defined({ system_prompt }) };
  }

  private *said(message: JsonObject, role: string, common: Common): Iterable<RecordedEntry> {
    const known = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    if (known === undefined) {
      this.onLoss({
        reason: 'unknown-record',
        place: common.place,
        detail: `a message with the role ${JSON.stringify(message.role)}: kept as what the program said`,
      });
    }
    const origin = known === 'assistant' ? 'model' : known === 'user' ? 'person' : 'harness';
    const refusal = textAt(message, 'refusal') ?? '';
    const text = [partsText(message.content, common.place, this.onLoss), refusal].filter((part) => part !== '').join('\n');
    const calls = chatCalls(message, common.place, this.onLoss);
    const more = known === 'assistant' ? { thinking: chatThinking(message), usage: chatUsage(message) } : {};
    const name = idAt(message, 'name');
    yield { ...common, kind: 'message', role: known ?? 'user', origin, text, ...defined({ ...more, name }) };
    for (const { id, tool, args, place } of calls) {
      this.open.push({ id, tool });
      yield { ...common, kind: 'call', place, call_id: id, tool, args };
    }
  }

  private result(message: JsonObject, common: Common): RecordedEntry {
    const id = idAt(message, 'tool_call_id');
    const tool = textAt(message, 'name');
    const at = this.open.findIndex((call) => (id === undefined ? tool === undefined || call.tool === tool : call.id === id));
    const [call] = at < 0 ? [] : this.open.splice(at, 1);
    if (id === undefined && message.role === 'tool') {
      this.onLoss({
        reason: 'malformed-record',
        place: common.place,
        detail: 'a result without the id of its call: put to the oldest open one',
      });
    }
    const text = partsText(message.content, common.place, this.onLoss);
    const is_error = message.is_error === true || numberAt(message, 'exit_code') === 1 || /^Error\b/.test(text);
    return { ...common, kind: 'result', call_id: call?.id ?? id ?? common.place, text, is_error };
  }
}
