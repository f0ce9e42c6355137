import { isAbsolute, join } from 'node:path/posix';
import { scriptOf, shellOutput } from '../../../foreign-tools/shell-call.js';
import { foreignTool } from '../../../foreign-tools/tool-table.js';
import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { callArguments, partsText, placeAsCallId } from '../entries/chat-message.js';
import { commandFailed } from '../entries/command-outcome.js';
import type { EntryQueue } from '../entries/entry-queue.js';
import { type EntryCommon, idAt, numberAt, objectAt, objectsAt, roleAt, textAt } from '../entries/fields.js';
import { fileEvidence, hunkPieces, namedFile, unifiedHunks, wholeFile } from '../entries/shown-file.js';
import type { OnLoss, OpaqueContent } from '../importer.js';
import { parseJson } from '../json/json-text.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';
import type { CountedAnswers } from './counted-answers.js';

/**
 * Returns a call's working directory, resolved against that of its turn. Without one, returns the
 * turn's. Windows paths are not resolved.
 */
function callDirectory(args: JsonObject, turn: string | undefined): string | undefined {
  const asked = textAt(args, 'workdir') ?? textAt(args, 'working_directory');
  if (asked === undefined || asked === '') return turn;
  if (isAbsolute(asked) || /^[A-Za-z]:[\\/]/.test(asked) || turn === undefined) return asked;
  return join(turn, asked);
}

const HARNESS_TAGS = [
  'environment_context',
  'permissions instructions',
  'user_instructions',
  'INSTRUCTIONS',
  'turn_aborted',
  'subagent_notification',
  'skill',
  'skills_instructions',
  'collaboration_mode',
  'user_shell_command',
  'model_switch',
  'personality_spec',
  'apps_instructions',
  'plugins_instructions',
  'realtime_conversation',
  'hook_prompt',
];
const HARNESS_TEXT = new RegExp(`^\\s*(?:<(?:${HARNESS_TAGS.join('|')})[\\s>]|# AGENTS\\.md instructions)`);

/** Returns the author of a message. */
export function originOf(role: EntryOf<'message'>['role'], text: string): EntryOf<'message'>['origin'] {
  if (role === 'assistant') return 'model';
  return role === 'user' && !HARNESS_TEXT.test(text) ? 'person' : 'harness';
}

