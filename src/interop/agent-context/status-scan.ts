import type { Json } from '../../objects/canonical-json.js';

/** Fields by which a record would say how a turn, task, call or approval went. */
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
/** Words that as the whole of a value say the same. */
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
/** What an agent or a person wrote, or a name that was given elsewhere: quoted, said by nobody here. */
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

/** Longer than any of the words, with room around it. */
const LONGEST_WORD = 40;

const isStatusField = (key: string): boolean =>
  STATUS_FIELDS.has(key) || (/[A-Z -]/.test(key) && STATUS_FIELDS.has(key.toLowerCase().replace(/[- ]/g, '_')));
const isStatusWord = (value: Json | undefined): boolean =>
  typeof value === 'string' && value.length <= LONGEST_WORD && STATUS_WORDS.has(value.trim().toLowerCase());
const isMap = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Somebody else's value without what says how anything went: the draft leaves that to the runtime. */
export function withoutStatus(value: Json): Json {
  if (Array.isArray(value)) return value.filter((one) => !isStatusWord(one)).map(withoutStatus);
  if (!isMap(value)) return value;
  const kept = Object.entries(value).filter(([key, one]) => QUOTED.has(key) || !(isStatusField(key) || isStatusWord(one)));
  return Object.fromEntries(kept.map(([key, one]) => [key, QUOTED.has(key) ? one : withoutStatus(one)]));
}

/**
 * Where a record says how a turn, a task, a call or an approval went, as paths; none where it does not. What it quotes is not looked at: the text of an item may say
 * anything.
 * @param own fields of this name are the record's own and no status of a runtime
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
