import { type ChatRow, chatRows } from '../../objects/chat-log.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { SessionSets } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type {
  ApprovalEntry,
  Entry,
  EntryCall,
  EntryId,
  EntryPlace,
  ProjectionBasis,
  Running,
  TokenCounter,
} from './entry.js';
import { Measures, nativeId } from './measured-entries.js';
import type { ApprovalNote, PendingCall, ProjectedFile, ProjectionSource, SourceVersion } from './projection-source.js';

/**
 * A session at a basis in the form from which every contract renders it. Equal sources give an
 * equal projection.
 */
export interface Projection {
  readonly session: SessionId;
  readonly basis: ProjectionBasis;
  /** The last turn and step. 0 before the first. */
  readonly turn: number;
  readonly seq: number;
  /** The counter of all its token counts. */
  readonly counter: TokenCounter;
  readonly entries: readonly Entry[];
  /** Undefined if the model's answer came last. */
  readonly running: Running | undefined;
  /**
   * SHA-256 over the ids, kinds, texts and calls of all entries. Equal on every surface that shows
   * the same session at the same basis.
   */
  readonly digest: Sha256;
  /** The session's sets [§3.1]. */
  readonly sets: SessionSets;
  readonly files: readonly ProjectedFile[];
  /** Versions of the prompt and of every object of the index. */
  readonly versions: ReadonlyMap<ObjectId, SourceVersion>;
}

const SYSTEM_ROLES: ReadonlySet<string> = new Set(['system', 'developer']);
const MODEL_ROLES: ReadonlySet<string> = new Set(['assistant', 'model']);
const REMINDER = /^\s*<system-reminder\b[^>]*>[\s\S]*<\/system-reminder>\s*$/;

const entryId = (letter: 'm' | 'c' | 'r' | 'a', name: number | string): EntryId => `${letter}${name}` as EntryId;

function kindOf({ role, text }: Message): 'system' | 'assistant' | 'reminder' | 'user' {
  if (SYSTEM_ROLES.has(role)) return 'system';
  if (MODEL_ROLES.has(role)) return 'assistant';
  return REMINDER.test(text) ? 'reminder' : 'user';
}

/** A row of a turn with its pending calls. `from` is the step by which rows are sorted. */
interface OpenRow extends ChatRow {
  readonly from: number;
  readonly pending: readonly PendingCall[];
}

interface OpenTurn {
  readonly turn: number;
  readonly rows: readonly OpenRow[];
}

const beginningOf = ({ seq, calls }: ChatRow): number => seq ?? calls[0]?.seq ?? 0;
const isModels = ({ message }: ChatRow): boolean => MODEL_ROLES.has(message.role);

/** Groups values by a number. Groups and values keep their order. */
function grouped<Value>(
  values: readonly Value[],
  numberOf: (value: Value) => number,
): ReadonlyMap<number, readonly Value[]> {
  const groups = new Map<number, Value[]>();
  for (const value of values) {
    const number = numberOf(value);
    const group = groups.get(number);
    if (group === undefined) groups.set(number, [value]);
    else group.push(value);
  }
  return groups;
}

/**
 * Returns the rows of a turn with the pending calls of its messages. A call of an unknown message
 * gets a separate row.
 */
function openRows(rows: readonly ChatRow[], pending: readonly PendingCall[]): readonly OpenRow[] {
  const waiting = new Map(grouped(pending, ({ by }) => by));
  const places = new Map(pending.map((one, place) => [one, place]));
  const placeOf = (one: PendingCall): number => places.get(one) ?? 0;
  const take = (seq: number | undefined): readonly PendingCall[] => {
    const own = seq === undefined ? undefined : waiting.get(seq);
    if (own !== undefined) waiting.delete(seq as number);
    return own ?? [];
  };
  const open = rows.map((row): OpenRow => {
    const own = isModels(row) ? [row.seq, ...row.calls.map(({ seq }) => seq)].flatMap(take) : [];
    return { ...row, from: beginningOf(row), pending: own.toSorted((a, b) => placeOf(a) - placeOf(b)) };
  });
  const alone = [...waiting].map(
    ([by, own]): OpenRow => ({
      message: { role: 'assistant', text: '' },
      seq: undefined,
      calls: [],
      from: by,
      pending: own,
    }),
  );
  // Sorting is stable, so rows of calls without a message follow the other rows of their step.
  return [...open, ...alone].sort((a, b) => a.from - b.from);
}

class EntryBuilder {
  readonly entries: Entry[] = [];
  readonly open: EntryCall[] = [];
  readonly #source: ProjectionSource;
  readonly #measures: Measures;
  readonly #steps: ReadonlyMap<number, Step>;
  readonly #active: ReadonlySet<ObjectId>;
  readonly #pinned: ReadonlySet<ObjectId>;
  #index = 0;

  constructor(source: ProjectionSource, counter: TokenCounter) {
    this.#source = source;
    this.#measures = Measures.by(counter);
    this.#steps = new Map(source.steps.map((step) => [step.seq, step]));
    this.#active = new Set(source.sets.active);
    this.#pinned = new Set(source.sets.pinned);
  }

  prompt(): void {
    const { prompt } = this.#source;
    if (prompt === undefined || prompt.text === '') return;
    const place = { turn: 0, index: 1, seq: 0, at: prompt.at };
    this.entries.push({
      kind: 'system',
      id: 'system' as EntryId,
      ...place,
      ...this.#measures.text(prompt.text),
      role: 'system',
      isPrompt: true,
    });
  }

