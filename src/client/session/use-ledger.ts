import { withoutNumber } from '../../assembly/shown-text.js';
import { asksForPart } from '../../foreign-tools/tool-arguments.js';
import { foreignTool, type ToolKind } from '../../foreign-tools/tool-table.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { Step } from '../../objects/step.js';
import { RETENTION, type RetainedKind, type RetentionCandidate, type RetentionSettings, retained } from '../../session/retention.js';
import type { SessionState } from '../../session/session-state.js';
import type { ObjectStore } from '../../store/object-store.js';
import { tokensOf } from '../../values/token-estimate.js';

/** A line of fewer characters says too little of where it comes from. */
const LEAST_LINE = 24;
/** A text of fewer lines is repeated by chance. */
const LEAST_LINES = 3;
/** Steps of an earlier process that are read again. */
const READ_AGAIN = 300;
/** Calls after which a text that is not active is forgotten, also where nobody says that it cannot be seen any more. */
const FORGOTTEN_AFTER = 120;

const KINDS: Readonly<Record<ToolKind, RetainedKind>> = {
  read: 'read',
  shell: 'command',
  list: 'search',
  glob: 'search',
  grep: 'search',
  tree: 'search',
  write: 'edit',
  edit: 'edit',
  patch: 'edit',
  other: 'other',
};

/** The lines of a text that could be quoted, each once, without what stands around them. */
function linesOf(text: string): ReadonlySet<string> {
  const lines = text.split('\n').flatMap((line) => [line.trim(), withoutNumber(line).trim()]);
  return new Set(lines.filter(({ length }) => length >= LEAST_LINE));
}

/** The texts in a value of JSON, one after the other. */
function textsIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(textsIn).join('\n');
}

interface Entry {
  readonly kind: RetainedKind;
  readonly lines: ReadonlySet<string>;
  readonly chars: number;
  readonly shown: number;
  readonly used?: number;
  /** A text that was shown later and has all of its lines. */
  readonly repeatedBy?: ObjectId | undefined;
}

/** A text of the session that a model was shown. */
interface ShownText {
  readonly id: ObjectId;
  readonly kind: RetainedKind;
  readonly text: string;
}

/** A finished call, as far as it says what was used and shown. */
export interface LedgerCall {
  readonly id: ObjectId;
  readonly tool: string;
  readonly args: unknown;
  readonly content: string;
  /** Files that it read or wrote, with their present texts. */
  readonly files: readonly { readonly id: ObjectId; readonly text: string; readonly whole: boolean }[];
  /** Objects that the agent activated or deactivated by it. */
  readonly held?: readonly { readonly id: ObjectId; readonly text: string | undefined }[];
  readonly dismissed?: readonly ObjectId[];
}

/**
 * What a session's model was shown and what of it its own words used, so that its sets follow retention by use: a line of at least 24 characters that stands in a
 * text and in the model's words or arguments is a use of the text. It follows from what the database holds; another process makes it again from the session's last steps.
 */
export class UseLedger {
  #entries = new Map<ObjectId, Entry>();
  readonly #byLine = new Map<string, Set<ObjectId>>();
  #held = new Set<ObjectId>();
  readonly #settings: RetentionSettings;
  /** Calls of the model: requests that were handed out, or where none is, what the model said and did. */
  #calls = 0;
  #isHandedOut = false;
  #spoken = false;
  /** Tokens of the next request if its epoch goes on; undefined before one was made: then as many as the shown texts have. */
  request: number | undefined;

  constructor(settings: Partial<RetentionSettings> = {}) {
    this.#settings = { ...RETENTION, ...settings };
  }

