import { canonicalJson } from '../../objects/canonical-json.js';
import { keptArgs } from '../../objects/kept-args.js';
import { abridge, isLargeText } from '../../objects/large-text.js';
import type { Step } from '../../objects/step.js';
import type { ResultEntry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import { CortexfsError } from './errors.js';
import { answeredCalls } from './event-lines.js';
import { isImportedCall, isOfChat } from './imported-steps.js';
import { type KeptImport, stepMark, wholeLine } from './kept-import.js';
import type { ImportPlan } from './plan-import.js';
import type { PlannedCall, PlannedStep } from './planned-step.js';

/** The stored session with which a directory is compared. */
export interface ExistingSession {
  readonly steps: readonly Step[];
  /** Undefined if the session does not exist. */
  readonly projection: Projection | undefined;
  readonly kept: readonly KeptImport[];
}

/** How a directory continues a session, and which part of it the session already has. */
export interface Continuation {
  /** For each planned step, its step number in the session, or the number that it will get. */
  readonly seqs: readonly number[];
  /** Indexes of the planned steps that the session lacks. */
  readonly missing: readonly number[];
  /** The number of lines of each raw file that the session already has. */
  readonly messages: number;
  readonly events: number;
  /** True if the session has lines that the directory lacks. */
  readonly isOlder: boolean;
}

/** The compared fields of a call. */
interface ExistingCall extends Pick<ResultEntry, 'native' | 'tool' | 'status' | 'text'> {
  readonly argsText: string;
}

const storedText = (text: string | null): string | null =>
  text !== null && isLargeText(text) ? abridge(text).content : text;

function isSameCall({ tool, args, status, content }: PlannedCall, call: ExistingCall): boolean {
  const kept = keptArgs(args);
  return (
    tool === call.tool &&
    status === call.status &&
    storedText(content) === call.text &&
    (kept.text?.text ?? canonicalJson(kept.args)) === call.argsText
  );
}

/** Returns a hash of a planned step's content, for comparing steps. */
export const plannedMark = ({ message, call }: PlannedStep): string =>
  stepMark(
    message ??
      (call === undefined ? undefined : { tool: call.tool, status: call.status, text: storedText(call.content) }),
  );

/** The texts of all steps of a session, for comparison. */
export class ComparedSteps {
  readonly #calls: ReadonlyMap<number, ExistingCall>;
  readonly #steps: readonly Step[];
  /** The last step of each imported call, by the call's id with and without the `~` suffix. */
  readonly #imported = new Map<string, number>();

  constructor({ steps, projection }: Pick<ExistingSession, 'steps' | 'projection'>) {
    const entries = projection?.entries ?? [];
    const calls = answeredCalls(entries);
    this.#steps = steps;
    this.#calls = new Map(
      entries.flatMap((entry) =>
        entry.kind === 'result'
          ? [[entry.seq, { ...entry, argsText: calls.get(entry.id)?.argsText ?? '{}' }] as const]
          : [],
      ),
    );
    for (const [seq, { tool, native }] of this.#calls) {
      if (!isImportedCall(tool, native)) continue;
      this.#imported.set(native, seq);
      for (let end = native.indexOf('~'); end >= 0; end = native.indexOf('~', end + 1))
        this.#imported.set(native.slice(0, end), seq);
    }
  }

  /** Returns the text of a step: its message or the result of its call. */
  text(seq: number): string | null | undefined {
    return this.#steps[seq - 1]?.message?.text ?? this.#calls.get(seq)?.text;
  }

  isSame(planned: PlannedStep, { seq, message }: Step): boolean {
    const call = this.#calls.get(seq);
    if (planned.message !== undefined)
      return (
        message !== undefined &&
        message.role === planned.message.role &&
        message.text === planned.message.text &&
        message.name === planned.message.name
      );
    return planned.call !== undefined && call !== undefined && isSameCall(planned.call, call);
  }

  /** Returns a hash of a step's content; undefined if the step does not exist. */
  mark(seq: number): string | undefined {
    const step = this.#steps[seq - 1];
    return step === undefined ? undefined : stepMark(step.message ?? this.#calls.get(seq));
  }

  /** Returns true if an import made the step to represent a file. */
  isImported(seq: number): boolean {
    const call = this.#calls.get(seq);
    return call !== undefined && isImportedCall(call.tool, call.native);
  }

  /**
   * Returns the step of the equal call that an earlier import stored; undefined if there is none.
   */
  imported({ id = '', ...call }: PlannedCall): number | undefined {
    const seq = this.#imported.get(id);
    const found = seq === undefined ? undefined : this.#calls.get(seq);
    return found !== undefined && isSameCall({ id, ...call }, found) ? seq : undefined;
  }
}

function conflict(file: string, line: number, what: string): CortexfsError {
  return new CortexfsError(
    'conflict',
    `${file}, line ${line}: the session ${what}; nothing was changed. ` +
      'Import the directory as another session (--session)',
  );
}

/**
 * Compares the lines stored by earlier imports with those of a directory. If a line was stored
 * without its text, takes the text from the step.
 */
function checkKept({ messages, events }: ImportPlan, kept: readonly KeptImport[], compared: ComparedSteps): void {
  for (const one of kept) {
    for (const [file, lines, known, before] of [
      ['messages.jsonl', messages, one.messages, one.messagesBefore],
      ['events.jsonl', events, one.events, one.eventsBefore],
    ] as const) {
      for (const [i, line] of known.entries()) {
        const there = lines[before + i];
        const [seq, head, tail] = line;
        const text = compared.text(seq);
        const isSame =
          there === undefined ||
          (tail !== undefined && text === undefined
            ? there.startsWith(head) && there.endsWith(tail)
            : there === wholeLine(line, text));
        if (!isSame) throw conflict(file, before + i + 1, 'has a different line there from an earlier import');
      }
    }
  }
}

/**
 * Determines how a directory continues a session.
 * @throws {CortexfsError} `conflict` if the directory does not continue the session; the error
 *   names the first differing line
 */
export function continueSession(plan: ImportPlan, existing: ExistingSession): Continuation {
  const compared = new ComparedSteps(existing);
  const { kept, steps } = existing;
  const there = steps.filter(
    ({ seq, message, call }) => message !== undefined || (call !== undefined && !compared.isImported(seq)),
  );
  const seqs: number[] = [];
  const missing: number[] = [];
  let at = 0;
  for (const [place, planned] of plan.steps.entries()) {
    const next = steps.length + missing.length + 1;
    const exact = planned.exact?.step.seq;
    let seq: number | undefined;
    if (isOfChat(planned)) {
      const step = there[at];
      at += 1;
      const line = planned.lines[0] ?? plan.messages.length;
      if (step !== undefined && !compared.isSame(planned, step))
        throw conflict('messages.jsonl', line, `has a different text at step ${step.seq}`);
      if (exact !== undefined && exact !== (step?.seq ?? next))
        throw conflict('messages.jsonl', line, `lacks this line at step ${exact}`);
      seq = step?.seq;
    } else if (exact !== undefined) seq = exact <= steps.length ? exact : undefined;
    else if (planned.call !== undefined) seq = compared.imported(planned.call);
    if (seq === undefined) missing.push(place);
    seqs.push(seq ?? next);
  }
  checkKept(plan, kept, compared);
  const last = kept.at(-1);
  const known = {
    messages: (last?.messagesBefore ?? 0) + (last?.messages.length ?? 0),
    events: (last?.eventsBefore ?? 0) + (last?.events.length ?? 0),
  };
  const first = missing[0];
  if (last === undefined && steps.length > 0) {
    // All lines before the first missing step belong to steps of the session.
    const next = plan.steps.slice(first ?? plan.steps.length).find(({ lines }) => lines.length > 0)?.lines[0];
    known.messages = next === undefined ? plan.messages.length : next - 1;
    known.events = first === undefined ? plan.events.length : plan.eventPlaces.filter((place) => place <= first).length;
  }
  const [messages, events] = [plan.messages.length - known.messages, plan.events.length - known.events];
  if (messages > 0 && events < 0)
    throw conflict(
      'events.jsonl',
      plan.events.length + 1,
      `has ${-events} more lines there, and messages.jsonl has new ones`,
    );
  if (messages < 0 && events > 0)
    throw conflict(
      'messages.jsonl',
      plan.messages.length + 1,
      `has ${-messages} more lines there, and events.jsonl has new ones`,
    );
  const isOlder = messages < 0 || events < 0;
  // A directory that is older than the session has old derived files too, so nothing is imported.
  return { seqs, missing: isOlder ? [] : missing, ...known, isOlder };
}
