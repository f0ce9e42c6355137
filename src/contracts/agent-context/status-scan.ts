import type { Json } from '../../objects/canonical-json.js';

/** Fields that state the status of a turn, task, call or approval. */
const STATUS_FIELDS: ReadonlySet<string> = new Set([
  'status',
  'state',
  'outcome',
  'result',
  'success',
  'succeeded',
  'ok',
  'failed',
  'error',
  'is_error',
  'exit_code',
  'completed',
  'finished',
  'approved',
  'denied',
  'approval_state',
  'decision',
  'tool_status',
  'turn_status',
  'task_status',
]);
/** Words that state a status if they are the whole value of a field. */
const STATUS_WORDS: ReadonlySet<string> = new Set([
  'ok',
  'fail',
  'failed',
  'failure',
  'success',
  'succeeded',
  'successful',
  'completed',
  'complete',
  'finished',
  'done',
  'approved',
  'denied',
  'rejected',
  'error',
]);
/**
 * Fields that quote an agent or a person, or repeat a name. Words in them are not claims of the
 * bundle.
 */
const QUOTED: ReadonlySet<string> = new Set([
  'content',
  'title',
  'tool',
  'name',
  'question',
  'needed_for',
  'blocked_actions',
  'rationale',
  'query',
  'intent',
  'safe_summary',
  'open_questions',
  'loss_notes',
  'identifiers_not_kept',
  'tags',
  'redaction_reason',
]);

/** Longer texts are not status words. The limit exceeds the longest word. */
const LONGEST_WORD = 40;

const isStatusField = (key: string): boolean =>
  STATUS_FIELDS.has(key) || (/[A-Z -]/.test(key) && STATUS_FIELDS.has(key.toLowerCase().replace(/[- ]/g, '_')));
const isStatusWord = (value: Json | undefined): boolean =>
  typeof value === 'string' && value.length <= LONGEST_WORD && STATUS_WORDS.has(value.trim().toLowerCase());
const isMap = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Removes statuses from foreign data, because the draft leaves statuses to the runtime. */
export function withoutStatus(value: Json): Json {
  if (Array.isArray(value)) return value.filter((one) => !isStatusWord(one)).map(withoutStatus);
  if (!isMap(value)) return value;
  const kept = Object.entries(value).filter(
    ([key, one]) => QUOTED.has(key) || !(isStatusField(key) || isStatusWord(one)),
  );
  return Object.fromEntries(kept.map(([key, one]) => [key, QUOTED.has(key) ? one : withoutStatus(one)]));
}

/**
 * Returns the paths at which an object states the status of a turn, task, call or approval. Skips
 * quoted text, because an item's text may contain anything.
 * @param own fields with the object's own state, which is not a runtime status
 */
export function statusFindings(value: Json, own: readonly string[] = []): readonly string[] {
  const findings: string[] = [];
  const look = (one: Json, path: readonly (string | number)[], allowed: readonly string[]): void => {
    if (typeof one !== 'object' || one === null) return;
    for (const [key, inside] of Array.isArray(one) ? one.entries() : Object.entries(one)) {
      const isField = typeof key === 'string';
      if (isField && (QUOTED.has(key) || allowed.includes(key))) continue;
      if ((isField && isStatusField(key)) || isStatusWord(inside)) findings.push([...path, key].join('.'));
      else if (typeof inside === 'object') look(inside, [...path, key], []);
    }
  };
  look(value, [], own);
  return findings;
}
