import { editInput } from '../../assembly/edit-input.js';
import { asksForPart } from '../../foreign-tools/tool-arguments.js';
import { foreignTool, type ToolKind } from '../../foreign-tools/tool-table.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { HistoryEventKind, Step } from '../../objects/step.js';
import {
  RETENTION,
  type RetainedKind,
  type RetentionCandidate,
  type RetentionSettings,
  retained,
} from '../../session/retention.js';
import type { SessionState } from '../../session/session-state.js';
import type { StepRules } from '../../session/step-policy.js';
import { textsIn, usableLines } from '../../session/used-lines.js';
import { isVerb } from '../../session/verb-outcome.js';
import type { ObjectStore } from '../../store/object-store.js';
import { tokensOf } from '../../values/token-estimate.js';
import { TIME_LIMITS } from '../time-limits.js';
import type { SessionEnvironment } from './session-environment.js';

/** Minimum lines for a text to count as repeated. Shorter texts repeat by chance. */
const LEAST_LINES = 3;
/** Number of last steps from which a ledger is rebuilt. */
const READ_AGAIN = 300;
/**
 * Factor by which a compaction raises the age of each text. The harness's summary replaces old
 * texts.
 */
const COMPACTION_AGES = 2;
/** Number of calls after which an inactive text is forgotten, even if no base was reported. */
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

interface Entry {
  readonly kind: RetainedKind;
  readonly lines: ReadonlySet<string>;
  readonly chars: number;
  readonly shown: number;
  readonly used?: number;
  /** A later shown text that contains all of its lines. */
  readonly repeatedBy?: ObjectId | undefined;
}

/** A text of the session that a model was shown. */
interface ShownText {
  readonly id: ObjectId;
  readonly kind: RetainedKind;
  readonly text: string;
}

/** A finished call, reduced to its used and shown texts. */
export interface LedgerCall {
  readonly id: ObjectId;
  readonly tool: string;
  readonly args: unknown;
  readonly content: string;
  /** Files that it read or wrote, with their current texts. */
  readonly files: readonly { readonly id: ObjectId; readonly text: string; readonly whole: boolean }[];
  /** `held`: objects that the agent activated with the call. `dismissed`: those it deactivated. */
  readonly held?: readonly { readonly id: ObjectId; readonly text: string | undefined }[];
  readonly dismissed?: readonly ObjectId[];
}

/**
 * Records which texts a session's model saw and which of them it used, for retention by use. It is
 * not stored: another process rebuilds it from the session's last steps in the database.
 */
export class UseLedger {
  #entries = new Map<ObjectId, Entry>();
  readonly #byLine = new Map<string, Set<ObjectId>>();
  #held = new Set<ObjectId>();
  readonly #settings: RetentionSettings;
  /**
   * Number of model calls. Without handed-out requests, the model's messages are counted instead,
   * and without those its tool calls.
   */
  #calls = 0;
  #isHandedOut = false;
  #spoken = false;
  /**
   * Tokens of the last handed-out request. Before the first, the tokens of the shown texts are
   * used.
   */
  request: number | undefined;

  constructor(settings: Partial<RetentionSettings> = {}) {
    this.#settings = { ...RETENTION, ...settings };
  }