  /** Counts what a step says while the step is recorded; where it could not be, it is taken back: a step that failed changed nothing. */
  async during<T>(tell: (uses: this) => void, record: () => Promise<T>): Promise<T> {
    const [entries, held, calls, spoken] = [new Map(this.#entries), new Set(this.#held), this.#calls, this.#spoken];
    try {
      tell(this);
      return await record();
    } catch (error) {
      for (const [id, entry] of this.#entries) if (entries.get(id)?.lines !== entry.lines) this.#unlist(id, entry);
      for (const [id, entry] of entries) if (this.#entries.get(id)?.lines !== entry.lines) this.#list(id, entry);
      [this.#entries, this.#held, this.#calls, this.#spoken] = [entries, held, calls, spoken];
      throw error;
    }
  }

  /** A request was handed out, of so many tokens. */
  handedOut(tokens: number): void {
    this.#isHandedOut = true;
    this.#calls += 1;
    this.request = tokens;
  }

  /** The model spoke: a call of it has ended. */
  spoke(text: string): void {
    if (!this.#isHandedOut) this.#calls += 1;
    this.#spoken = true;
    this.#use(text);
  }

  /** A call that the model made is to be recorded. */
  called({ id, tool, args, content, files, held = [], dismissed = [] }: LedgerCall): void {
    // Where nobody reports what the model says, each call is one of its.
    if (!this.#isHandedOut && !this.#spoken) this.#calls += 1;
    this.#use(textsIn(args));
    const writes = foreignTool(tool).kind === 'write';
    for (const { id: file, text, whole } of files) {
      const before = this.#entries.get(file);
      if (whole || (writes && before !== undefined)) this.#show({ id: file, kind: 'file', text });
      // An edit, or a part of it: it is used, and what it says is new.
      else if (before !== undefined) this.#show({ id: file, kind: before.kind, text }, before.shown);
    }
    // A whole read says what its file says.
    if (!files.some(({ whole }) => whole)) this.#show({ id, kind: KINDS[foreignTool(tool).kind], text: content });
    this.#choose(held, dismissed);
  }

  /** What the agent, or a person, wants to have and not to have. */
  #choose(held: NonNullable<LedgerCall['held']>, dismissed: readonly ObjectId[]): void {
    for (const one of held) {
      this.#held.add(one.id);
      if (one.text !== undefined) this.#show({ id: one.id, kind: this.#entries.get(one.id)?.kind ?? 'other', text: one.text });
    }
    for (const one of dismissed) {
      this.#held.delete(one);
      this.#forget(one);
    }
  }

  /** What leaves the active set, and what comes back to it because it was used while it could still be seen, after a step. */
  turnover(state: SessionState): { readonly leave: readonly ObjectId[]; readonly back: readonly ObjectId[] } {
    this.#forgetOld(state);
    const candidates = [...this.#entries].flatMap(([id, entry]): readonly RetentionCandidate[] => {
      if (!state.has(id)) return [];
      const { kind, chars, shown, used, repeatedBy } = entry;
      const ago = (call: number): number => this.#calls - call + 1;
      const isHeld = state.isPinned(id) || (this.#held.has(id) && state.isActive(id));
      return [
        {
          id,
          kind,
          chars,
          shown: ago(shown),
          used: used === undefined ? undefined : ago(used),
          isRepeated: repeatedBy !== undefined,
          isHeld,
        },
      ];
    });
    const request = this.request ?? tokensOf(candidates.reduce((sum, { chars }) => sum + chars, 0));
    const kept = new Set(retained(candidates, request, this.#settings));
    const leave = state.activeIds.filter((id) => !kept.has(id) && !state.isPinned(id));
    return { leave, back: [...kept].filter((id) => !state.isActive(id)) };
  }

  /** A new base was rendered: what is not in it cannot be seen any more. */
  settled(state: SessionState): void {
    for (const id of [...this.#entries.keys()]) if (!state.isActive(id)) this.#forget(id);
  }

  /** Makes the ledger of a session that an earlier process worked with. */
  async load(store: ObjectStore, state: SessionState): Promise<void> {
    const snapshot = await store.latest();
    const [all, records] = await Promise.all([snapshot.steps(state.id), snapshot.assemblies(state.id, { onDamaged: () => undefined })]);
    const steps = all.slice(-READ_AGAIN);
    const requests = records.map(({ step }) => step);
    const calls = steps.flatMap(({ call }) => call?.id ?? []);
    const found = await snapshot.getMany([...new Set([...calls, ...state.activeIds])]);
    const version = (id: ObjectId): ObjectVersion | undefined => found.get(id)?.version;
    this.#isHandedOut = requests.length > 0;
    for (const step of steps) {
      while (requests[0] !== undefined && requests[0] < step.seq) {
        requests.shift();
        this.#calls += 1;
      }
      this.#replay(step, version);
    }
    this.#calls += requests.length;
    this.settled(state);
  }

  #replay({ message, call, fresh = [], changes, by }: Step, version: (id: ObjectId) => ObjectVersion | undefined): void {
    if (message?.role === 'assistant') this.spoke(message.text);
    const held = fresh.map((id) => ({ id, text: version(id)?.content ?? undefined }));
    if (by === 'person') this.#choose(held, changes.deactivate ?? []);
    const made = call === undefined ? undefined : version(call.id);
    if (call === undefined || made?.type !== 'toolcall') return;
    const { tool, args, content, file_refs: refs = [] } = made;
    const activated = new Set(changes.activate);
    const isWhole = foreignTool(tool).kind === 'read' && refs.length === 1 && !asksForPart(args);
    const files = refs.flatMap((id) => {
      const file = version(id);
      return file?.type === 'file' && file.content !== null ? [{ id, text: file.content, whole: isWhole || activated.has(id) }] : [];
    });
    const isDeactivation = tool === 'deactivate';
    this.called({
      id: call.id,
      tool,
      args,
      content: content ?? '',
      files,
      held,
      dismissed: isDeactivation ? (changes.deactivate ?? []) : [],
    });
  }

  #forgetOld(state: SessionState): void {
    const before = this.#calls - FORGOTTEN_AFTER;
    for (const [id, { shown, used = 0 }] of [...this.#entries]) {
      if (Math.max(shown, used) < before && !state.isActive(id)) this.#forget(id);
    }
  }

  /** Without `shown` the text is shown now; else it was then, and is used now. */
  #show({ id, kind, text }: ShownText, shown?: number): void {
    this.#forget(id);
    const lines = linesOf(text);
    const shared = new Map<ObjectId, number>();
    for (const line of lines) for (const other of this.#byLine.get(line) ?? []) shared.set(other, (shared.get(other) ?? 0) + 1);
    for (const [other, count] of shared) {
      const entry = this.#entries.get(other);
      if (entry?.lines.size === count && count >= LEAST_LINES) this.#entries.set(other, { ...entry, repeatedBy: id });
    }
    const used = shown === undefined ? {} : { used: this.#calls };
    const entry = { kind, lines, chars: text.length, shown: shown ?? this.#calls, ...used };
    this.#list(id, entry);
    this.#entries.set(id, entry);
  }

  #list(id: ObjectId, { lines }: Entry): void {
    for (const line of lines) {
      const others = this.#byLine.get(line);
      if (others === undefined) this.#byLine.set(line, new Set([id]));
      else others.add(id);
    }
  }

  #unlist(id: ObjectId, { lines }: Entry): void {
    for (const line of lines) {
      const others = this.#byLine.get(line);
      others?.delete(id);
      if (others?.size === 0) this.#byLine.delete(line);
    }
  }

  #use(text: string): void {
    for (const line of linesOf(text)) {
      for (const id of this.#byLine.get(line) ?? []) {
        const entry = this.#entries.get(id);
        if (entry !== undefined && entry.used !== this.#calls) this.#entries.set(id, { ...entry, used: this.#calls });
      }
    }
  }

  #forget(id: ObjectId): void {
    const entry = this.#entries.get(id);
    if (entry !== undefined) this.#unlist(id, entry);
    this.#entries.delete(id);
    for (const [other, one] of this.#entries) if (one.repeatedBy === id) this.#entries.set(other, { ...one, repeatedBy: undefined });
  }
}

/** The ledger of a session; one that an earlier process worked with is made from what the database holds, and is empty where that cannot be read now. */
export async function openLedger(store: ObjectStore, state: SessionState, settings?: Partial<RetentionSettings>): Promise<UseLedger> {
  const ledger = new UseLedger(settings);
  if (state.seq === 0) return ledger;
  // Without it what was active before leaves sooner, and comes back when it is asked for.
  await ledger.load(store, state).catch(() => undefined);
  return ledger;
}
