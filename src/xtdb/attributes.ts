/**
 * What the value of an attribute is, at every version of every document (decision G9). One attribute, one index type.
 *
 * - `id`: a string that is not empty
 * - `string`, `nullable-string`
 * - `long`: a safe integer
 * - `boolean`
 * - `nested`: any JSON value, indexed as one map with string keys; null stays null
 */
export type AttributeType = 'id' | 'string' | 'nullable-string' | 'long' | 'boolean' | 'nested';

/**
 * Every attribute that a document may have at its top level, with its type [§2.2, §2.6, decision G9].
 *
 * Only these names ever become keywords. A document with any other is refused by name before anything is sent.
 */
export const ATTRIBUTES = {
  'xt/id': 'id',
  type: 'string',
  source: 'nested',
  content: 'nullable-string',
  file_type: 'string',
  char_count: 'long',
  file_hash: 'nullable-string',
  content_hash: 'nullable-string',
  metadata_hash: 'string',
  object_hash: 'string',
  identity_hash: 'string',
  tool: 'string',
  args: 'nested',
  args_display: 'string',
  status: 'string',
  chat_ref: 'nullable-string',
  file_refs: 'nested',
  session_ref: 'nullable-string',
  turn_count: 'long',
  toolcall_refs: 'nested',
  turns: 'nested',
  session_id: 'string',
  system_prompt_ref: 'nullable-string',
  session_index: 'nested',
  metadata_pool: 'nested',
  active_set: 'nested',
  pinned_set: 'nested',
  // Storage only (decision G2): no hash covers these and no reader of documents sees them.
  gone: 'boolean',
  whole: 'string',
  epoch: 'long',
  upto: 'long',
  seq: 'long',
  parent: 'nested',
  snapshot_ref: 'string',
  assembly_ref: 'string',
  body: 'nested',
  text: 'string',
  size: 'long',
} as const satisfies Readonly<Record<string, AttributeType>>;

/** The name of an attribute of the list. */
export type AttributeName = keyof typeof ATTRIBUTES;

/** The type of an attribute; `undefined` if the name is not on the list. */
export const attributeType = (name: string): AttributeType | undefined =>
  Object.hasOwn(ATTRIBUTES, name) ? ATTRIBUTES[name as AttributeName] : undefined;
