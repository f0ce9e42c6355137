import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { excerpt, type LossReason, type OnLoss } from './importer.js';
import { type EntryOf, type RecordedEntry, recordedEntrySchema } from './neutral-session.js';

/**
 * Copies a JSON value. It replaces lone surrogates by U+FFFD, also in keys, and leaves out
 * undefined fields. UTF-8 cannot encode a lone surrogate. Calls `onRepair` for each changed text.
 */
function wellFormed(value: unknown, onRepair: () => void): unknown {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) onRepair();
    return value.toWellFormed();
  }
  if (Array.isArray(value)) return value.map((item: unknown) => wellFormed(item, onRepair));
  if (!isJsonObject(value)) return value;
  const fields = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(fields.map(([key, item]) => [wellFormed(key, onRepair), wellFormed(item, onRepair)]));
}

/** The state of one session while its recording is read. It stores ids, but no texts. */
interface SessionState {
  /**
   * Calls without a result, by the recorded id, oldest first. Each has the unique id that it was
   * given, and its place.
   */
  readonly open: Map<string, { readonly id: string; readonly place: string }[]>;
  /** Number of calls with each id. */
  readonly seen: Map<string, number>;
  latest: number | undefined;
}

/** The latest time that a `Date` can hold. */
const LAST_MOMENT = 8.64e15;
const shown = (moment: number): string =>
  Math.abs(moment) > LAST_MOMENT ? String(moment) : new Date(moment).toISOString();

/**
 * Enforces the guarantees of `importRecording` for each entry. It reports every change and every
 * entry that it leaves out.
 */
export class EntryChecks {
  readonly #onLoss: OnLoss;
  readonly #sessions = new Map<string, SessionState>();

  constructor(onLoss: OnLoss) {
    this.#onLoss = onLoss;
  }

  /** Returns the entry, repaired if needed. Undefined if the entry must be left out. */
  check(raw: RecordedEntry): RecordedEntry | undefined {
    const entry = this.#validated(raw);
    if (entry === undefined) return undefined;
    if (entry.kind === 'session') {
      const { native_id, place } = entry;
      if (this.#sessions.has(native_id))
        return this.#lose('duplicate-id', place, `the session ${excerpt(native_id)} began before: it is continued`);
      this.#sessions.set(native_id, { open: new Map(), seen: new Map(), latest: undefined });
      return entry;
    }
    const state = this.#sessions.get(entry.session);
    if (state === undefined)
      return this.#lose(
        'malformed-record',
        entry.place,
        `${entry.kind} of no session (${excerpt(entry.session)}): left out`,
      );
    this.#checkClock(state, entry);
    if (entry.kind === 'call') return this.#checkCall(state, entry);
    return entry.kind === 'result' ? this.#checkResult(state, entry) : entry;
  }

  /** Reports the calls that have no result, at the end of the recording. */
  finish(): void {
    for (const { open } of this.#sessions.values())
      for (const [id, calls] of open)
        for (const { place } of calls) this.#lose('missing-result', place, `the call ${excerpt(id)} has no result`);
  }

  #lose(reason: LossReason, place: string, detail: string): undefined {
    this.#onLoss({ reason, place, detail });
  }

  #validated(entry: RecordedEntry): RecordedEntry | undefined {
    const { kind, place } = entry;
    let repaired = 0;
    try {
      const clean = wellFormed(entry, () => {
        repaired += 1;
      });
      if (repaired > 0)
        this.#lose('repaired-text', place, `lone surrogates in ${repaired} texts were replaced by U+FFFD`);
      const { data, error } = recordedEntrySchema.safeParse(clean);
      const [issue] = error?.issues ?? [];
      if (issue !== undefined)
        this.#lose('malformed-record', place, `${kind} left out: ${issue.path.join('.')} ${issue.message}`);
      return data;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return this.#lose('malformed-record', place, `${kind} left out: nested too deeply`);
    }
  }

  #checkClock(state: SessionState, { at, place }: Exclude<RecordedEntry, { kind: 'session' }>): void {
    if (at === undefined) return;
    if (state.latest !== undefined && at < state.latest)
      this.#lose(
        'clock-backwards',
        place,
        `${shown(at)} follows the later time ${shown(state.latest)}: kept unchanged`,
      );
    state.latest = at;
  }

  #checkCall({ seen, open }: SessionState, call: EntryOf<'call'>): RecordedEntry {
    const { call_id, place } = call;
    const count = (seen.get(call_id) ?? 0) + 1;
    seen.set(call_id, count);
    const id = count === 1 ? call_id : `${call_id}~${count}`;
    if (count > 1)
      this.#lose('duplicate-id', place, `the call id ${excerpt(call_id)} occurs again: renamed to ${excerpt(id)}`);
    open.set(call_id, [...(open.get(call_id) ?? []), { id, place }]);
    return { ...call, call_id: id };
  }

  #checkResult({ seen, open }: SessionState, result: EntryOf<'result'>): RecordedEntry {
    const { session, place, at, native_id, parent_id, call_id, text } = result;
    const [first, ...others] = open.get(call_id) ?? [];
    if (others.length > 0) open.set(call_id, others);
    else open.delete(call_id);
    if (first !== undefined) return { ...result, call_id: first.id };
    const further = seen.has(call_id);
    const what = further ? 'a further result of' : 'a result without';
    this.#lose(
      further ? 'duplicate-id' : 'orphan-result',
      place,
      `${what} the call ${excerpt(call_id)}: kept as an event`,
    );
    return {
      kind: 'event',
      session,
      place,
      name: further ? 'further-result' : 'orphan-result',
      text,
      ...defined({ at, native_id, parent_id }),
    };
  }
}
