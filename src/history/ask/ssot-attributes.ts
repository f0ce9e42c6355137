import { type EdnValue, Keyword } from '../../edn/values.js';
import { FIELDS } from '../../objects/object-type.js';
import { similarNames } from '../../values/similar-names.js';
import { HistoryError } from '../rebuild/history-error.js';

/**
 * How the database holds an attribute of the SSOT's documents (decision G2), and so how a query of a reviewer is answered (decision G11).
 *
 * - `direct`: on heads alone, as it is
 * - `shared`: as it is, and on parts too
 * - `text`: long ones lie in chunks
 * - `map`, `list`: as one nested value
 * - `running`: on heads as it is; while a turn runs, the heads of chat and session hold that of the turn before
 * - `folded`: not at all; it is folded from steps
 */
export type Kept = 'direct' | 'shared' | 'text' | 'map' | 'list' | 'running' | 'folded';

/** Every attribute of the SSOT's documents [§2.2, §2.6]. */
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

/** The types of objects whose fields are folded or run ahead of their heads. */
export type FoldedType = 'chat' | 'session';

/** Whose attribute a folded or running one is; an attribute of every object is one of both. */
export function foldedTypes(attribute: string): readonly FoldedType[] {
  const types = (['chat', 'session'] as const).filter((type) => Object.hasOwn(FIELDS[type], attribute));
  return types.length === 0 ? ['chat', 'session'] : types;
}

/**
 * The name of an attribute that a query asks for.
 * @throws {HistoryError} `malformed-query` for what is no keyword, `query-refused` for an attribute that the SSOT's documents do not have
 */
export function attributeAsked(attribute: EdnValue | undefined): string {
  if (!(attribute instanceof Keyword))
    throw new HistoryError('malformed-query', 'a clause names its attribute with a keyword, as in [?e :type "file"]');
  const { name } = attribute;
  if (Object.hasOwn(SSOT_ATTRIBUTES, name)) return name;
  const known = Object.keys(SSOT_ATTRIBUTES);
  const near = similarNames(name, known);
  const hint = `${near.length === 0 ? 'they have' : 'nearest are'} ${(near.length === 0 ? known : near).map((one) => `:${one}`).join(' ')}`;
  const way = 'what the database holds beside them is asked with --storage (storage=true over HTTP)';
  throw new HistoryError('query-refused', `the documents of sessions have no attribute :${name}; ${hint}; ${way}`);
}
