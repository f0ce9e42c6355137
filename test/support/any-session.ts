import fc, { type Arbitrary } from 'fast-check';
import type { TokenCounter } from '../../src/contracts/projection/entry.js';
import type { StoredCall } from '../../src/contracts/projection/measured-entries.js';
import { type Projection, projectSession } from '../../src/contracts/projection/project-session.js';
import type { ApprovalNote, PendingCall, ProjectionSource } from '../../src/contracts/projection/projection-source.js';
import type { Json } from '../../src/objects/canonical-json.js';
import { hashText } from '../../src/objects/hashes.js';
import { type ObjectId, objectId, sessionId } from '../../src/objects/ids.js';
import type { Step } from '../../src/objects/step.js';
import { applyStep, emptySession } from '../../src/session/session-state.js';
import { anyText } from './any-text.js';

/** One event of a session. */
export type Happening =
  | { readonly kind: 'user' | 'system' | 'reminder' | 'said'; readonly text: string }
  /**
   * A message of the model with calls. Their results come at once, after the next message, or
   * never.
   */
  | {
      readonly kind: 'calls';
      readonly text: string;
      readonly calls: readonly {
        readonly output: string | null;
        readonly args: Json;
        readonly when: 'now' | 'late' | 'never';
      }[];
    }
  /** A call without a message, as over plain MCP. */
  | { readonly kind: 'call'; readonly output: string | null; readonly deactivates: boolean }
  | { readonly kind: 'approval'; readonly text: string; readonly state: ApprovalNote['state'] };

/** The worst case of a tokenizer: each byte of UTF-8 is a token. */
export const BYTES: TokenCounter = {
  name: 'bytes',
  count: (text) => Buffer.byteLength(text),
  perMessage: 3,
  perCall: 5,
};
/** Counts words, so that token counts do not add up by characters. */
export const WORDS: TokenCounter = {
  name: 'words',
  count: (text) => text.split(/\s+/u).filter((word) => word !== '').length,
  perMessage: 1,
  perCall: 1,
};

const text = fc.oneof(
  anyText({ maxLength: 40 }),
  fc.constantFrom('', 'look at src/a.ts', 'x'.repeat(600), '\u{1F600}'.repeat(90), 'one two three four'),
);
const output = fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 6, arbitrary: text });

/** Events in any order. */
export const happenings: Arbitrary<readonly Happening[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('user' as const), text }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('said' as const), text }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('system' as const, 'reminder' as const), text }) },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('calls' as const),
        text,
        calls: fc.array(
          fc.record({
            output,
            args: fc.record({ path: text }) as Arbitrary<Json>,
            when: fc.oneof(
              { weight: 6, arbitrary: fc.constant('now' as const) },
              fc.constantFrom('late' as const, 'never' as const),
            ),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('call' as const), output, deactivates: fc.boolean() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('approval' as const),
        text,
        state: fc.constantFrom('pending' as const, 'approved' as const, 'denied' as const),
      }),
    },
  ),
  { maxLength: 25 },
);

const SESSION = sessionId('s');

class SessionWriter {
  readonly steps: Step[] = [];
  readonly calls = new Map<ObjectId, StoredCall>();
  readonly pending: PendingCall[] = [];
  readonly approvals: ApprovalNote[] = [];
  #turn = 0;
  #late: (() => void)[] = [];

  happens(one: Happening): void {
    const late = this.#late;
    this.#late = [];
    if (one.kind === 'calls') this.#calls(one);
    else if (one.kind === 'call') this.#call({ output: one.output, args: {}, deactivates: one.deactivates });
    else if (one.kind === 'approval') this.#approval(one);
    else if (one.kind === 'reminder')
      this.#message('user', `<system-reminder>\n${one.text.replaceAll('<', '')}\n</system-reminder>`, false);
    else this.#message(one.kind === 'said' ? 'assistant' : one.kind, one.text, one.kind === 'user');
    for (const answer of late) answer();
  }

  #step(more: Partial<Step>, opens = false): Step {
    const seq = this.steps.length + 1;
    if (opens || this.#turn === 0) this.#turn += 1;
    const begins = this.steps.at(-1)?.turn !== this.#turn;
    const step: Step = {
      session: SESSION,
      seq,
      turn: this.#turn,
      at: 1_000 + seq,
      changes: {},
      ...(begins ? { opens: { rule: opens ? 'user-message' : 'first-step' } } : {}),
      ...more,
    };
    this.steps.push(step);
    return step;
  }

  #message(role: string, said: string, opens: boolean): Step {
    return this.#step({ message: { role, text: said } }, opens);
  }

  #calls({ text: said, calls }: Happening & { readonly kind: 'calls' }): void {
    const { seq: by } = this.#message('assistant', said, false);
    for (const [i, { output: answer, args, when }] of calls.entries()) {
      const native = `call_${by}_${i}`;
      if (when === 'never') this.pending.push({ native, tool: 'bash', args, by, at: 1_000 + by });
      else if (when === 'now') this.#call({ output: answer, args, native, by });
      else this.#late.push(() => this.#call({ output: answer, args, native, ...(this.#isSameTurn(by) ? { by } : {}) }));
    }
  }

  #isSameTurn(seq: number): boolean {
    return this.steps[seq - 1]?.turn === this.#turn;
  }

  #call(made: {
    readonly output: string | null;
    readonly args: Json;
    readonly native?: string;
    readonly by?: number;
    readonly deactivates?: boolean;
  }): void {
    const { output: answer, args, native = `s:${this.steps.length + 1}`, by, deactivates = false } = made;
    const id = objectId(native);
    const changes = deactivates ? { index: [id] } : { index: [id], activate: [id] };
    this.#step({ call: { id, ...(by === undefined ? {} : { by }) }, changes });
    const contentHash = answer === null ? null : hashText(answer);
    const metadata = {
      type: 'toolcall' as const,
      id,
      tool: 'bash',
      status: 'ok' as const,
      contentHash,
      charCount: answer?.length ?? 0,
      fileRefs: [],
      wholeRead: false,
    };
    this.calls.set(id, { metadata, args, content: answer });
  }

  #approval({ text: what, state }: Happening & { readonly kind: 'approval' }): void {
    const seq = this.steps.length;
    this.approvals.push({
      approval: `ask ${this.approvals.length}`,
      state,
      text: what,
      turn: this.#turn,
      seq,
      at: 2_000 + seq,
    });
  }
}

/** Returns the source of a projection for a session with these events. */
export function sourceOf(all: readonly Happening[], prompt: string | undefined = 'You are careful.'): ProjectionSource {
  const writer = new SessionWriter();
  for (const one of all) writer.happens(one);
  const { steps, calls, pending, approvals } = writer;
  const { sets } = steps.reduce(applyStep, emptySession(SESSION));
  return {
    session: SESSION,
    basis: { validTime: 5_000, txId: 7 },
    prompt: prompt === undefined ? undefined : { text: prompt, at: 900 },
    steps,
    sets,
    calls,
    files: [],
    versions: new Map(),
    pending,
    approvals,
  };
}

/** Returns the projection of a session with these events. */
export const projectionOf = (all: readonly Happening[], counter: TokenCounter = BYTES): Projection =>
  projectSession(sourceOf(all), counter);
