import { posix } from 'node:path';
import type { JsonObject } from '../../../values/json-object.js';
import { type ChatCall, chatCalls, partsText, takeFirst } from '../entries/chat-message.js';
import { objectAt, objectsAt, textAt } from '../entries/fields.js';
import { fileEvidence, fileWindows, listedByEditor, numberedAnswer } from '../entries/shown-file.js';
import { type OnLoss, unknownRole } from '../importer.js';
import type { EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';
import { textCommand } from './command.js';

/** One step of a trajectory: an action and the observation after it. */
export interface SweAgentStep {
  readonly index: number;
  readonly action: string;
  readonly observation: string | undefined;
  readonly response: string | undefined;
  readonly openFile: string | undefined;
  readonly workingDir: string | undefined;
}

/** Makes the path of a file window or editor absolute, with the step's open file or its folder. */
function pathInStep(path: string, { openFile, workingDir }: Pick<SweAgentStep, 'openFile' | 'workingDir'>): string {
  if (path.startsWith('/')) return path;
  const bare = posix.normalize(path);
  if (openFile === bare || openFile?.endsWith(`/${bare}`) === true) return openFile;
  return workingDir === undefined ? path : posix.join(workingDir, path);
}

/** A call whose observation has not been read yet. */
interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly step: SweAgentStep | undefined;
}

const FAILED = new RegExp(
  '^(?:Your proposed edit has introduced|Your edit was not applied|EXECUTION TIMED OUT|COMMAND TIMED OUT|' +
    'Text not found|No file open|File .{1,300} not found|Error:|ERROR:|usage: )|' +
    'have NOT been applied|^No replacement was performed|^Invalid `',
  'm',
);
const OMITTED = /^Old environment output: \(\d+ lines? omitted\)/;
const CUT = /<response clipped>|\b\d+ (?:characters|lines) (?:were )?(?:elided|omitted)/;
const OPEN_FILE = /^\(Open file: (.+)\)$/m;
const CURRENT_DIR = /^\(Current directory: (.+)\)$/m;

/** Returns the folder that the prompt at the end of an observation shows. */
export const promptedDir = (text: string): string | undefined => CURRENT_DIR.exec(text)?.[1];

/** Returns whether an item belongs to the demonstration that precedes a run. */
export const isDemonstration = (item: JsonObject): boolean =>
  item.is_demo === true || item.message_type === 'demonstration';

/** Converts the history of a run to entries, item by item. */
export class SweAgentHistory {
  readonly #session: { readonly id: string; readonly cwd: string | undefined };
  readonly #onLoss: OnLoss;
  readonly #open: OpenCall[] = [];
  #workingDir: string | undefined;
  #spoken = false;

  constructor(session: { readonly id: string; readonly cwd: string | undefined }, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
    this.#workingDir = session.cwd;
  }

