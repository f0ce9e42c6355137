import { freezeDeep } from './canonical-json.js';
import { DocumentError, quoted } from './errors.js';
import { assignedIdentityHash, hashText, metadataHash, objectHash, sourcedIdentityHash } from './hashes.js';
import { type ObjectId, objectId, type Sha256, sha256 } from './ids.js';
import { FIELDS, type FieldsByType, isObjectType, KINDS, type ObjectType } from './object-type.js';
import { parseSource, type Source } from './source.js';

declare const sealed: unique symbol;

/**
 * The fields of every document, in one shape for all types [§2.2]. Nulls are explicit (decision
 * A2).
 */
export interface Envelope<T extends ObjectType = ObjectType> {
  readonly 'xt/id': ObjectId;
  readonly type: T;
  readonly source: Source | null;
  readonly identity_hash: Sha256;
  readonly content: string | null;
  readonly file_hash: Sha256 | null;
  readonly content_hash: Sha256 | null;
  readonly metadata_hash: Sha256;
  readonly object_hash: Sha256;
}

/**
 * One version of an object: the flat SSOT document with its five hashes [§2.2], frozen. Only
 * `sealVersion` and `restoreVersion` create one, so a version never has a stale hash.
 */
export type ObjectVersion<T extends ObjectType = ObjectType> = T extends ObjectType
  ? Envelope<T> & FieldsByType[T] & { readonly [sealed]: T }
  : never;

/** The input of a version before its hashes are computed. */
export type Unsealed<T extends ObjectType> = {
  readonly type: T;
  readonly fields: FieldsByType[T];
  readonly content: string | null;
  /**
   * Computed by the reader of the raw bytes. Null for unsourced objects, stubs and deleted files.
   */
  readonly file_hash: Sha256 | null;
} & ({ readonly source: Source; readonly id?: undefined } | { readonly source?: undefined; readonly id: string });

const requiredOf = (type: ObjectType): readonly string[] =>
  Object.entries<'required' | 'optional'>(FIELDS[type]).flatMap(([key, need]) => (need === 'required' ? [key] : []));

const REQUIRED: Readonly<Record<ObjectType, readonly string[]>> = {
  file: requiredOf('file'),
  toolcall: requiredOf('toolcall'),
  chat: requiredOf('chat'),
  system_prompt: requiredOf('system_prompt'),
  session: requiredOf('session'),
};

function checkFields(type: ObjectType, fields: object): void {
  const table: Readonly<Record<string, 'required' | 'optional'>> = FIELDS[type];
  for (const key of Object.keys(fields)) {
    if (!Object.hasOwn(table, key))
      throw new DocumentError(
        'unknown-field',
        `a ${type} has no field ${quoted(key)}; its fields: ${Object.keys(table).join(', ')}`,
      );
  }
  const missing = REQUIRED[type].find((key) => !Object.hasOwn(fields, key));
  if (missing !== undefined) throw new DocumentError('missing-field', `a ${type} needs the field ${missing}`);
}

/**
 * Creates a version: computes all five hashes [§2.4] and freezes the document.
 *
 * @throws {DocumentError} if a field is unknown, missing or not plain data
 */
export function sealVersion<T extends ObjectType>(unsealed: Unsealed<T>): ObjectVersion<T> {
  const { type, content, file_hash } = unsealed;
  const fields = unsealed.fields as object;
  const source = unsealed.source ?? null;
  if (KINDS[type].sourced !== (source !== null)) {
    throw new DocumentError(
      'invalid-value',
      `a ${type} is ${KINDS[type].sourced ? 'sourced and needs a source' : 'unsourced and takes no source'}`,
    );
  }
  if (source === null && file_hash !== null) throw new DocumentError('invalid-value', `a ${type} has no file_hash`);
  checkFields(type, fields);
  const identity_hash =
    source === null ? assignedIdentityHash(type, objectId(unsealed.id as string)) : sourcedIdentityHash(type, source);
  const metadata_hash = metadataHash(fields);
  const content_hash = content === null ? null : hashText(content);
  const version = {
    'xt/id': source === null ? objectId(unsealed.id as string) : identity_hash,
    type,
    source,
    content,
    ...fields,
    identity_hash,
    file_hash,
    content_hash,
    metadata_hash,
    object_hash: objectHash({ file_hash, content_hash, metadata_hash }),
  };
  return freezeDeep(version) as unknown as ObjectVersion<T>;
}

const HASHES = ['identity_hash', 'file_hash', 'content_hash', 'metadata_hash', 'object_hash'] as const;

/** Returns the fields that a flat document was sealed from, without its hashes. */
function unseal(document: Readonly<Record<string, unknown>>): Unsealed<ObjectType> {
  const { type } = document;
  if (!isObjectType(type))
    throw new DocumentError(
      'unknown-type',
      `${quoted(type)} is not an object type; known: ${Object.keys(FIELDS).join(', ')}`,
    );
  const envelope = new Set<string>(['xt/id', 'type', 'source', 'content', ...HASHES]);
  const fields = Object.fromEntries(Object.entries(document).filter(([key]) => !envelope.has(key)));
  const content = document.content;
  const fileHash = document.file_hash;
  if (content !== null && typeof content !== 'string')
    throw new DocumentError('invalid-value', `the content of ${quoted(document['xt/id'])} is neither text nor null`);
  if (document.source === undefined)
    throw new DocumentError(
      'missing-field',
      `the document ${quoted(document['xt/id'])} has no source; unsourced objects have an explicit null`,
    );
  const source = parseSource(document.source);
  const base = {
    type,
    fields: fields as never,
    content,
    file_hash: fileHash === null ? null : sha256(String(fileHash)),
  };
  return (source === null ? { ...base, id: String(document['xt/id']) } : { ...base, source }) as Unsealed<ObjectType>;
}

/**
 * Restores a version from a stored SSOT document and compares every stored hash with the recomputed
 * one.
 *
 * @throws {DocumentError} `hash-mismatch` naming the object and the hash if the stored bytes differ
 *   from the sealed ones
 *
 * @example
 * ```ts
 * const { content_hash } = restoreVersion(document);
 * ```
 */
export function restoreVersion(document: Readonly<Record<string, unknown>>): ObjectVersion {
  const version = sealVersion(unseal(document)) as ObjectVersion;
  if (version['xt/id'] !== document['xt/id']) {
    throw new DocumentError(
      'hash-mismatch',
      `the object ${quoted(document['xt/id'])} has a source whose identity is ${version['xt/id']}`,
    );
  }
  for (const name of HASHES) {
    if (version[name] !== document[name]) {
      throw new DocumentError(
        'hash-mismatch',
        `${name} of ${quoted(document['xt/id'])} is stored as ${quoted(document[name])}, computed as ${version[name]}`,
      );
    }
  }
  return version;
}
