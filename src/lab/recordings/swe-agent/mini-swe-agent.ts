import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import {
  asChatMessage,
  type ChatCall,
  chatCalls,
  chatThinking,
  chatUsage,
  partsText,
  saysSomething,
  takeFirst,
} from '../entries/chat-message.js';
import { idAt, numberAt, objectAt, objectsAt, textAt } from '../entries/fields.js';
import { fileEvidence, printedFile } from '../entries/shown-file.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource, unknownRole } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { headObject, headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';

/** The result of a command. */
export interface CommandAnswer {
  /** The whole output, if recorded. The text that the model saw may be cut. */
  readonly output: string | undefined;
  readonly failed: boolean;
  readonly cut: boolean;
}

const RETURN_CODE = /^<returncode>(-?\d+)<\/returncode>/;
const OUTPUT = /<output>\n?([\s\S]*)<\/output>/;
const CUT = /<elided_chars>|<output_head>|<warning>\s*The output of your last command was too long/;
const FAILED = /^(?:<exception>|An error occurred|The last command <command>[\s\S]* timed out|Command timed out)/;

/** Reads a result from the text that the model saw, and from the raw output if it is recorded. */
function commandAnswer(text: string, extra: unknown): CommandAnswer {
  const more: JsonObject = isJsonObject(extra) ? extra : {};
  const code = typeof more.returncode === 'number' ? more.returncode : Number(RETURN_CODE.exec(text)?.[1] ?? 0);
  const raw = typeof more.raw_output === 'string' ? more.raw_output : undefined;
  const cut = CUT.test(text);
  return { output: raw ?? (cut ? undefined : OUTPUT.exec(text)?.[1]), failed: code !== 0 || FAILED.test(text), cut };
}

const BLOCK = /```(?:bash|sh|shell|mswea_bash_command)[^\S\n]*\n([\s\S]*?)\n?```/g;

/**
 * Returns the command in the only fenced block of a text. Undefined for no block, and for several
 * blocks, which the agent does not run.
 */
export function fencedCommand(text: string): string | undefined {
  const [first, ...more] = [...text.matchAll(BLOCK)];
  return more.length === 0 ? first?.[1]?.trim() : undefined;
}

const MARKS = /mswea_bash_command|COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT/;
const contentText = (message: JsonObject): string => partsText(message.content, { place: '', onLoss: () => undefined });

function recognise(source: RecordingSource): number {
  const { value, several } = recordingHead(source);
  if (several) return 0;
  if (isJsonObject(value) && /^mini-swe-agent/.test(textAt(value, 'trajectory_format') ?? '')) return 1;
  const messages = headObjects(isJsonObject(value) ? value.messages : value).filter(
    ({ role }) => typeof role === 'string',
  );
  const texts = messages.slice(0, 8).map(contentText);
  if (
    isJsonObject(value) &&
    objectAt(value, 'info') !== undefined &&
    'exit_status' in (objectAt(value, 'info') ?? {})
  ) {
    if (messages.length > 0 && texts.some((text) => MARKS.test(text) || /^<returncode>/.test(text))) return 0.97;
  }
  if (messages.length === 0) return 0;
  return texts.some((text) => /^<returncode>/.test(text)) && texts.some((text) => MARKS.test(text))
    ? 0.9
    : texts.some((text) => MARKS.test(text))
      ? 0.85
      : 0;
}

/** A call without a result. */
interface OpenCall {
  readonly id: string;
  readonly command: string | undefined;
  /**
   * Whether the call has an id in the recording. A result without an id never belongs to such a
   * call.
   */
  readonly named: boolean;
}

