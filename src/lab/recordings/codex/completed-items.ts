import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import type { HeldEntry } from '../entries/entry-queue.js';
import { type EntryCommon, idAt, numberAt, objectAt, objectsAt, textAt, textsAt } from '../entries/fields.js';
import { fileEvidence } from '../entries/shown-file.js';
import { excerpt } from '../importer.js';
import type { EntryKind, EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';
import { type ItemContext, originOf, patchEvidence } from './items.js';

/** Returns the texts of a message, which comes from the transcript or from an event. */
const textsIn = (holder: JsonObject): readonly string[] => [
  ...objectsAt(holder, 'content').flatMap((part) => textAt(part, 'text') ?? []),
  ...objectsAt(holder, 'fragments').flatMap((part) => textAt(part, 'text') ?? []),
];

/**
 * Returns a short key for a message. Storing whole texts would take memory as large as the
 * recording.
 */
const keyOf = (role: string | undefined, text: string): string =>
  createHash('sha1').update(`${role} ${text}`).digest('base64');

const ROLES: ReadonlyMap<string, 'user' | 'assistant'> = new Map([
  ['UserMessage', 'user'],
  ['HookPrompt', 'user'],
  ['AgentMessage', 'assistant'],
]);
/**
 * Kinds of items that are skipped. The transcript repeats them, or they are only for the screen.
 */
const REPEATED = new Set([
  'Plan',
  'Reasoning',
  'WebSearch',
  'ImageView',
  'ImageGeneration',
  'CollabAgentToolCall',
  'SubAgentActivity',
  'Sleep',
  'ContextCompaction',
]);
/** Kinds of items that are executed calls. */
const MADE = new Set(['CommandExecution', 'FileChange', 'McpToolCall', 'DynamicToolCall']);

/** The tool, arguments, output and outcome of an executed call. */
interface MadeCall extends Pick<EntryOf<'call'>, 'tool' | 'args'> {
  readonly text: string;
  readonly failed: boolean;
  readonly files: readonly ShownFile[];
}

function madeCall(item: JsonObject): MadeCall {
  const type = textAt(item, 'type');
  const failed =
    /^(?:failed|declined)$/i.test(textAt(item, 'status') ?? '') || (numberAt(item, 'exit_code') ?? 0) !== 0;
  if (type === 'CommandExecution') {
    const cmd = textAt(item, 'command');
    const call =
      cmd === undefined
        ? { tool: 'shell', args: { command: textsAt(item, 'command') } }
        : { tool: 'exec_command', args: { cmd } };
    return { ...call, text: textAt(item, 'aggregated_output') ?? textAt(item, 'stdout') ?? '', failed, files: [] };
  }
  if (type === 'FileChange') {
    const files = patchEvidence({ ...item, success: !failed });
    const paths = Object.keys(objectAt(item, 'changes') ?? {});
    return { tool: 'apply_patch', args: { paths }, text: textAt(item, 'stdout') ?? '', failed, files };
  }
  const output = objectAt(item, 'result') ?? { content: item.content_items };
  const text =
    textsIn(output).join('\n') || (textAt(item, 'error') ?? textAt(objectAt(item, 'error'), 'message') ?? '');
  const args = isJsonObject(item.arguments) ? item.arguments : { input: item.arguments };
  const name = [textAt(item, 'server'), textAt(item, 'tool')].filter((part) => part !== undefined).join('__');
  return { tool: name || 'unknown', args: { ...args }, text, failed, files: [] };
}

/** Returns the entries for an item, in a file without a transcript. */
function entriesOf(item: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
  const type = textAt(item, 'type') ?? '';
  const role = type === 'Plan' ? 'assistant' : ROLES.get(type);
  if (role !== undefined) {
    const text = textAt(item, 'text') ?? textsIn(item).join('\n');
    return [{ kind: 'message', ...common, role, origin: originOf(role, text), text }];
  }
  if (type === 'Reasoning') {
    const thinking = [...textsAt(item, 'summary_text'), ...textsAt(item, 'raw_content')].join('\n');
    return [{ kind: 'message', ...common, role: 'assistant', origin: 'model', text: '', thinking }];
  }
  if (type === 'ContextCompaction') return [{ kind: 'compaction', ...common }];
  if (!MADE.has(type)) return [{ kind: 'event', ...common, name: 'item', text: JSON.stringify(item) }];
  const { tool, args, text, failed, files } = madeCall(item);
  const call_id = idAt(item, 'id') ?? common.place;
  const cwd = textAt(item, 'cwd');
  return [
    { kind: 'call', ...common, call_id, tool, args, ...(cwd === undefined ? {} : { cwd }) },
    { kind: 'result', ...common, call_id, text, is_error: failed, ...fileEvidence(files) },
  ];
}

/**
 * Reads `item_completed` events. Newer versions repeat the transcript in them, and only they report
 * the calls of scripts. In a file without a transcript, these events are the only record of the
 * conversation. Otherwise a call that the transcript lacks becomes the event `script-step`, and a
 * message that it lacks is a loss.
 */
export class CompletedItems {
  readonly #context: ItemContext;
  /** Entries that are held back until it is known whether the file has a transcript. */
  #held: HeldEntry<EntryKind>[] = [];
  #hasTranscript = false;
  readonly #calls = new Set<string>();
  /** Keys of the transcript's messages. */
  readonly #said = new Set<string>();
  /** Messages that were only in events so far, by key. */
  readonly #unsaid = new Map<string, { readonly place: string; readonly text: string }>();

  constructor(context: ItemContext) {
    this.#context = context;
  }

  /** Records an item of the transcript. */
  transcript(payload: JsonObject): void {
    for (const entry of this.#held) entry.withdraw();
    this.#held = [];
    this.#hasTranscript = true;
    const call = idAt(payload, 'call_id');
    if (call !== undefined) this.#calls.add(call);
    if (payload.type !== 'message') return;
    for (const text of textsIn(payload)) {
      const key = keyOf(textAt(payload, 'role'), text);
      this.#said.add(key);
      this.#unsaid.delete(key);
    }
  }

  /** Reads the item of an `item_completed` event. */
  item(item: JsonObject | undefined, common: EntryCommon): void {
    const type = textAt(item, 'type') ?? '';
    const role = ROLES.get(type);
    if (item === undefined || (role === undefined && !REPEATED.has(type) && !MADE.has(type))) {
      const detail = `a completed item of the kind ${JSON.stringify(excerpt(type))}: left out`;
      this.#context.onLoss({ reason: 'unknown-record', place: common.place, detail });
      return;
    }
    const [first] = role === undefined ? [] : textsIn(item);
    const key = keyOf(role, first ?? '');
    if (first !== undefined && !this.#said.has(key))
      this.#unsaid.set(key, { place: common.place, text: excerpt(first) });
    if (!this.#hasTranscript)
      for (const entry of entriesOf(item, common)) this.#held.push(this.#context.queue.hold(entry));
    else if (MADE.has(type)) this.#made(item, common);
  }

  /** Reports the messages that only events have, if the file has a transcript. */
  finish(): void {
    if (!this.#hasTranscript) return;
    for (const { place, text } of this.#unsaid.values()) {
      const detail = `this message is in an event and not in the transcript: left out: ${text}`;
      this.#context.onLoss({ reason: 'unknown-record', place, detail });
    }
  }

  /**
   * Reads an executed call in a file with a transcript. It is either a call of the transcript, or a
   * step of a script.
   */
  #made(item: JsonObject, common: EntryCommon): void {
    const { calls, queue } = this.#context;
    const id = idAt(item, 'id') ?? '';
    const { tool, args, text, failed, files } = madeCall(item);
    const open = calls.get(id) ?? [...calls.values()].findLast(({ script }) => script);
    if (open !== undefined && files.length > 0) open.files = [...(open.files ?? []), ...files];
    const own = calls.get(id);
    if (own !== undefined) own.exitCode = numberAt(item, 'exit_code') ?? own.exitCode;
    if (this.#calls.has(id)) return;
    const said = [`${tool} ${JSON.stringify(args)}`, ...(failed ? ['[failed]'] : []), ...(text === '' ? [] : [text])];
    queue.push({ kind: 'event', ...common, name: 'script-step', text: said.join('\n') });
  }
}