  /**
   * Counts a step's uses while it is recorded. If recording fails, the uses are undone, because a
   * failed step changes nothing.
   */
  async during<T>(tell: (uses: this) => void, record: () => Promise<T>): Promise<T> {
    const [entries, held, calls] = [new Map(this.#entries), new Set(this.#held), this.#calls];
    const [spoken, isHandedOut] = [this.#spoken, this.#isHandedOut];
    try {
      tell(this);
      return await record();
    } catch (error) {
      for (const [id, entry] of this.#entries) if (entries.get(id)?.lines !== entry.lines) this.#unlist(id, entry);
      for (const [id, entry] of entries) if (this.#entries.get(id)?.lines !== entry.lines) this.#list(id, entry);
      [this.#entries, this.#held, this.#calls] = [entries, held, calls];
      [this.#spoken, this.#isHandedOut] = [spoken, isHandedOut];
      throw error;
    }
  }

  /** Records a handed-out request with its token count. */
  handedOut(tokens: number): void {
    this.#isHandedOut = true;
    this.#calls += 1;
    this.request = tokens;
  }

  /**
   * Records a change of the harness's history. While the harness sends its own list, the model's
   * messages count as calls. A compaction doubles the age of each text.
   */
  changed(kind: HistoryEventKind): void {
    if (kind === 'paused' || kind === 'bypassed') this.#isHandedOut = false;
    if (kind !== 'compacted') return;
    const aged = (call: number): number => this.#calls - COMPACTION_AGES * (this.#calls - call);
    for (const [id, { shown, used, ...entry }] of this.#entries)
      this.#entries.set(id, { ...entry, shown: aged(shown), ...(used === undefined ? {} : { used: aged(used) }) });
  }

  /** Records a message of the model, which ends a model call. */
  spoke(text: string): void {
    if (!this.#isHandedOut) this.#calls += 1;
    this.#spoken = true;
    this.#use(text);
  }

  /** Records a tool call of the model. */
  called({ id, tool, args, content, files, held = [], dismissed = [] }: LedgerCall): void {
    // If the harness reports no assistant messages, each tool call counts as a model call.
    if (!this.#isHandedOut && !this.#spoken) this.#calls += 1;
    this.#use(textsIn(args).join('\n'));
    const writes = foreignTool(tool).kind === 'write';
    for (const { id: file, text, whole } of files) {
      const before = this.#entries.get(file);
      if (whole || (writes && before !== undefined)) this.#show({ id: file, kind: 'file', text });
      // An edit or a partial read uses the file and changes its shown text.
      else if (before !== undefined) this.#show({ id: file, kind: before.kind, text }, before.shown);
    }
    // A whole read has no separate text, because it shows its file's text.
    const input = this.#settings.inputs ? editInput({ tool, args }) : undefined;
    const text = input === undefined ? content : `${input}\n${content}`;
    // A verb's answer is not kept: it reports a change of the sets, and the request shows the sets.
    if (isVerb(tool)) this.#forget(id);
    else if (input !== undefined || !files.some(({ whole }) => whole))
      this.#show({ id, kind: KINDS[foreignTool(tool).kind], text });
    this.#choose(held, dismissed);
  }

  /** Records which objects the agent or a person activated and deactivated. */
  #choose(held: NonNullable<LedgerCall['held']>, dismissed: readonly ObjectId[]): void {
    for (const one of held) {
      this.#held.add(one.id);
      if (one.text !== undefined)
        this.#show({ id: one.id, kind: this.#entries.get(one.id)?.kind ?? 'other', text: one.text });
    }
    for (const one of dismissed) {
      this.#held.delete(one);
      this.#forget(one);
    }
  }

  /**
   * Returns the objects that leave the active set after a step, and those that return to it. An
   * object returns if it was used while still visible.
   */
  turnover(state: SessionState): { readonly leave: readonly ObjectId[]; readonly back: readonly ObjectId[] } {
    this.#forgetOld(state);
    const ago = (call: number): number => this.#calls - call + 1;
    const candidates: RetentionCandidate[] = [];
    for (const [id, { kind, chars, shown, used, repeatedBy }] of this.#entries) {
      if (!state.has(id)) continue;
      candidates.push({
        id,
        kind,
        chars,
        shown: ago(shown),
        used: used === undefined ? undefined : ago(used),
        isRepeated: repeatedBy !== undefined,
        isHeld: state.isPinned(id) || (this.#held.has(id) && state.isActive(id)),
      });
    }
    const request = this.request ?? tokensOf(candidates.reduce((sum, { chars }) => sum + chars, 0));
    const kept = new Set(retained(candidates, request, this.#settings));
    const leave = state.activeIds.filter((id) => !kept.has(id) && !state.isPinned(id));
    return { leave, back: [...kept].filter((id) => !state.isActive(id)) };
  }

  /** Applies a new base: forgets the texts that it does not show. */
  settled(state: SessionState): void {
    for (const id of [...this.#entries.keys()]) if (!state.isActive(id)) this.#forget(id);
  }

  /** Rebuilds the ledger from the session's last steps in the database. */
  async load(store: ObjectStore, state: SessionState): Promise<void> {
    const snapshot = await store.latest();
    const [all, records] = await Promise.all([
      snapshot.steps(state.id),
      snapshot.assemblies(state.id, { onDamaged: () => undefined }),
    ]);
    const steps = all.slice(-READ_AGAIN);
    const requests = records.map(({ step }) => step);
    const calls = steps.flatMap(({ call }) => call?.id ?? []);
    const found = await snapshot.getMany([...new Set([...calls, ...state.activeIds])]);
    const version = (id: ObjectId): ObjectVersion | undefined => found.get(id)?.version;
    this.#isHandedOut = requests.length > 0;
    for (const step of steps) {
      while (requests[0] !== undefined && requests[0] < step.seq) {
        requests.shift();
        this.#isHandedOut = true;
        this.#calls += 1;
      }
      this.#replay(step, version);
    }
    this.#calls += requests.length;
    this.settled(state);
  }

  #replay(
    { message, call, event, fresh = [], changes, by }: Step,
    version: (id: ObjectId) => ObjectVersion | undefined,
  ): void {
    if (event !== undefined) this.changed(event.kind);
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
      return file?.type === 'file' && file.content !== null
        ? [{ id, text: file.content, whole: isWhole || activated.has(id) }]
        : [];
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
    for (const [id, { shown, used = 0 }] of this.#entries) {
      if (Math.max(shown, used) < before && !state.isActive(id)) this.#forget(id);
    }
  }

  /**
   * Adds a text that this call shows. With `shown`, that earlier call showed it and this call uses
   * it.
   */
  #show({ id, kind, text }: ShownText, shown?: number): void {
    this.#forget(id);
    const lines = usableLines(text);
    const shared = new Map<ObjectId, number>();
    for (const line of lines)
      for (const other of this.#byLine.get(line) ?? []) shared.set(other, (shared.get(other) ?? 0) + 1);
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
    for (const line of usableLines(text)) {
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
    for (const [other, one] of this.#entries)
      if (one.repeatedBy === id) this.#entries.set(other, { ...one, repeatedBy: undefined });
  }
}

/**
 * Returns a session's ledger. It is rebuilt from the database, or empty if the database cannot be
 * read now.
 */
async function openLedger(
  store: ObjectStore,
  state: SessionState,
  settings?: Partial<RetentionSettings>,
): Promise<UseLedger> {
  const ledger = new UseLedger(settings);
  if (state.seq === 0) return ledger;
  // Continues with an empty ledger after a failure. Earlier texts then become inactive sooner, and
  // the agent can activate them again.
  await ledger.load(store, state).catch(() => undefined);
  return ledger;
}

/** Counts the uses of a session's steps, if its policy needs them. */
export interface StepUses {
  /** Forgets the uses. If the session continues, they are read again. */
  forget(): void;
  /** Opens the ledger once the database has the acknowledged steps. Undefined without `use`. */
  open(): Promise<UseLedger | undefined>;
  /**
   * Records a step and its uses, on which the rules of its sets depend. A failed step counts no
   * uses.
   */
  counted<T>(record: (rules: StepRules) => Promise<T>, tell?: (uses: UseLedger) => void): Promise<T>;
}

/** The ledger of one open session, opened on first use. Opening it never rejects. */
class SessionUses implements StepUses {
  readonly #environment: SessionEnvironment;
  readonly #state: () => SessionState;
  #ledger: Promise<UseLedger> | undefined;

  constructor(environment: SessionEnvironment, state: () => SessionState) {
    this.#environment = environment;
    this.#state = state;
  }

  forget(): void {
    this.#ledger = undefined;
  }

  open(): Promise<UseLedger> {
    const { outbox, policy, store } = this.#environment;
    const state = this.#state();
    const open = (): Promise<UseLedger> => openLedger(store, state, policy.uses);
    this.#ledger ??= state.seq === 0 ? open() : outbox.drained(state.id, TIME_LIMITS.drain).then(open);
    return this.#ledger;
  }

  async counted<T>(
    record: (rules: StepRules) => Promise<T>,
    tell: (uses: UseLedger) => void = () => undefined,
  ): Promise<T> {
    const uses = await this.open();
    const rules: StepRules = { ...this.#environment.policy, turnover: (after) => uses.turnover(after) };
    return uses.during(tell, () => record(rules));
  }
}

/** Returns how a session counts uses. With retention by the window, it counts none. */
export function stepUses(environment: SessionEnvironment, state: () => SessionState): StepUses {
  const { policy } = environment;
  if (policy.retention === 'use') return new SessionUses(environment, state);
  return { forget: () => undefined, open: async () => undefined, counted: (record) => record(policy) };
}
