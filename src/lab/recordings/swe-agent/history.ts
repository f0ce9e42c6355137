import { defined } from '../../../values/defined.js';
import { chatCalls } from '../entries/chat-calls.js';
import { objectAt, objectsAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import { fileWindows, listedByEditor, numberedAnswer } from '../evidence/shown-file.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf, RecordedEntry, ShownFile } from '../neutral-session.js';
import { textCommand } from './command.js';
import { pathInStep, type SweAgentStep } from './steps.js';

/** A call that waits for its observation. */
interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly step: SweAgentStep | undefined;
}

const FAILED =
  /^(?:Your proposed edit has introduced|Your edit was not applied|EXECUTION TIMED OUT|COMMAND TIMED OUT|Text not found|No file open|File .{1,300} not found|Error:|ERROR:|usage: )|have NOT been applied|^No replacement was performed|^Invalid `/m;
const OMITTED = /^Old environment output: \(\d+ lines? omitted\)/;
const CUT = /<response clipped>|\b\d+ (?:characters|lines) (?:were )?(?:elided|omitted)/;
const OPEN_FILE = /^\(Open file: (.+)\)$/m;
const CURRENT_DIR = /^\(Current directory: (.+)\)$/m;

/** The folder that the prompt behind an observation names. */
export const promptedDir = (text: string): string | undefined => CURRENT_DIR.exec(text)?.[1];

/** Whether an item was put in front of the run to show how it is done. */
export const isDemonstration = (item: JsonObject): boolean => item.is_demo === true || item.message_type === 'demonstration';

/** Turns the history of a run, item by item, into entries. */
export class SweAgentHistory {
  private readonly open: OpenCall[] = [];
  private workingDir: string | undefined;
  private spoken = false;

  constructor(
    private readonly session: { readonly id: string; readonly cwd: string | undefined },
    private readonly onLoss: OnLoss,
  ) {
    this.workingDir = session.cwd;
  }

  /** Whether an action has no observation yet. */
  get waiting(): boolean {
    return this.open.length > 0;
  }

  /** The entries of an item that is no action. */
  heard(item: JsonObject, place: string): readonly RecordedEntry[] {
    const role = textAt(item, 'role');
    const text = partsText(item.content, place, this.onLoss);
    if (isDemonstration(item)) return [this.demonstration(item, text, place)];
    const ids = [...objectsOrIds(item)];
    if (role === 'tool' || ids.length > 0 || (role === 'user' && this.waiting)) return [this.result(text, ids[0], place)];
    if (role !== 'user' && role !== 'system') {
      this.onLoss({
        reason: 'unknown-record',
        place,
        detail: `an item with the role ${JSON.stringify(item.role)}: kept as what the program said`,
      });
    }
    const first = role === 'user' && !this.spoken;
    this.spoken ||= role === 'user';
    return [this.message(role === 'system' ? 'system' : 'user', first ? 'person' : 'harness', text, place)];
  }

  /** The entries of an action. */
  acted(item: JsonObject, place: string, step: SweAgentStep | undefined): readonly RecordedEntry[] {
    this.spoken = true;
    const text = partsText(item.content, place, this.onLoss);
    const thinking = objectsAt(item, 'thinking_blocks').flatMap((block) => textAt(block, 'thinking') ?? []);
    const message = this.message('assistant', 'model', text, place);
    const said: readonly RecordedEntry[] = [thinking.length === 0 ? message : { ...message, thinking: thinking.join('\n\n') }];
    const calls = chatCalls(item, place, this.onLoss);
    if (calls.length > 0) return [...said, ...calls.map((call) => this.begun(call.id, call.tool, call.args, call.place, step))];
    const action = textAt(item, 'action') ?? '';
    return action.trim() === '' ? said : [...said, this.command(action, place, step)];
  }

  /** The entries of a step that the history does not tell. */
  stepped(step: SweAgentStep): readonly RecordedEntry[] {
    const place = `trajectory[${step.index}]`;
    const entries = [...this.acted({ content: step.response ?? '', action: step.action }, place, step)];
    if (step.observation !== undefined && this.waiting) entries.push(this.result(step.observation, undefined, place));
    return entries;
  }

  /** The observation of the last action where the history ends in front of it. */
  observed(): readonly RecordedEntry[] {
    const step = this.open.at(0)?.step;
    return step?.observation === undefined ? [] : [this.result(step.observation, undefined, `trajectory[${step.index}]`)];
  }

  private message(role: EntryOf<'message'>['role'], origin: EntryOf<'message'>['origin'], text: string, place: string): EntryOf<'message'> {
    return { kind: 'message', session: this.session.id, place, role, origin, text };
  }

  private demonstration(item: JsonObject, text: string, place: string): RecordedEntry {
    const calls = objectsAt(item, 'tool_calls').map((call) => JSON.stringify(objectAt(call, 'function') ?? call));
    const role = item.role === 'assistant' || item.role === 'system' ? item.role : 'user';
    return this.message(role, 'harness', [text, ...calls].filter((part) => part !== '').join('\n'), place);
  }

  private command(action: string, place: string, step: SweAgentStep | undefined): RecordedEntry {
    const { tool, args } = textCommand(action);
    return this.begun(place, tool, args, place, step);
  }

  private begun(id: string, tool: string, args: JsonObject, place: string, step: SweAgentStep | undefined): RecordedEntry {
    const cwd = this.workingDir === this.session.cwd ? undefined : this.workingDir;
    this.open.push({ id, tool, args, step });
    return { kind: 'call', session: this.session.id, place, call_id: id, tool, args, ...defined({ cwd }) };
  }

  private result(text: string, id: string | undefined, place: string): RecordedEntry {
    const at = id === undefined ? 0 : this.open.findIndex((call) => call.id === id);
    const [call] = at < 0 ? [] : this.open.splice(at, 1);
    const seen = OMITTED.test(text) ? (call?.step?.observation ?? text) : text;
    const openFile = OPEN_FILE.exec(text)?.[1];
    const state = {
      openFile: call?.step?.openFile ?? (openFile === 'n/a' ? undefined : openFile),
      workingDir: call?.step?.workingDir ?? promptedDir(text) ?? this.workingDir,
    };
    const files = evidence(call, call?.step?.observation ?? seen).map((file) => ({ ...file, path: pathInStep(file.path, state) }));
    const listed = call?.tool === 'str_replace_editor' ? listedByEditor(seen) : undefined;
    this.workingDir = state.workingDir;
    return {
      kind: 'result',
      session: this.session.id,
      place,
      call_id: call?.id ?? id ?? place,
      text: seen,
      is_error: FAILED.test(seen),
      ...(CUT.test(seen) ? { truncated: true } : {}),
      ...(files.length === 0 ? {} : { files }),
      ...defined({ listed: listed === undefined ? undefined : [...listed] }),
    };
  }
}

function evidence(call: OpenCall | undefined, output: string): readonly ShownFile[] {
  const windows = fileWindows(output);
  if (call?.tool !== 'str_replace_editor') return windows;
  const whole = call.args.command === 'view' && call.args.view_range === undefined;
  return [...windows, ...numberedAnswer(output, { path: textAt(call.args, 'path'), whole })];
}

function* objectsOrIds(item: JsonObject): Iterable<string> {
  const ids = Array.isArray(item.tool_call_ids) ? item.tool_call_ids : [item.tool_call_id];
  for (const id of ids) if (typeof id === 'string' && id !== '') yield id;
}
