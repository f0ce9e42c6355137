import type { Json } from '../objects/canonical-json.js';
import { hashText, sourcedIdentityHash } from '../objects/hashes.js';
import { canonicalPath, filesystemId, type ObjectId, type SessionId } from '../objects/ids.js';
import { mapTexts } from '../objects/map-texts.js';
import { type FilesystemSource, filesystemSource } from '../objects/source.js';
import { MASK, type ValueMask } from '../redaction/mark.js';

/** A mask that hides texts of a session, and some of its objects completely. */
export interface ObjectMask extends ValueMask {
  /** Returns whether an object is fully hidden. */
  hides(id: string): boolean;
}

/** The mask of a redacted bundle, with the number of its rules. */
export interface BundleMask extends ObjectMask {
  /** Number of rules by origin. The rules themselves are never revealed. */
  readonly rules: { readonly session: number; readonly texts: number; readonly patterns: number };
}

/** Minimum length of an id prefix that names an object in a text. */
const LEAST_PREFIX = 6;
const DIGITS = /(?<![0-9a-f])[0-9a-f]{6,64}(?![0-9a-f])/g;

/** Makes a name unique by a number. If the name has a session suffix, the number precedes it. */
function numbered(name: string, number: number): string {
  const at = name.lastIndexOf('@');
  return at < 0 ? `${name}~${number}` : `${name.slice(0, at)}~${number}${name.slice(at)}`;
}

/**
 * The masked names of files and calls. A file's id is the hash of its location, so a file with a
 * masked path becomes another object. Objects with equal masked names get numbers in the order in
 * which they are added. The same object gets different masked names in different sessions, so the
 * names do not show that both had it.
 */
export class MaskedNames {
  readonly #mask: BundleMask;
  readonly #session: string;
  readonly #made = new Map<string, string>();
  readonly #originals = new Map<string, string>();
  readonly #sources = new Map<string, FilesystemSource>();
  readonly #places = new Set<string>();
  /** The original ids of renamed files, by the start of the id. */
  readonly #byPrefix = new Map<string, string[]>();

  constructor(mask: BundleMask, session: SessionId) {
    this.#mask = mask;
    this.#session = hashText(session).slice(0, 8);
  }

  /** Number of changed names. */
  get count(): number {
    return [...this.#made].filter(([id, made]) => id !== made).length;
  }

  addFile(id: string, source: FilesystemSource): void {
    if (this.#made.has(id)) return;
    const { filesystemId: filesystem, path } = this.folder(source);
    const at = (n: number): string => (n === 1 ? path : numbered(path, n));
    let number = 1;
    while (this.#places.has(`${filesystem}\0${at(number)}`)) number += 1;
    this.#places.add(`${filesystem}\0${at(number)}`);
    const made = filesystemSource(filesystem, canonicalPath(at(number)));
    this.#sources.set(id, made);
    this.#add(id, sourcedIdentityHash('file', made));
  }

  addCall(id: string): void {
    if (this.#made.has(id)) return;
    const made = this.#name(id);
    let number = 1;
    while (this.#originals.has(number === 1 ? made : numbered(made, number))) number += 1;
    this.#add(id, number === 1 ? made : numbered(made, number));
  }

  has(id: string): boolean {
    return this.#made.has(id);
  }

  /** Returns the masked id of an object. An object that was not added keeps its id. */
  id<Id extends string>(id: Id): Id {
    return (this.#made.get(id) ?? id) as Id;
  }

  /** Returns the id of an object in the database. */
  original<Id extends string>(id: Id): Id {
    return (this.#originals.get(id) ?? id) as Id;
  }

  /** Returns the masked location of a file that was added. */
  source(id: string, source: FilesystemSource): FilesystemSource {
    return this.#sources.get(id) ?? this.folder(source);
  }

  /** Returns the masked location of a folder. */
  folder({ filesystemId: filesystem, path }: Pick<FilesystemSource, 'filesystemId' | 'path'>): FilesystemSource {
    const shown = this.#name(path);
    return filesystemSource(
      filesystemId(this.#mask.masked(filesystem)),
      canonicalPath(shown.startsWith('/') ? shown : `/${shown}`),
    );
  }

  /** Returns the placeholder of a fully hidden object. Undefined for other objects. */
  markOf(id: string): string | undefined {
    return this.#mask.hides(id) ? MASK : undefined;
  }

  /**
   * Masks a text. Ids of files in it are replaced by their masked ids, even if the text contains
   * only the start of an id.
   */
  text(text: string): string {
    return this.#renamed(this.#mask.masked(text));
  }

  /** Masks a JSON value like `text`. */
  value(value: Json): Json {
    return mapTexts(this.#mask.maskedValue(value), (text) => this.#renamed(text));
  }

  /** Replaces the object ids in one of our own values. Changes nothing else. */
  ids<Value>(value: Value): Value {
    return mapTexts(value as Json, (text) => this.id(text)) as Value;
  }

  #name(name: string): string {
    const shown = this.#mask.masked(name);
    return shown === name ? name : shown.replaceAll(MASK, `${MASK}${this.#session}`);
  }

  #add(id: string, made: string): void {
    this.#made.set(id, made);
    this.#originals.set(made, id);
    if (id === made || !/^[0-9a-f]{64}$/.test(id)) return;
    const prefix = id.slice(0, LEAST_PREFIX);
    this.#byPrefix.set(prefix, [...(this.#byPrefix.get(prefix) ?? []), id]);
  }

  #renamed(text: string): string {
    if (this.#byPrefix.size === 0) return text;
    return text.replace(DIGITS, (digits) => {
      const id = this.#byPrefix.get(digits.slice(0, LEAST_PREFIX))?.find((one) => one.startsWith(digits));
      return id === undefined ? digits : this.id(id as ObjectId).slice(0, digits.length);
    });
  }
}