  turn({ turn, rows }: OpenTurn, approvals: readonly ApprovalNote[]): void {
    this.#index = 0;
    let next = 0;
    for (const [i, row] of rows.entries()) {
      this.#row(turn, row);
      const until = rows[i + 1]?.from ?? Number.POSITIVE_INFINITY;
      for (; next < approvals.length && (approvals[next]?.seq ?? 0) < until; next++)
        this.#approval(turn, approvals[next] as ApprovalNote);
    }
    for (const left of approvals.slice(next)) this.#approval(turn, left);
  }

  #place(turn: number, seq: number): EntryPlace {
    this.#index += 1;
    return { turn, index: this.#index, seq, at: this.#steps.get(seq)?.at ?? 0 };
  }

  #row(turn: number, row: OpenRow): void {
    const { message, seq, calls, pending } = row;
    const { role, name } = message;
    const common = {
      id: entryId(seq === undefined ? 'c' : 'm', row.from),
      ...this.#place(turn, row.from),
      ...this.#measures.message(message),
      role,
      ...defined({ name, native: seq === undefined ? undefined : this.#steps.get(seq)?.native }),
    };
    const kind = kindOf(message);
    if (kind === 'system') this.entries.push({ kind, ...common, isPrompt: false });
    else if (kind !== 'assistant') this.entries.push({ kind, ...common });
    else {
      const made = calls.flatMap(({ id, seq: at }) => {
        const stored = this.#source.calls.get(id);
        return stored === undefined ? [] : [{ at, ...this.#measures.stored(stored) }];
      });
      const open = pending.map((one) => this.#measures.pending(one));
      this.entries.push({ kind, ...common, calls: [...made.map(({ call }) => call), ...open] });
      for (const [position, { at, result }] of made.entries()) {
        const place = this.#place(turn, at);
        const held = { active: this.#active.has(result.call), pinned: this.#pinned.has(result.call) };
        this.entries.push({
          kind: 'result',
          id: entryId('r', at),
          ...place,
          of: common.id,
          position,
          ...result,
          ...held,
        });
      }
      this.open.push(...open);
    }
  }

  #approval(turn: number, { approval, state, text, tool, native, reason, seq, at }: ApprovalNote): void {
    const entry: ApprovalEntry = {
      kind: 'approval',
      id: entryId('a', hashText(`${seq} ${approval}`).slice(0, 16)),
      ...this.#place(turn, seq),
      at,
      ...this.#measures.text(text),
      approval,
      state,
      ...defined({ tool, native, reason }),
    };
    this.entries.push(entry);
  }
}

/** Returns the pending calls whose result has not arrived in a later step. */
function stillPending({ pending, steps }: ProjectionSource): readonly PendingCall[] {
  const answered = new Map<string, number>();
  for (const { seq, call } of steps) if (call !== undefined) answered.set(nativeId(call.id), seq);
  return pending.filter(({ native, by }) => (answered.get(native) ?? 0) <= by);
}

const callsOf = (entry: Entry): readonly EntryCall[] => (entry.kind === 'assistant' ? entry.calls : []);

function runningOf(entries: readonly Entry[], turn: number, open: readonly EntryCall[]): Running | undefined {
  const approvals = entries.flatMap((entry) =>
    entry.kind === 'approval' && entry.state === 'pending' ? [entry.id] : [],
  );
  const last = entries.findLast(({ kind }) => kind !== 'approval' && kind !== 'reminder' && kind !== 'system');
  const hasEnded = last === undefined || (last.kind === 'assistant' && last.calls.length === 0);
  return hasEnded && open.length + approvals.length === 0 ? undefined : { turn, calls: open, approvals };
}

function digestOf(entries: readonly Entry[]): Sha256 {
  return hashText(
    JSON.stringify(entries.map((entry) => [entry.id, entry.kind, entry.sha256, ...callsOf(entry).map(({ id }) => id)])),
  );
}

/**
 * Returns the ordered entries of a session: messages in order, results directly after their message
 * in call order, approvals after their calls. A result never appears without its call. Pure.
 * Counting tokens takes most of the time.
 */
export function projectSession(source: ProjectionSource, counter: TokenCounter): Projection {
  const { session, basis, steps, sets, files, versions } = source;
  const pending = stillPending(source);
  const approvals = [...source.approvals].sort(
    (a, b) => a.seq - b.seq || a.at - b.at || (a.approval < b.approval ? -1 : 1),
  );
  const last = steps.at(-1);
  const builder = new EntryBuilder(source, counter);
  builder.prompt();
  // Entries from before the first step belong to the turn of that step.
  const turnAt = (seq: number): number => steps[Math.min(Math.max(seq, 1), steps.length) - 1]?.turn ?? 0;
  const [waiting, asked] = [grouped(pending, ({ by }) => turnAt(by)), grouped(approvals, ({ seq }) => turnAt(seq))];
  for (const [turn, own] of grouped(steps, (step) => step.turn)) {
    const rows = openRows(chatRows(own), waiting.get(turn) ?? []);
    builder.turn({ turn, rows }, asked.get(turn) ?? []);
  }
  const { entries, open } = builder;
  const turn = last?.turn ?? 0;
  return {
    session,
    basis,
    turn,
    seq: last?.seq ?? 0,
    counter,
    entries,
    running: runningOf(entries, turn, open),
    digest: digestOf(entries),
    sets,
    files,
    versions,
  };
}
