import { defined } from '../../values/defined.js';
import { excerpt, type Loss, type OnLoss } from './importer.js';
import { isJsonObject } from './json/json-text.js';
import { type EntryOf, type RecordedEntry, recordedEntrySchema } from './neutral-session.js';

/** Callback for every string that was repaired. */
type OnRepair = (before: string) => void;

/**
 * The same JSON value with every lone surrogate replaced by U+FFFD, in keys too: UTF-8 has no lone surrogates, so the text would change when it is written.
 * Fields that are undefined are left out. The value itself is returned where nothing had to change.
 */
function toWellFormedValue<T>(value: T, onRepair: OnRepair): T;
function toWellFormedValue(value: unknown, onRepair: OnRepair): unknown {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return value;
    onRepair(value);
    return value.toWellFormed();
  }
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => toWellFormedValue(item, onRepair));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isJsonObject(value)) return value;
  const before = Object.entries(value);
  const after = before
    .filter(([, item]) => item !== undefined)
    .map(([key, item]): readonly [string, unknown] => [toWellFormedValue(key, onRepair), toWellFormedValue(item, onRepair)]);
  const same = after.length === before.length;
  return !same || after.some(([key, item], index) => key !== before[index]?.[0] || item !== before[index]?.[1])
    ? Object.fromEntries(after)
    : value;
}

/** The state of one session while its recording is read. It holds ids only, no text. */
interface SessionState {
  /** Calls without a result, by the recording's id: their own ids and places, oldest first. */
  readonly open: Map<string, { readonly id: string; readonly place: string }[]>;
  /** How often each call id was used. */
  readonly seen: Map<string, number>;
  latest: number | undefined;
}

/** Checks the guarantees of `importRecording`, entry by entry. */
export interface EntryChecks {
  /** The entry, repaired where necessary; undefined where it has to be left out. */
  check(entry: RecordedEntry): RecordedEntry | undefined;
  /** Reports the calls without a result, at the end of the recording. */
  finish(): void;
}

/** The last moment that a `Date` can hold. */
const LAST_MOMENT = 8.64e15;
const at = (moment: number): string => (Math.abs(moment) > LAST_MOMENT ? String(moment) : new Date(moment).toISOString());

function checkClock(state: SessionState, entry: Exclude<RecordedEntry, { kind: 'session' }>, onLoss: OnLoss): void {
  if (entry.at === undefined) return;
  if (state.latest !== undefined && entry.at < state.latest) {
    const detail = `${at(entry.at)} stands behind ${at(state.latest)}, kept as it is`;
    onLoss({ reason: 'clock-backwards', place: entry.place, detail });
  }
  state.latest = entry.at;
}

function checkCall(state: SessionState, call: EntryOf<'call'>, onLoss: OnLoss): RecordedEntry {
  const count = (state.seen.get(call.call_id) ?? 0) + 1;
  state.seen.set(call.call_id, count);
  const id = count === 1 ? call.call_id : `${call.call_id}~${count}`;
  if (count > 1)
    onLoss({ reason: 'duplicate-id', place: call.place, detail: `the call id ${excerpt(call.call_id)} came before: here ${excerpt(id)}` });
  const open = state.open.get(call.call_id);
  if (open === undefined) state.open.set(call.call_id, [{ id, place: call.place }]);
  else open.push({ id, place: call.place });
  return count === 1 ? call : { ...call, call_id: id };
}

function checkResult(state: SessionState, result: EntryOf<'result'>, onLoss: OnLoss): RecordedEntry {
  const open = state.open.get(result.call_id);
  const first = open?.shift();
  if (open?.length === 0) state.open.delete(result.call_id);
  if (first !== undefined) return first.id === result.call_id ? result : { ...result, call_id: first.id };
  const known = state.seen.has(result.call_id);
  const loss: Loss = {
    reason: known ? 'duplicate-id' : 'orphan-result',
    place: result.place,
    detail: `${known ? 'a further result of' : 'a result without'} the call ${excerpt(result.call_id)}: kept as an event`,
  };
  onLoss(loss);
  const { session, place, native_id, parent_id } = result;
  return {
    kind: 'event',
    session,
    place,
    name: loss.reason === 'orphan-result' ? 'orphan-result' : 'further-result',
    text: result.text,
    ...defined({ at: result.at, native_id, parent_id }),
  };
}

function validate(entry: RecordedEntry, onLoss: OnLoss): RecordedEntry | undefined {
  let repaired = 0;
  const clean = toWellFormedValue(entry, () => {
    repaired += 1;
  });
  if (repaired > 0) {
    onLoss({ reason: 'repaired-text', place: entry.place, detail: `lone surrogates in ${repaired} texts were replaced by U+FFFD` });
  }
  const parsed = recordedEntrySchema.safeParse(clean);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  onLoss({
    reason: 'malformed-record',
    place: entry.place,
    detail: `${entry.kind} left out: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
  });
  return undefined;
}

/** Creates the checks for one recording; `onLoss` is called for everything that they change or leave out. */
export function createEntryChecks(onLoss: OnLoss): EntryChecks {
  const sessions = new Map<string, SessionState>();
  const validated = (entry: RecordedEntry): RecordedEntry | undefined => {
    try {
      return validate(entry, onLoss);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      onLoss({ reason: 'malformed-record', place: entry.place, detail: `${entry.kind} left out: nested too deeply` });
      return undefined;
    }
  };
  return {
    check(raw) {
      const entry = validated(raw);
      if (entry === undefined) return undefined;
      if (entry.kind === 'session') {
        if (sessions.has(entry.native_id)) {
          onLoss({
            reason: 'duplicate-id',
            place: entry.place,
            detail: `the session ${excerpt(entry.native_id)} was there before: gone on with`,
          });
          return undefined;
        }
        sessions.set(entry.native_id, { open: new Map(), seen: new Map(), latest: undefined });
        return entry;
      }
      const state = sessions.get(entry.session);
      if (state === undefined) {
        onLoss({
          reason: 'malformed-record',
          place: entry.place,
          detail: `${entry.kind} of no session (${excerpt(entry.session)}): left out`,
        });
        return undefined;
      }
      checkClock(state, entry, onLoss);
      if (entry.kind === 'call') return checkCall(state, entry, onLoss);
      return entry.kind === 'result' ? checkResult(state, entry, onLoss) : entry;
    },
    finish() {
      for (const { open } of sessions.values()) {
        for (const [id, calls] of open) {
          for (const { place } of calls) onLoss({ reason: 'missing-result', place, detail: `the call ${excerpt(id)} has no result` });
        }
      }
    },
  };
}
