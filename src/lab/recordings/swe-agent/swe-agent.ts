import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { partsText } from '../entries/chat-message.js';
import { objectAt, textAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource } from '../importer.js';
import { type DocumentItem, documentItems } from '../json/json-document.js';
import { parseJson } from '../json/json-text.js';
import { headObject, headObjects, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { isDemonstration, promptedDir, SweAgentHistory, type SweAgentStep } from './history.js';

const named = (name: string | undefined): string | undefined =>
  name === undefined || name === '' || name === 'n/a' ? undefined : name;

function stepOf({ path, value }: DocumentItem): SweAgentStep {
  const step: JsonObject = isJsonObject(value) ? value : {};
  const given = typeof step.state === 'string' ? parseJson(step.state) : step.state;
  const state = isJsonObject(given) ? given : undefined;
  return {
    index: Number(path[1]),
    action: textAt(step, 'action') ?? '',
    observation: textAt(step, 'observation'),
    response: named(textAt(step, 'response')) ?? textAt(step, 'thought'),
    openFile: named(textAt(state, 'open_file')),
    workingDir: named(textAt(state, 'working_dir')),
  };
}

/** Number of next steps of the trajectory in which an action of the history is searched. */
const LOOK_AHEAD = 4;

/** Reads a trajectory's steps only when the history needs them, so that few steps are in memory. */
class StepReader {
  readonly #items: AsyncIterator<DocumentItem>;
  readonly #ahead: SweAgentStep[] = [];
  #ended = false;

  constructor(items: AsyncIterable<DocumentItem>) {
    this.#items = items[Symbol.asyncIterator]();
  }

  /** Returns the next step without removing it. */
  async peek(): Promise<SweAgentStep | undefined> {
    await this.#fill(1);
    return this.#ahead[0];
  }

  async next(): Promise<SweAgentStep | undefined> {
    await this.#fill(1);
    return this.#ahead.shift();
  }

  /**
   * Takes the step of an action and drops the steps before it. If no nearby step matches, returns
   * undefined and drops nothing.
   */
  async of(action: string): Promise<SweAgentStep | undefined> {
    for (let at = 0; at < LOOK_AHEAD; at += 1) {
      await this.#fill(at + 1);
      const step = this.#ahead[at];
      if (step === undefined) return undefined;
      if (step.action.trim() === action.trim()) {
        this.#ahead.splice(0, at + 1);
        return step;
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#items.return?.();
  }

  async #fill(count: number): Promise<void> {
    while (!this.#ended && this.#ahead.length < count) {
      const next = await this.#items.next();
      if (next.done === true) this.#ended = true;
      else this.#ahead.push(stepOf(next.value));
    }
  }
}

function recognise(source: RecordingSource): number {
  const head = headObject(source);
  if (head === undefined) return 0;
  const [step] = headObjects(head.trajectory);
  if (step !== undefined && 'action' in step && ('observation' in step || 'response' in step || 'thought' in step))
    return 0.95;
  const history = headObjects(head.history);
  return history.some((item) => typeof item.role === 'string' && ('message_type' in item || 'agent' in item)) ? 0.9 : 0;
}

/**
 * Maximum number of items before the first action that are kept in memory. The session entry takes
 * its prompt and folder from them.
 */
const MOST_OPENING_ITEMS = 64;

interface HistoryItem {
  readonly item: JsonObject;
  readonly place: string;
}

function opening(
  source: RecordingSource,
  items: readonly HistoryItem[],
  stepDir: string | undefined,
): EntryOf<'session'> {
  const cwd = items
    .filter(({ item }) => item.role !== 'system' && !isDemonstration(item))
    .map(({ item }) => promptedDir(partsText(item.content, { place: '', onLoss: () => undefined })))
    .findLast((dir) => dir !== undefined);
  const [first] = items;
  const isPrompt = first?.item.role === 'system';
  return {
    kind: 'session',
    format: 'swe-agent',
    native_id: recordingId(source),
    place: 'history',
    agent: 'SWE-agent',
    agent_version: textAt(objectAt(headObject(source), 'info'), 'swe_agent_version'),
    cwd: cwd ?? stepDir,
    system_prompt: isPrompt
      ? partsText(first.item.content, { place: first.place, onLoss: () => undefined })
      : undefined,
  };
}

/** Yields the prompts in the first step of a trajectory, if there is no history. */
async function* firstPrompts(source: RecordingSource): AsyncIterable<HistoryItem> {
  const shape = { items: ['trajectory.0.query.*', 'trajectory.0.messages.*', 'trajectory.1.action'] };
  for await (const { path, place, value } of documentItems(source.open(), shape, () => undefined)) {
    if (path[1] !== 0) return;
    if (isJsonObject(value) && value.role !== 'assistant') yield { item: value, place };
  }
}

async function* historyItems(
  items: AsyncIterable<DocumentItem>,
  exit: { status?: string | undefined },
  onLoss: OnLoss,
): AsyncIterable<HistoryItem> {
  for await (const { path, place, value } of items) {
    if (path[0] === 'info') exit.status = typeof value === 'string' ? value : exit.status;
    else if (isJsonObject(value)) yield { item: value, place };
    else onLoss(notAnObject(value, 'an object', place));
  }
}

/** Yields the session entry, followed by the entries before the first action. */
async function* begin(
  source: RecordingSource,
  { prompts, steps }: { readonly prompts: readonly HistoryItem[]; readonly steps: StepReader },
  onLoss: OnLoss,
): AsyncGenerator<RecordedEntry, SweAgentHistory> {
  const session = opening(source, prompts, (await steps.peek())?.workingDir);
  yield session;
  const history = new SweAgentHistory({ id: session.native_id, cwd: session.cwd }, onLoss);
  for (const { item, place } of session.system_prompt === undefined ? prompts : prompts.slice(1))
    yield* history.observed(item, place);
  return history;
}

const isAction = (item: JsonObject): boolean => item.role === 'assistant' && !isDemonstration(item);

async function* entriesOf(source: RecordingSource, steps: StepReader, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const exit: { status?: string | undefined } = {};
  let cut = false;
  const onItemLoss: OnLoss = (loss) => {
    cut ||= loss.reason === 'truncated-file' || loss.reason === 'malformed-record';
    onLoss(loss);
  };
  const items = documentItems(source.open(), { items: ['history.*', 'info.exit_status'] }, onItemLoss);
  const prompts: HistoryItem[] = [];
  let history: SweAgentHistory | undefined;
  for await (const { item, place } of historyItems(items, exit, onLoss)) {
    if (history === undefined && !isAction(item) && prompts.length < MOST_OPENING_ITEMS) {
      prompts.push({ item, place });
      continue;
    }
    history ??= yield* begin(source, { prompts, steps }, onLoss);
    yield* isAction(item)
      ? history.acted(item, place, await steps.of(textAt(item, 'action') ?? ''))
      : history.observed(item, place);
  }
  const stepsLeft = cut || history === undefined;
  if (history === undefined && prompts.length === 0)
    for await (const prompt of firstPrompts(source)) prompts.push(prompt);
  history ??= yield* begin(source, { prompts, steps }, onLoss);
  if (stepsLeft) yield* history.lastObservation();
  for (let step = stepsLeft ? await steps.next() : undefined; step !== undefined; step = await steps.next())
    yield* history.stepped(step);
  if (exit.status !== undefined) {
    yield { kind: 'event', session: recordingId(source), place: 'info.exit_status', name: 'exit', text: exit.status };
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const copies = ['trajectory.*.messages', 'trajectory.*.query', 'trajectory.*.extra_info'];
  const steps = new StepReader(
    documentItems(source.open(), { items: ['trajectory.*'], skip: copies }, () => undefined),
  );
  try {
    yield* entriesOf(source, steps, onLoss);
  } finally {
    await steps.close();
  }
}

/**
 * Reads runs of SWE-agent (`*.traj`), 0.x and 1.x, with tool calls or with commands as text. A run
 * has a history, a trajectory, or both.
 *
 * The history is the transcript. The trajectory adds each step's open file and folder, and the
 * steps that an incomplete history lacks. The prompts that every step repeats are skipped.
 */
export const sweAgent: Importer = { format: 'swe-agent', recognise, read };
