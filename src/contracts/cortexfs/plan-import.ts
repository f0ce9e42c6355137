import { basename } from 'node:path';
import { fileObjectId } from '../../client/file-access.js';
import { DocumentError } from '../../objects/errors.js';
import { hashText } from '../../objects/hashes.js';
import { type ObjectId, type SessionId, sessionId } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { SessionError } from '../../session/errors.js';
import { applyStep, emptySession } from '../../session/session-state.js';
import { isJsonObject } from '../../values/json-object.js';
import { nativeId } from '../projection/measured-entries.js';
import { linesOf } from './check-file.js';
import { CortexfsError } from './errors.js';
import { importedSteps, openHandoffs } from './imported-steps.js';
import { isPalimpsestLine, PALIMPSEST_FILE, type PalimpsestLine, readPalimpsestLine } from './palimpsest-file.js';
import type { ExactStep, PlannedCall, PlannedStep } from './planned-step.js';
import { eventsIn, placedEvents, type ToldApproval, toldApprovals, toldCalls } from './read-events.js';
import { type AnnouncedCall, argumentsOf, type Fields, readMessages } from './read-messages.js';
import { type NotedRecord, readNotes } from './read-notes.js';
import { nameFor } from './session-paths.js';

type OwnLine<Kind extends PalimpsestLine['kind']> = Extract<PalimpsestLine, { readonly kind: Kind }>;

/** The plan of an import, made from the files of a session directory alone. */
export interface ImportPlan {
  readonly prompt: { readonly text: string; readonly at: number | undefined } | undefined;
  readonly messages: readonly string[];
  readonly events: readonly string[];
  /** The steps in order. Steps that represent files come last. */
  readonly steps: readonly PlannedStep[];
  /** For each line of `events.jsonl`, the number of planned steps before it. */
  readonly eventPlaces: readonly number[];
  readonly files: readonly OwnLine<'file'>['file'][];
  /** The records of our own export, unchanged. */
  readonly records: readonly OwnLine<'record'>['record'][];
  readonly approvals: readonly ToldApproval[];
  readonly notes: readonly NotedRecord[];
  /** Calls without a result. */
  readonly open: readonly AnnouncedCall[];
  /** All other files, by path. */
  readonly derived: ReadonlyMap<string, string>;
  readonly hasOwn: boolean;
}

/** Returns the session of a directory: the one named in our export, otherwise the folder's name. */
export function sessionOf(folder: string, files: ReadonlyMap<string, string>): SessionId {
  const meta: unknown = JSON.parse(files.get('meta.json') ?? 'null');
  const own = isJsonObject(meta) && isJsonObject(meta.palimpsest) ? meta.palimpsest.session : undefined;
  const name = typeof own === 'string' ? own : basename(folder);
  try {
    return sessionId(name);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new CortexfsError(
      'no-session',
      `${JSON.stringify(name)} is not a valid session name: name the session with --session`,
    );
  }
}

interface OwnFile {
  readonly head: OwnLine<'head'> | undefined;
  readonly steps: readonly OwnLine<'step'>[];
  readonly files: readonly OwnLine<'file'>['file'][];
  readonly records: readonly OwnLine<'record'>['record'][];
}

const refused = (line: number, field: string, message: string): CortexfsError =>
  new CortexfsError(
    'invalid-file',
    `${PALIMPSEST_FILE}, line ${line}: ${field}: ${message}; remove the file to import without it`,
  );

/** Reads `context/palimpsest.jsonl`, whose lines were checked. It must match `messages.jsonl`. */
function readOwn(text: string | undefined, messages: readonly string[]): OwnFile {
  const lines = linesOf(text ?? '')
    .map((line, i) => readPalimpsestLine(line, i === 0))
    .filter(isPalimpsestLine);
  const of = <Kind extends PalimpsestLine['kind']>(kind: Kind) =>
    lines.filter((line): line is OwnLine<Kind> => line.kind === kind);
  const [head] = of('head');
  if (head !== undefined) {
    const { lines: covered, sha256 } = head;
    if (covered > messages.length)
      throw refused(1, 'lines', `it covers ${covered} lines, and messages.jsonl has ${messages.length}`);
    if (
      hashText(
        messages
          .slice(0, covered)
          .map((line) => `${line}\n`)
          .join(''),
      ) !== sha256
    )
      throw refused(1, 'sha256', 'it belongs to messages that differ from messages.jsonl');
  }
  const steps = of('step');
  for (const [i, { step }] of steps.entries())
    if (step.seq !== i + 1) throw refused(i + 2, 'step.seq', `it is ${step.seq}, but the next step is ${i + 1}`);
  return { head, steps, files: of('file').map(({ file }) => file), records: of('record').map(({ record }) => record) };
}

const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function exactCall({ step, lines = [], made }: OwnLine<'step'>, messages: readonly string[]): PlannedCall {
  const id = nativeId(step.call?.id as ObjectId);
  if (made !== undefined) return { id, ...made, args: made.args as PlannedCall['args'] };
  const [call, result] = lines.map((line) => JSON.parse(messages[line - 1] ?? '{}') as Fields);
  const [told] = Array.isArray(call?.tool_calls) ? (call.tool_calls as readonly Fields[]) : [];
  const [part] = Array.isArray(result?.content) ? (result.content as readonly Fields[]) : [];
  if (told === undefined || part?.type !== 'tool_result')
    throw refused(step.seq + 1, 'lines', 'they are not a call with its result in messages.jsonl');
  const content = textIn(part.content) ?? '';
  return {
    id,
    tool: textIn(told.own_name) ?? textIn(told.name) ?? 'unknown',
    args: argumentsOf(told.arguments),
    status: result?.status === 'fail' ? 'fail' : 'ok',
    content: result?.has_text === false ? null : content,
  };
}

