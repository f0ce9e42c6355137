import { defined } from '../../../values/defined.js';
import { textAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import { recordingId } from '../entries/recording-id.js';
import type { Importer, OnLoss, RecordingSource } from '../importer.js';
import type { DocumentItem } from '../json/document-walk.js';
import { documentItems } from '../json/json-document.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import { headObject, headObjects } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { isDemonstration, promptedDir, SweAgentHistory } from './history.js';
import { StepsBeside } from './steps.js';

function recognise(source: RecordingSource): number {
  const head = headObject(source);
  if (head === undefined) return 0;
  const [step] = headObjects(head.trajectory);
  if (step !== undefined && 'action' in step && ('observation' in step || 'response' in step || 'thought' in step)) return 0.95;
  const history = headObjects(head.history);
  return history.some((item) => typeof item.role === 'string' && ('message_type' in item || 'agent' in item)) ? 0.9 : 0;
}

/** Items in front of the first action that are looked at before the session is told: its prompt and its folder stand in them. */
const MOST_OPENING_ITEMS = 64;

interface HistoryItem {
  readonly item: JsonObject;
  readonly place: string;
}

function opening(source: RecordingSource, items: readonly HistoryItem[], stepDir: string | undefined): EntryOf<'session'> {
  const cwd = items
    .filter(({ item }) => item.role !== 'system' && !isDemonstration(item))
    .map(({ item }) => promptedDir(partsText(item.content, '', () => undefined)))
    .findLast((dir) => dir !== undefined);
  const [first] = items;
  const isPrompt = first?.item.role === 'system';
  return {
    kind: 'session',
    format: 'swe-agent',
    native_id: recordingId(source),
    place: 'history',
    agent: 'SWE-agent',
    ...defined({
      agent_version: textAt(headInfo(source), 'swe_agent_version'),
      cwd: cwd ?? stepDir,
      system_prompt: isPrompt ? partsText(first.item.content, first.place, () => undefined) : undefined,
    }),
  };
}

function headInfo(source: RecordingSource): JsonObject | undefined {
  const info = headObject(source)?.info;
  return isJsonObject(info) ? info : undefined;
}

/** The prompts of the first step, for a trajectory without a history. */
async function* firstPrompts(source: RecordingSource): AsyncIterable<HistoryItem> {
  const shape = { items: ['trajectory.0.query.*', 'trajectory.0.messages.*', 'trajectory.1.action'] };
  for await (const { path, value } of documentItems(source.open(), shape, () => undefined)) {
    if (path[1] !== 0) return;
    if (isJsonObject(value) && value.role !== 'assistant') yield { item: value, place: `trajectory[0].${path[2]}[${path[3]}]` };
  }
}

async function* historyItems(items: AsyncIterable<DocumentItem>, exit: { status?: string }, onLoss: OnLoss): AsyncIterable<HistoryItem> {
  for await (const { path, value } of items) {
    if (path[0] === 'info') {
      if (typeof value === 'string') exit.status = value;
      continue;
    }
    const place = `history[${path[1]}]`;
    if (isJsonObject(value)) yield { item: value, place };
    else onLoss({ reason: 'malformed-record', place, detail: `a ${value === null ? 'null' : typeof value} where an object was expected` });
  }
}

/** The session and what stands in front of its first action. */
async function* begin(
  source: RecordingSource,
  prompts: readonly HistoryItem[],
  stepDir: string | undefined,
  onLoss: OnLoss,
): AsyncGenerator<RecordedEntry, SweAgentHistory> {
  const session = opening(source, prompts, stepDir);
  yield session;
  const history = new SweAgentHistory({ id: session.native_id, cwd: session.cwd }, onLoss);
  for (const { item, place } of session.system_prompt === undefined ? prompts : prompts.slice(1)) yield* history.heard(item, place);
  return history;
}

const isAction = (item: JsonObject): boolean => item.role === 'assistant' && item.is_demo !== true && item.message_type !== 'demonstration';

async function* entriesOf(source: RecordingSource, steps: StepsBeside, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const exit: { status?: string } = {};
  let cut = false;
  const told: OnLoss = (loss) => {
    cut ||= loss.reason === 'truncated-file' || loss.reason === 'malformed-record';
    onLoss(loss);
  };
  const items = documentItems(source.open(), { items: ['history.*', 'info.exit_status'] }, told);
  const opening: HistoryItem[] = [];
  let history: SweAgentHistory | undefined;
  for await (const { item, place } of historyItems(items, exit, onLoss)) {
    if (history === undefined && !isAction(item) && opening.length < MOST_OPENING_ITEMS) {
      opening.push({ item, place });
      continue;
    }
    history ??= yield* begin(source, opening, (await steps.peek())?.workingDir, onLoss);
    yield* isAction(item) ? history.acted(item, place, await steps.of(textAt(item, 'action') ?? '')) : history.heard(item, place);
  }
  const stepsLeft = cut || history === undefined;
  if (history === undefined && opening.length === 0) for await (const prompt of firstPrompts(source)) opening.push(prompt);
  history ??= yield* begin(source, opening, (await steps.peek())?.workingDir, onLoss);
  if (stepsLeft) yield* history.observed();
  for (let step = stepsLeft ? await steps.next() : undefined; step !== undefined; step = await steps.next()) yield* history.stepped(step);
  if (exit.status !== undefined) {
    yield { kind: 'event', session: recordingId(source), place: 'info.exit_status', name: 'exit', text: exit.status };
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const copies = ['trajectory.*.messages', 'trajectory.*.query', 'trajectory.*.extra_info'];
  const steps = new StepsBeside(documentItems(source.open(), { items: ['trajectory.*'], skip: copies }, () => undefined));
  try {
    yield* entriesOf(source, steps, onLoss);
  } finally {
    await steps.close();
  }
}

/**
 * Runs of SWE-agent (`*.traj`), 0.x and 1.x, with calls or with commands as text, with a history, a trajectory or both. The history is the transcript; the
 * trajectory gives the open file and the folder of each step, and the steps that a torn history lacks. The prompts that each step repeats are not read.
 */
export const sweAgent: Importer = { format: 'swe-agent', recognise, read };