  /** Returns the entries of an item that is not an action, such as a prompt or an observation. */
  observed(item: JsonObject, place: string): readonly RecordedEntry[] {
    const role = textAt(item, 'role');
    const text = partsText(item.content, { place, onLoss: this.#onLoss });
    if (isDemonstration(item)) return [this.#demonstration(item, text, place)];
    const [id] = callIds(item);
    if (role === 'tool' || id !== undefined || (role === 'user' && this.#open.length > 0))
      return [this.#result(text, id, place)];
    if (role !== 'user' && role !== 'system') {
      this.#onLoss(unknownRole(item.role, place, 'an item'));
    }
    const first = role === 'user' && !this.#spoken;
    this.#spoken ||= role === 'user';
    return [
      this.#message({ role: role === 'system' ? 'system' : 'user', origin: first ? 'person' : 'harness', text, place }),
    ];
  }

  /** Returns the entries of an action. */
  acted(item: JsonObject, place: string, step: SweAgentStep | undefined): readonly RecordedEntry[] {
    this.#spoken = true;
    const text = partsText(item.content, { place, onLoss: this.#onLoss });
    const blocks = objectsAt(item, 'thinking_blocks').flatMap((block) => textAt(block, 'thinking') ?? []);
    const thinking = blocks.length === 0 ? undefined : blocks.join('\n\n');
    const said = { ...this.#message({ role: 'assistant', origin: 'model', text, place }), thinking };
    const calls = chatCalls(item, place, this.#onLoss);
    if (calls.length > 0) return [said, ...calls.map((call) => this.#call(call, step))];
    const action = textAt(item, 'action') ?? '';
    return action.trim() === '' ? [said] : [said, this.#call({ id: place, place, ...textCommand(action) }, step)];
  }

  /** Returns the entries of a step that is missing in the history. */
  stepped(step: SweAgentStep): readonly RecordedEntry[] {
    const place = `trajectory[${step.index}]`;
    const entries = [...this.acted({ content: step.response ?? '', action: step.action }, place, step)];
    if (step.observation !== undefined && this.#open.length > 0)
      entries.push(this.#result(step.observation, undefined, place));
    return entries;
  }

  /**
   * Returns the result of the last action, taken from its step, if the history ends with that
   * action.
   */
  lastObservation(): readonly RecordedEntry[] {
    const step = this.#open.at(0)?.step;
    return step?.observation === undefined
      ? []
      : [this.#result(step.observation, undefined, `trajectory[${step.index}]`)];
  }

  #message(said: Pick<EntryOf<'message'>, 'role' | 'origin' | 'text' | 'place'>): EntryOf<'message'> {
    return { kind: 'message', session: this.#session.id, ...said };
  }

  #demonstration(item: JsonObject, text: string, place: string): RecordedEntry {
    const calls = objectsAt(item, 'tool_calls').map((call) => JSON.stringify(objectAt(call, 'function') ?? call));
    const role = item.role === 'assistant' || item.role === 'system' ? item.role : 'user';
    return this.#message({
      role,
      origin: 'harness',
      text: [text, ...calls].filter((part) => part !== '').join('\n'),
      place,
    });
  }

  #call({ id, tool, args, place }: ChatCall, step: SweAgentStep | undefined): RecordedEntry {
    const cwd = this.#workingDir === this.#session.cwd ? undefined : this.#workingDir;
    this.#open.push({ id, tool, args, step });
    return { kind: 'call', session: this.#session.id, place, call_id: id, tool, args, cwd };
  }

  #result(text: string, id: string | undefined, place: string): RecordedEntry {
    const call = takeFirst(this.#open, (one) => id === undefined || one.id === id);
    const seen = OMITTED.test(text) ? (call?.step?.observation ?? text) : text;
    const openFile = OPEN_FILE.exec(text)?.[1];
    const state = {
      openFile: call?.step?.openFile ?? (openFile === 'n/a' ? undefined : openFile),
      workingDir: call?.step?.workingDir ?? promptedDir(text) ?? this.#workingDir,
    };
    const files = evidence(call, call?.step?.observation ?? seen).map((file) => ({
      ...file,
      path: pathInStep(file.path, state),
    }));
    const listed = call?.tool === 'str_replace_editor' ? listedByEditor(seen) : undefined;
    this.#workingDir = state.workingDir;
    return {
      kind: 'result',
      session: this.#session.id,
      place,
      call_id: call?.id ?? id ?? place,
      text: seen,
      is_error: FAILED.test(seen),
      ...(CUT.test(seen) ? { truncated: true } : {}),
      ...fileEvidence(files, listed),
    };
  }
}

function evidence(call: OpenCall | undefined, output: string): readonly ShownFile[] {
  const windows = fileWindows(output);
  if (call?.tool !== 'str_replace_editor') return windows;
  const whole = call.args.command === 'view' && call.args.view_range === undefined;
  return [...windows, ...numberedAnswer(output, { path: textAt(call.args, 'path'), whole })];
}

/** Yields the ids of the calls that an item answers. */
function* callIds(item: JsonObject): Iterable<string> {
  const ids = Array.isArray(item.tool_call_ids) ? item.tool_call_ids : [item.tool_call_id];
  for (const id of ids) if (typeof id === 'string' && id !== '') yield id;
}