const FAILED = new RegExp(
  '^(?:apply_patch verification failed|\\w+ failed(?: for|:)|unsupported call|failed to parse|' +
    'tool call error|aborted by user)',
  'i',
);
const EXIT = /^(?:Process exited with code|Exit code:) (-?\d+)$/m;
/** Number of characters of an output that are searched for the command's header. */
const HEADER_CHARS = 4000;
const CUT = /…\d+ (?:tokens|chars) truncated…|\[\.\.\. (?:omitted|removed) \d+ /;

/**
 * Returns the exit code in an output's header, or in the JSON of older versions. Undefined if there
 * is none.
 */
export function exitCodeOf(text: string): number | undefined {
  if (text.startsWith('{')) {
    const value = parseJson(text);
    return isJsonObject(value) ? numberAt(objectAt(value, 'metadata'), 'exit_code') : undefined;
  }
  const body = text.indexOf('\nOutput:');
  const header = body < 0 ? text.slice(0, HEADER_CHARS) : text.slice(0, body);
  const code = /^(?:Command: |Chunk ID: |Wall time: |Exit code: )/.test(header) ? EXIT.exec(header)?.[1] : undefined;
  return code === undefined ? undefined : Number(code);
}

function changedFile(path: string, change: JsonObject): readonly ShownFile[] {
  const content = textAt(change, 'content');
  const type = textAt(change, 'type');
  if (type === 'add' && content !== undefined) return [wholeFile(path, content, 'after')];
  if (type === 'delete') return content === undefined ? [] : [wholeFile(path, content, 'before')];
  const moved = textAt(change, 'move_path') ?? path;
  const pieces = unifiedHunks(textAt(change, 'unified_diff') ?? '').flatMap((hunk) => hunkPieces(path, hunk, moved));
  return pieces.length > 0 ? pieces : [namedFile(moved)];
}

/** Returns the files that a patch changed, from the event at its end. Empty if the patch failed. */
export function patchEvidence(payload: JsonObject): readonly ShownFile[] {
  if (payload.success === false) return [];
  return Object.entries(objectAt(payload, 'changes') ?? {}).flatMap(([path, change]) =>
    isJsonObject(change) && path !== '' ? changedFile(path, change) : [],
  );
}

/** A call without a result, with the data that events have reported about it. */
interface OpenCall {
  /** Whether the call runs a script, which makes further calls. */
  readonly script: boolean;
  /** The command line of a shell. */
  readonly command: string | undefined;
  exitCode: number | undefined;
  files: readonly ShownFile[] | undefined;
}

/** State shared by the readers of transcript items. */
export interface ItemContext {
  readonly queue: EntryQueue;
  readonly answers: CountedAnswers;
  readonly opaque: OpaqueContent;
  readonly onLoss: OnLoss;
  readonly calls: Map<string, OpenCall>;
  common: EntryCommon;
  sessionCwd: string | undefined;
  turnCwd: string | undefined;
  model: string | undefined;
  /** Thoughts that belong to the next message. */
  thinking: { readonly text: string; readonly common: EntryCommon } | undefined;
}

type ItemReader = (payload: JsonObject, common: EntryCommon) => void;

const textsOf = (payload: JsonObject, field: string): readonly string[] =>
  objectsAt(payload, field).flatMap((item) => textAt(item, 'text') ?? []);

/** Returns the reader for each kind of transcript item. */
export function codexItems(context: ItemContext): Readonly<Record<string, ItemReader>> {
  const { queue, answers, opaque, onLoss } = context;
  const text = (content: unknown, place: string): string => {
    const other = (part: JsonObject): undefined => {
      if (textAt(part, 'type') === 'input_image') opaque.note('image', place);
    };
    return partsText(content, { place, onLoss, other });
  };

  const message: ItemReader = (payload, common) => {
    const role = roleAt(payload) ?? 'user';
    const said = text(payload.content, common.place);
    const thinking = role === 'assistant' ? context.thinking?.text : undefined;
    if (role === 'assistant') context.thinking = undefined;
    const entry = { kind: 'message', ...common, role, origin: originOf(role, said), text: said, thinking } as const;
    if (role === 'assistant') return answers.message(entry);
    answers.end();
    queue.push(entry);
  };

  const reasoning: ItemReader = (payload, common) => {
    const thoughts = [...textsOf(payload, 'summary'), ...textsOf(payload, 'content')].join('\n');
    if (thoughts === '') opaque.note('encrypted thoughts', common.place);
    else if (context.thinking === undefined) context.thinking = { text: thoughts, common };
    else context.thinking = { ...context.thinking, text: `${context.thinking.text}\n${thoughts}` };
  };

  const call = (
    payload: JsonObject,
    common: EntryCommon,
    { tool, args }: { readonly tool: string; readonly args: JsonObject },
  ): void => {
    const id = idAt(payload, 'call_id') ?? idAt(payload, 'id') ?? placeAsCallId(common.place);
    const command = foreignTool(tool).kind === 'shell' ? scriptOf(args) : undefined;
    context.calls.set(id, { script: tool === 'exec', command, exitCode: undefined, files: undefined });
    const cwd = callDirectory(args, context.turnCwd);
    answers.call(common);
    const elsewhere = cwd !== undefined && cwd !== context.sessionCwd;
    queue.push({ kind: 'call', ...common, call_id: id, tool, args: { ...args }, ...(elsewhere ? { cwd } : {}) });
  };

  const called = (payload: JsonObject, common: EntryCommon, tool = textAt(payload, 'name') ?? ''): void =>
    call(payload, common, { tool, args: callArguments(payload.arguments, common.place, onLoss) });

  const output: ItemReader = (payload, common) => {
    const id = idAt(payload, 'call_id');
    if (id === undefined) {
      onLoss({ reason: 'orphan-result', place: common.place, detail: 'an output that names no call: left out' });
      return;
    }
    const known = context.calls.get(id);
    context.calls.delete(id);
    answers.result();
    const given = isJsonObject(payload.output) && !('type' in payload.output) ? payload.output.content : payload.output;
    const said = text(
      given ?? objectsAt(payload, 'tools').map((tool) => ({ type: 'text', text: JSON.stringify(tool) })),
      common.place,
    );
    const code = exitCodeOf(said) ?? known?.exitCode;
    const failed =
      (code === undefined && FAILED.test(said)) ||
      commandFailed(known?.command, { code, output: shellOutput(said).text }) ||
      objectAt(payload, 'output')?.success === false;
    queue.push({
      kind: 'result',
      ...common,
      call_id: id,
      text: said,
      is_error: failed,
      ...(CUT.test(said) ? { truncated: true } : {}),
      ...fileEvidence(failed ? [] : (known?.files ?? [])),
    });
  };

  const aside =
    (name: string): ItemReader =>
    (payload, common) =>
      queue.push({
        kind: 'event',
        ...common,
        name,
        text: JSON.stringify(payload.action ?? payload.revised_prompt ?? null),
      });

  const sealed: ItemReader = (_payload, common) => {
    opaque.note('encrypted summary', common.place);
    queue.push({ kind: 'compaction', ...common });
  };

  return {
    message,
    reasoning,
    agent_message: (payload, common) => {
      const said = text(payload.content ?? payload.message, common.place);
      queue.push({ kind: 'message', ...common, role: 'user', origin: 'harness', name: 'agent_message', text: said });
    },
    function_call: (payload, common) => called(payload, common),
    custom_tool_call: (payload, common) => {
      const tool = textAt(payload, 'name') ?? '';
      if (tool === 'exec') opaque.note('scripts of the code mode', common.place);
      call(payload, common, { tool, args: { input: textAt(payload, 'input') ?? '' } });
    },
    local_shell_call: (payload, common) =>
      call(payload, common, { tool: 'local_shell', args: objectAt(payload, 'action') ?? {} }),
    tool_search_call: (payload, common) => called(payload, common, 'tool_search'),
    function_call_output: output,
    custom_tool_call_output: output,
    mcp_tool_call_output: output,
    tool_search_output: output,
    web_search_call: aside('web-search'),
    image_generation_call: aside('image-generation'),
    compaction: sealed,
    context_compaction: sealed,
  };
}
