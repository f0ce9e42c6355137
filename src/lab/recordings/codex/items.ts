import { callArguments } from '../entries/call-arguments.js';
import type { EntryQueue } from '../entries/entry-queue.js';
import { idAt, objectAt, objectsAt, textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import type { OpaqueContent } from '../entries/opaque-content.js';
import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import type { EntryOf, ShownFile } from '../neutral-session.js';
import { exitCodeOf, isCut, isFailure } from './outputs.js';
import { callDirectory, originOf } from './session.js';

type Common = Pick<EntryOf<'event'>, 'session' | 'place' | 'at' | 'native_id' | 'copied'>;

/** A call without a result, and what events said of it so far. */
interface OpenCall {
  exitCode: number | undefined;
  files: readonly ShownFile[] | undefined;
}

/** What the items of a transcript are read with. */
export interface ItemContext {
  readonly queue: EntryQueue;
  readonly opaque: OpaqueContent;
  readonly onLoss: OnLoss;
  readonly calls: Map<string, OpenCall>;
  common: Common;
  sessionCwd: string | undefined;
  turnCwd: string | undefined;
  model: string | undefined;
  /** Thoughts that wait for the message behind them. */
  thinking: { readonly text: string; readonly common: Common } | undefined;
}

type ItemReader = (payload: JsonObject, common: Common) => void;

const ROLES: ReadonlyMap<string, EntryOf<'message'>['role']> = new Map([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['system', 'system'],
  ['developer', 'developer'],
]);

const textsOf = (payload: JsonObject, field: string): readonly string[] =>
  objectsAt(payload, field).flatMap((item) => textAt(item, 'text') ?? []);

/** The readers of the kinds of items. */
export function codexItems(context: ItemContext): Readonly<Record<string, ItemReader>> {
  const { queue, opaque, onLoss } = context;
  const text = (content: unknown, place: string): string =>
    partsText(content, place, onLoss, (part) => {
      if (textAt(part, 'type') === 'input_image') opaque.note('image', place);
      return undefined;
    });

  const message: ItemReader = (payload, common) => {
    const role = ROLES.get(textAt(payload, 'role') ?? '') ?? 'user';
    const said = text(payload.content, common.place);
    const thinking = role === 'assistant' ? context.thinking?.text : undefined;
    if (role === 'assistant') context.thinking = undefined;
    queue.push({ kind: 'message', ...common, role, origin: originOf(role, said), text: said, thinking });
  };

  const reasoning: ItemReader = (payload, common) => {
    const thoughts = [...textsOf(payload, 'summary'), ...textsOf(payload, 'content')].join('\n');
    if (thoughts === '') opaque.note('encrypted thoughts', common.place);
    else if (context.thinking === undefined) context.thinking = { text: thoughts, common };
    else context.thinking = { ...context.thinking, text: `${context.thinking.text}\n${thoughts}` };
  };

  const call = (payload: JsonObject, common: Common, tool: string, args: JsonObject): void => {
    const id = idAt(payload, 'call_id') ?? idAt(payload, 'id') ?? `call-at-${common.place.replace(' ', '-')}`;
    context.calls.set(id, { exitCode: undefined, files: undefined });
    const cwd = callDirectory(args, context.turnCwd);
    const elsewhere = cwd !== undefined && cwd !== context.sessionCwd;
    queue.push({ kind: 'call', ...common, call_id: id, tool, args: { ...args }, ...(elsewhere ? { cwd } : {}) });
  };

  const nameOf = (payload: JsonObject): string => textAt(payload, 'name') ?? '';

  const output: ItemReader = (payload, common) => {
    const id = idAt(payload, 'call_id');
    if (id === undefined) {
      onLoss({ reason: 'orphan-result', place: common.place, detail: 'an output that names no call: left out' });
      return;
    }
    const known = context.calls.get(id);
    context.calls.delete(id);
    const given = isJsonObject(payload.output) && !('type' in payload.output) ? payload.output.content : payload.output;
    const said = text(given ?? objectsAt(payload, 'tools').map((tool) => ({ type: 'text', text: JSON.stringify(tool) })), common.place);
    const code = exitCodeOf(said) ?? known?.exitCode;
    const failed = isFailure(said, code) || objectAt(payload, 'output')?.success === false;
    queue.push({
      kind: 'result',
      ...common,
      call_id: id,
      text: said,
      is_error: failed,
      ...(isCut(said) ? { truncated: true } : {}),
      ...(known?.files === undefined || known.files.length === 0 || failed ? {} : { files: [...known.files] }),
    });
  };

  const aside =
    (name: string): ItemReader =>
    (payload, common) =>
      queue.push({ kind: 'event', ...common, name, text: JSON.stringify(payload.action ?? payload.revised_prompt ?? null) });

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
    function_call: (payload, common) => call(payload, common, nameOf(payload), callArguments(payload.arguments, common.place, onLoss)),
    custom_tool_call: (payload, common) => {
      if (nameOf(payload) === 'exec') opaque.note('scripts of the code mode', common.place);
      call(payload, common, nameOf(payload), { input: textAt(payload, 'input') ?? '' });
    },
    local_shell_call: (payload, common) => call(payload, common, 'local_shell', objectAt(payload, 'action') ?? {}),
    tool_search_call: (payload, common) => call(payload, common, 'tool_search', callArguments(payload.arguments, common.place, onLoss)),
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
