import { type EdnValue, Keyword } from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { FIELDS } from '../../objects/object-type.js';
import { similarNames } from '../../values/similar-names.js';

/**
 * How the database stores an attribute of the SSOT's documents (decision G2). It decides how a
 * clause of a reviewer's query is rewritten (decision G11).
 *
 * - `direct`: unchanged, on heads only
 * - `shared`: unchanged, also on parts
 * - `text`: long values are in chunks
 * - `map`, `list`: as one nested value
 * - `running`: unchanged on heads. During a turn, the heads of chat and session have the value of
 *   the previous turn
 * - `folded`: not stored; folded from steps
 */
export type Kept = 'direct' | 'shared' | 'text' | 'map' | 'list' | 'running' | 'folded';

/** All attributes of the SSOT's documents [§2.2, §2.6]. */
export const SSOT_ATTRIBUTES: Readonly<Record<string, Kept>> = {
  'xt/id': 'shared',
  type: 'shared',
  source: 'direct',
  content: 'text',
  identity_hash: 'direct',
  file_hash: 'direct',
  content_hash: 'direct',
  metadata_hash: 'running',
  object_hash: 'running',
  file_type: 'direct',
  char_count: 'direct',
  tool: 'direct',
  args: 'map',
  args_display: 'direct',
  status: 'direct',
  chat_ref: 'direct',
  file_refs: 'list',
  turns: 'folded',
  session_ref: 'shared',
  turn_count: 'running',
  toolcall_refs: 'folded',
  session_id: 'direct',
  system_prompt_ref: 'direct',
  session_index: 'folded',
  metadata_pool: 'folded',
  active_set: 'folded',
  pinned_set: 'folded',
};

/** Types with fields that are folded, or newer than their heads. */
export type FoldedType = 'chat' | 'session';

/**
 * Returns the types that have a folded or running attribute. An attribute of every object belongs
 * to both.
 */
export function foldedTypes(attribute: string): readonly FoldedType[] {
  const types = (['chat', 'session'] as const).filter((type) => Object.hasOwn(FIELDS[type], attribute));
  return types.length === 0 ? ['chat', 'session'] : types;
}

/**
 * Returns the name of a queried attribute.
 *
 * @throws {HistoryError} `malformed-query` if it is not a keyword; `query-refused` if the SSOT's
 * documents lack it
 */
export function attributeAsked(attribute: EdnValue | undefined): string {
  if (!(attribute instanceof Keyword))
    throw new HistoryError('malformed-query', 'a clause names its attribute with a keyword, as in [?e :type "file"]');
  const { name } = attribute;
  if (Object.hasOwn(SSOT_ATTRIBUTES, name)) return name;
  const known = Object.keys(SSOT_ATTRIBUTES);
  const near = similarNames(name, known);
  const shown = (near.length === 0 ? known : near).map((one) => `:${one}`).join(' ');
  const hint = `${near.length === 0 ? 'they have' : 'nearest are'} ${shown}`;
  const way = '--storage (storage=true over HTTP) queries the other stored attributes';
  throw new HistoryError('query-refused', `the documents of sessions have no attribute :${name}; ${hint}; ${way}`);
}
