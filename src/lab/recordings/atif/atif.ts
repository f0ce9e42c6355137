import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { partsText } from '../entries/chat-message.js';
import { idAt, momentOf, objectAt, objectsAt, textAt, usageAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource, unknownRole } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { headObject, recordingId } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';

const VERSION = /^ATIF-v1\.\d+$/;

const recognise = (source: RecordingSource): number =>
  VERSION.test(textAt(headObject(source), 'schema_version') ?? '') ? 0.95 : 0;

/** Roles and origins of a step, by its source. */
const SPEAKERS = {
  user: { role: 'user', origin: 'person' },
  agent: { role: 'assistant', origin: 'model' },
  system: { role: 'system', origin: 'harness' },
} as const;

const USAGE = { input: 'prompt_tokens', output: 'completion_tokens', cache_read: 'cached_tokens', cost: 'cost_usd' };

/** Converts the steps of one trajectory to entries. */
class AtifSteps {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  readonly #open = new Set<string>();

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  *step(step: JsonObject, place: string): Iterable<RecordedEntry> {
    const source = textAt(step, 'source');
    if (source !== 'user' && source !== 'agent' && source !== 'system')
      this.#onLoss(unknownRole(step.source, place, 'a step'));
    const speaker = source === 'user' || source === 'agent' ? SPEAKERS[source] : SPEAKERS.system;
    const copied = step.is_copied_context === true ? { copied: true } : {};
    const common = { session: this.#session, place, at: momentOf(step.timestamp), ...copied };
    const id = idAt(step, 'step_id');
    const thinking = textAt(step, 'reasoning_content');
    const usage = usageAt(objectAt(step, 'metrics'), USAGE);
    const said = source === 'agent' ? { thinking, usage } : {};
    const text = partsText(step.message, { place, onLoss: this.#onLoss });
    yield { ...common, native_id: id, kind: 'message', ...speaker, text, ...said };
    for (const [i, call] of objectsAt(step, 'tool_calls').entries()) {
      const at = `${place}.tool_calls[${i}]`;
      const call_id = idAt(call, 'tool_call_id') ?? at;
      this.#open.add(call_id);
      const args = objectAt(call, 'arguments') ?? { input: JSON.stringify(call.arguments ?? null) };
      yield {
        ...common,
        kind: 'call',
        place: at,
        call_id,
        tool: textAt(call, 'function_name') ?? 'unknown',
        args,
      } as const;
    }
    for (const [i, result] of objectsAt(objectAt(step, 'observation'), 'results').entries()) {
      const at = `${place}.observation.results[${i}]`;
      // An observation without an id belongs to the oldest open call.
      const [oldest] = this.#open;
      const call_id = idAt(result, 'source_call_id') ?? oldest ?? at;
      this.#open.delete(call_id);
      const output = partsText(result.content, { place: at, onLoss: this.#onLoss });
      const is_error = objectAt(result, 'extra')?.is_error === true || /^Error\b/.test(output);
      yield { ...common, kind: 'result', place: at, call_id, text: output, is_error };
    }
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const head = headObject(source);
  const agent = objectAt(head, 'agent');
  const native_id = idAt(head, 'session_id') ?? recordingId(source);
  yield {
    kind: 'session',
    format: 'atif',
    native_id,
    place: 'header',
    agent: textAt(agent, 'name'),
    agent_version: textAt(agent, 'version'),
    model: textAt(agent, 'model_name'),
    cwd: textAt(objectAt(agent, 'extra'), 'cwd'),
  };
  const steps = new AtifSteps(native_id, onLoss);
  for await (const { place, value } of documentItems(source.open(), { items: ['steps.*'] }, onLoss)) {
    if (isJsonObject(value)) yield* steps.step(value, place);
    else onLoss(notAnObject(value, 'a step', place));
  }
}

/**
 * Reads trajectories in the Agent Trajectory Interchange Format, versions 1.x to 1.7. It does not
 * read a sub-agent's trajectory inside another trajectory.
 */
export const atif: Importer = { format: 'atif', recognise, read };