/** Converts the messages of a run to entries. */
class MiniSweMessages {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  /** Calls of the last answer that have no result yet. */
  #open: OpenCall[] = [];
  #asked = false;

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  entries(record: JsonObject, place: string): readonly RecordedEntry[] {
    const message = asChatMessage(record, { place, onLoss: this.#onLoss });
    if (!saysSomething(message, { place, onLoss: this.#onLoss })) return [];
    const role = textAt(message, 'role');
    if (role === 'assistant') return this.#answered(message, place);
    const text = partsText(message.content, { place, onLoss: this.#onLoss });
    const id = idAt(message, 'tool_call_id');
    if (role === 'exit') return this.#exit(message, text, place);
    if (role === 'tool' || id !== undefined || (role === 'user' && this.#open[0]?.named === false))
      return [this.#result(message, text, place)];
    if (role !== 'user' && role !== 'system') {
      this.#onLoss(unknownRole(message.role, place));
    }
    const origin = role === 'user' && !this.#asked ? 'person' : 'harness';
    this.#asked ||= role === 'user';
    return [
      { ...this.#common(message, place), kind: 'message', role: role === 'system' ? 'system' : 'user', origin, text },
    ];
  }

  #common(message: JsonObject, place: string): { session: string; place: string; at: number | undefined } {
    const seconds = numberAt(objectAt(message, 'extra'), 'timestamp');
    return { session: this.#session, place, at: seconds === undefined ? undefined : Math.round(seconds * 1000) };
  }

  #answered(message: JsonObject, place: string): readonly RecordedEntry[] {
    const common = this.#common(message, place);
    const text = partsText(message.content, { place, onLoss: this.#onLoss });
    const extra = objectAt(message, 'extra');
    const thinking = chatThinking(message);
    const usage = chatUsage(objectAt(extra, 'response') ?? message);
    const calls = this.#calls(message, text, place);
    this.#open = calls.map(({ id, args, place: at }) => ({ id, command: textAt(args, 'command'), named: id !== at }));
    const said: RecordedEntry = {
      ...common,
      kind: 'message',
      role: 'assistant',
      origin: 'model',
      text,
      thinking,
      usage,
    };
    return [said, ...calls.map(({ id, ...call }) => ({ ...common, kind: 'call' as const, call_id: id, ...call }))];
  }

  #calls(message: JsonObject, text: string, place: string): readonly ChatCall[] {
    const made = chatCalls(message, place, this.#onLoss);
    if (made.length > 0) return made;
    const actions = objectsAt(objectAt(message, 'extra'), 'actions').filter(
      ({ command }) => typeof command === 'string',
    );
    if (actions.length > 0) {
      return actions.map((action, index) => {
        const at = `${place}.extra.actions[${index}]`;
        return { id: idAt(action, 'tool_call_id') ?? at, tool: 'bash', args: { command: action.command }, place: at };
      });
    }
    const command = fencedCommand(text);
    return command === undefined ? [] : [{ id: place, tool: 'bash', args: { command }, place }];
  }

  #result(message: JsonObject, text: string, place: string): RecordedEntry {
    const id = idAt(message, 'tool_call_id');
    const call = takeFirst(this.#open, (one) => id === undefined || one.id === id);
    const { output, failed, cut } = commandAnswer(text, message.extra);
    const shown =
      call?.command === undefined || output === undefined || failed ? undefined : printedFile(call.command, output);
    return {
      ...this.#common(message, place),
      kind: 'result',
      call_id: call?.id ?? id ?? place,
      text,
      is_error: failed,
      ...(cut ? { truncated: true } : {}),
      ...fileEvidence(shown === undefined ? [] : [shown]),
    };
  }

  #exit(message: JsonObject, text: string, place: string): readonly RecordedEntry[] {
    const status = textAt(objectAt(message, 'extra'), 'exit_status');
    const event = { ...this.#common(message, place), kind: 'event', name: 'exit' } as const;
    return [{ ...event, text: [status, text].filter((part) => part !== undefined && part !== '').join('\n') }];
  }
}

function sessionOf(source: RecordingSource, system: string | undefined): EntryOf<'session'> {
  const head = headObject(source);
  const info = objectAt(head, 'info');
  const config = objectAt(info, 'config');
  return {
    kind: 'session',
    format: 'mini-swe-agent',
    native_id: recordingId(source),
    place: 'messages',
    agent: 'mini-swe-agent',
    agent_version: textAt(info, 'mini_version'),
    model: textAt(objectAt(config, 'model'), 'model_name'),
    cwd: textAt(objectAt(config, 'environment'), 'cwd') || undefined,
    system_prompt: system,
  };
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const messages = new MiniSweMessages(recordingId(source), onLoss);
  let begun = false;
  for await (const { path, value } of documentItems(source.open(), { items: ['messages.*', '*'] }, onLoss)) {
    const place = `messages[${path.at(-1)}]`;
    if (!isJsonObject(value)) {
      onLoss(notAnObject(value, 'a message', place));
      continue;
    }
    const prompt = !begun && value.role === 'system';
    if (!begun) yield sessionOf(source, prompt ? partsText(value.content, { place, onLoss }) : undefined);
    begun = true;
    if (!prompt) yield* messages.entries(value, place);
  }
  if (!begun) yield sessionOf(source, undefined);
}

/**
 * Reads runs of mini-swe-agent (`*.traj.json`), and older lists of messages. A command is a tool
 * call or a fenced block, and becomes a call of `bash`. Without an id, its result is the next
 * message.
 *
 * A result has the text that the model saw. If that text was cut, the raw output shows the file
 * that a plain command printed.
 */
export const miniSweAgent: Importer = { format: 'mini-swe-agent', recognise, read };