/** Returns a step of our own export with the text of its lines. */
function exactStep(own: OwnLine<'step'>, messages: readonly string[]): PlannedStep {
  const { step, lines = [], files = [], said } = own;
  const exact = { step: step as unknown as ExactStep, files };
  const wrong = lines.find((line) => line > messages.length);
  if (wrong !== undefined) throw refused(step.seq + 1, 'lines', `messages.jsonl has no line ${wrong}`);
  if (step.message !== undefined) {
    const text = said ?? textIn((JSON.parse(messages[(lines[0] ?? 0) - 1] ?? '{}') as Fields).content);
    if (text === undefined) throw refused(step.seq + 1, 'lines', 'no line has the text of the message');
    return { lines, message: { ...step.message, text } as PlannedStep['message'] & object, native: step.native, exact };
  }
  return step.call === undefined ? { lines: [], exact } : { lines, call: exactCall(own, messages), exact };
}

/** The part of a directory to plan: numbers of raw lines, and the last exported step. */
export interface ImportPart {
  readonly messages: number;
  readonly events: number;
  readonly step: number;
}

/** Maximum number of pending calls. Every read of the session loads a record for each. */
const MOST_OPEN = 10_000;

/** @throws {CortexfsError} `too-large` */
function requireFew(open: readonly AnnouncedCall[]): readonly AnnouncedCall[] {
  if (open.length <= MOST_OPEN) return open;
  throw new CortexfsError(
    'too-large',
    `${open.length} calls of the directory have no result in messages.jsonl or a child's result.md, ` +
      `and at most ${MOST_OPEN} can be pending: add the results, or leave out abandoned calls; nothing was changed`,
  );
}

const WHOLE: ImportPart = {
  messages: Number.POSITIVE_INFINITY,
  events: Number.POSITIVE_INFINITY,
  step: Number.POSITIVE_INFINITY,
};

/** Checks that every object in the exported sets exists, as a call of a step or as a file. */
function checkObjects({ steps, files }: OwnFile): void {
  const known = new Set<string>(files.map(({ source }) => fileObjectId(parseSource(source) as FilesystemSource)));
  for (const { step, files: named = [] } of steps) {
    if (step.call !== undefined) known.add(step.call.id);
    const lost = [...Object.values(step.changes).flat(), ...named].find((id) => id !== undefined && !known.has(id));
    if (lost !== undefined) throw refused(step.seq + 1, 'step.changes', `there is no object ${JSON.stringify(lost)}`);
  }
}

/** Checks that the steps form a valid session: turns, times, and sets of indexed objects. */
function checkFold(exact: readonly PlannedStep[], { head }: OwnFile): void {
  const session = (head?.session ?? '') as SessionId;
  let state = emptySession(session);
  for (const [i, { exact: own, message }] of exact.entries()) {
    try {
      state = applyStep(state, { session, ...own?.step, message } as Step);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      throw refused(i + 2, 'step', error.message);
    }
  }
}

/**
 * Plans the import of a session directory or its beginning: the steps of our own export unchanged,
 * and other steps from its messages and events. Pure.
 * @throws {CortexfsError} `invalid-file`
 * @throws {CortexfsError} `too-large` if too many calls are pending
 */
export function planImport(files: ReadonlyMap<string, string>, part: ImportPart = WHOLE): ImportPlan {
  const all = linesOf(files.get('messages.jsonl') ?? '');
  const own = readOwn(files.get(PALIMPSEST_FILE), all);
  checkObjects(own);
  const messages = all.slice(0, part.messages);
  const events = linesOf(files.get('events.jsonl') ?? '').slice(0, part.events);
  const told = eventsIn(events);
  const system = files.get('context/pinned/system.md') ?? '';
  const exact = own.steps.filter(({ step }) => step.seq <= part.step).map((step) => exactStep(step, messages));
  checkFold(exact, own);
  const covered = Math.min(own.head?.lines ?? 0, messages.length);
  const hasPrompt = system !== '' || covered > 0;
  const read = readMessages(messages.slice(covered), { first: covered + 1, told: toldCalls(told), hasPrompt });
  // `by` is an index into the steps read from messages. In the plan, the exported steps precede
  // them.
  const later = read.steps.map((step) =>
    step.call?.by === undefined ? step : { ...step, call: { ...step.call, by: step.call.by + exact.length } },
  );
  const steps = [...exact, ...later, ...importedSteps(files, [...exact, ...later])];
  const eventPlaces = placedEvents(told, steps, nameFor);
  const prompt = system === '' ? read.leading.join('\n\n') : system;
  const derived = new Map([...files].filter(([path]) => !RAW.has(path)));
  const hasOwn = own.head !== undefined;
  return {
    prompt: prompt === '' ? undefined : { text: prompt.toWellFormed(), at: own.head?.prompt_at },
    messages,
    events,
    steps,
    eventPlaces,
    files: own.files,
    records: own.records,
    // If we exported the directory, its own records contain the approvals with their times.
    approvals: hasOwn ? [] : toldApprovals(told, eventPlaces),
    notes: readNotes(files, own.records),
    open: requireFew([
      ...read.open.map((call) => ({ ...call, behind: (call.behind ?? 0) + exact.length })),
      ...openHandoffs(files),
    ]),
    derived,
    hasOwn,
  };
}

const RAW: ReadonlySet<string> = new Set(['messages.jsonl', 'events.jsonl', PALIMPSEST_FILE]);
