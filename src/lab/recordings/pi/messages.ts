import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { callArguments, partsText } from '../entries/chat-message.js';
import { type EntryCommon, idAt, numberAt, objectAt, objectsAt, textAt, usageAt } from '../entries/fields.js';
import { fileEvidence, fileText, namedFile } from '../entries/shown-file.js';
import { excerpt, type OnLoss, OpaqueContent } from '../importer.js';
import type { EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';

type Handler = (message: JsonObject, common: EntryCommon) => readonly RecordedEntry[];

/** Converts the messages of pi to entries. */
export class PiMessages {
  readonly #onLoss: OnLoss;
  readonly #opaque = new OpaqueContent();
  /** Calls without a result, by id. */
  readonly #calls = new Map<string, { readonly tool: string; readonly args: JsonObject }>();
  readonly #roles: Readonly<Record<string, Handler>> = {
    user: (message, common) => {
      const text = this.#text(message.content, common.place);
      return [{ kind: 'message', ...common, role: 'user', origin: 'person', text }];
    },
    assistant: (message, common) => this.#assistant(message, common),
    toolResult: (message, common) => this.#result(message, common),
    bashExecution: (message, common) => {
      const text = bashExecutionText(message);
      if (message.excludeFromContext === true) return [{ kind: 'event', ...common, name: 'person-ran', text }];
      return [{ kind: 'message', ...common, role: 'user', origin: 'person', name: 'bashExecution', text }];
    },
    custom: (message, common) => [this.handed('custom', message, common)],
    hookMessage: (message, common) => [this.handed('hookMessage', message, common)],
    branchSummary: (message, common) => [this.handed('branchSummary', message, common)],
    compactionSummary: (message, common) => [this.handed('compactionSummary', message, common)],
  };

  constructor(onLoss: OnLoss) {
    this.#onLoss = onLoss;
  }

  entries(message: JsonObject | undefined, common: EntryCommon): readonly RecordedEntry[] {
    const role = textAt(message, 'role') ?? '';
    const handler = ownMember(this.#roles, role);
    if (message !== undefined && handler !== undefined) return handler(message, common);
    const detail = `a message of the role ${JSON.stringify(excerpt(role))}: left out`;
    this.#onLoss({ reason: 'unknown-record', place: common.place, detail });
    return [];
  }

  /**
   * Converts a message that pi itself added to the context. The text is its summary, or else its
   * content.
   */
  handed(name: string, message: JsonObject, common: EntryCommon): RecordedEntry {
    const text = textAt(message, 'summary') ?? this.#text(message.content, common.place);
    return { kind: 'message', ...common, role: 'user', origin: 'harness', name, text };
  }

  /** Reports content that only the provider can read. */
  finish(): void {
    this.#opaque.finish(this.#onLoss);
  }

  #text(content: unknown, place: string): string {
    const other = (part: JsonObject): string | undefined => {
      const type = textAt(part, 'type');
      if (type === 'image') this.#opaque.note(type, place);
      return type === 'thinking' || type === 'toolCall' ? '' : undefined;
    };
    return partsText(content, { place, onLoss: this.#onLoss, other });
  }

  #assistant(message: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const thoughts: string[] = [];
    const calls: RecordedEntry[] = [];
    for (const [index, block] of objectsAt(message, 'content').entries()) {
      if (textAt(block, 'type') === 'thinking') {
        const thinking = textAt(block, 'thinking') ?? '';
        if (thinking === '') this.#opaque.note('encrypted thoughts', common.place);
        else thoughts.push(thinking);
      } else if (textAt(block, 'type') === 'toolCall') calls.push(this.#call(block, common, index));
    }
    const reason = textAt(message, 'stopReason');
    const stopped = reason === 'aborted' || reason === 'error';
    return [
      {
        kind: 'message',
        ...common,
        role: 'assistant',
        origin: 'model',
        text: this.#text(message.content, common.place),
        thinking: thoughts.length === 0 ? undefined : thoughts.join('\n'),
        usage: usageOf(message),
      },
      ...calls,
      ...(stopped ? [{ kind: 'event' as const, ...common, name: reason, text: textAt(message, 'errorMessage') }] : []),
    ];
  }

  #call(block: JsonObject, common: EntryCommon, index: number): RecordedEntry {
    const id = idAt(block, 'id') ?? `call-at-${common.native_id}-${index}`;
    const tool = textAt(block, 'name') ?? '';
    const args = callArguments(block.arguments, common.place, this.#onLoss);
    this.#calls.set(id, { tool, args });
    return { kind: 'call', ...common, call_id: id, tool, args: { ...args } };
  }

  #result(message: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const id = idAt(message, 'toolCallId');
    if (id === undefined) {
      this.#onLoss({ reason: 'orphan-result', place: common.place, detail: 'a result that names no call: left out' });
      return [];
    }
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    const text = this.#text(message.content, common.place);
    const file = call?.tool === 'read' ? readEvidence(call.args, message, text) : undefined;
    const truncated = objectAt(objectAt(message, 'details'), 'truncation')?.truncated === true;
    return [
      {
        kind: 'result',
        ...common,
        call_id: id,
        text,
        is_error: message.isError === true,
        ...(truncated ? { truncated } : {}),
        ...fileEvidence(file === undefined ? [] : [file]),
      },
    ];
  }
}

function usageOf(message: JsonObject): EntryOf<'message'>['usage'] {
  const usage = objectAt(message, 'usage');
  const names = {
    input: 'input',
    output: 'output',
    cache_read: 'cacheRead',
    cache_write: 'cacheWrite',
    total: 'totalTokens',
  };
  if (usage === undefined) return undefined;
  return { ...usageAt(usage, names), ...usageAt(objectAt(usage, 'cost'), { cost: 'total' }) };
}

/** Returns a command that the person ran, in the form in which the model sees it. */
function bashExecutionText(message: JsonObject): string {
  const output = textAt(message, 'output') ?? '';
  const lines = [
    `Ran \`${textAt(message, 'command') ?? ''}\``,
    output === '' ? '(no output)' : `\`\`\`\n${output}\n\`\`\``,
  ];
  const code = numberAt(message, 'exitCode');
  if (message.cancelled === true) lines.push('(command cancelled)');
  else if (code !== undefined && code !== 0) lines.push(`Command exited with code ${code}`);
  if (message.truncated === true)
    lines.push(`[Output truncated. Full output: ${textAt(message, 'fullOutputPath') ?? 'not kept'}]`);
  return lines.join('\n');
}

/** Matches the note at the end of a `read` result that shows only a part of a file. */
const NOTE = /\n\n\[(?:\d+ more lines in file\. Use offset=\d+ to continue|Showing lines \d+-\d+ of (\d+)[^\]]*)\]$/;

/** Returns the evidence about the file in a `read` result. Undefined for a failed read. */
function readEvidence(args: JsonObject, message: JsonObject, text: string): ShownFile | undefined {
  const path = textAt(args, 'path');
  if (path === undefined || path === '' || message.isError === true) return undefined;
  const start = numberAt(args, 'offset') ?? 1;
  if (start < 1 || /^Read image file|^\[Line \d+ is/.test(text)) return namedFile(path);
  const cut = objectAt(objectAt(message, 'details'), 'truncation');
  const note = NOTE.exec(text);
  const bare = textAt(cut, 'content') ?? (note === null ? text : text.slice(0, note.index));
  const total = start === 1 ? numberAt(cut, 'totalLines') : undefined;
  const whole = note === null && cut === undefined && start === 1 && numberAt(args, 'limit') === undefined;
  return fileText(path, bare, { start, whole, total });
}
