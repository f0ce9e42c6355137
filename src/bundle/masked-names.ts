import type { Json } from '../objects/canonical-json.js';
import { hashText, sourcedIdentityHash } from '../objects/hashes.js';
import { canonicalPath, filesystemId, type ObjectId, type SessionId } from '../objects/ids.js';
import { mapTexts } from '../objects/map-texts.js';
import { type FilesystemSource, filesystemSource } from '../objects/source.js';
import { MASK, type ValueMask } from '../redaction/mark.js';

/** Hides texts of a session, and some of its objects as a whole. */
export interface ObjectMask extends ValueMask {
  /** Whether all that an object says is hidden. */
  hides(id: string): boolean;
}

/** What is hidden in a bundle, and how many rules say so. */
export interface BundleMask extends ObjectMask {
  /** By where they come from; never what they hide. */
  readonly rules: { readonly session: number; readonly texts: number; readonly patterns: number };
}

/** The shortest beginning of an id that an object may be called by in a text. */
const LEAST_PREFIX = 6;
const DIGITS = /(?<![0-9a-f])[0-9a-f]{6,64}(?![0-9a-f])/g;

/** A name that no other has: with a number behind it, in front of the session that it ends in. */
function numbered(name: string, number: number): string {
  const at = name.lastIndexOf('@');
  return at < 0 ? `${name}~${number}` : `${name.slice(0, at)}~${number}${name.slice(at)}`;
}

/**
 * What files and calls are called where names are masked as well: a file's id is the hash of where it lies, so a file of which the path is masked is another object. Two that would be called alike are told apart by numbers, in
 * the order in which they are added, and those of two sessions by the session: nobody can say any more whether they were one.
 */
export class MaskedNames {
  readonly #mask: BundleMask;
  readonly #session: string;
  readonly #made = new Map<string, string>();
  readonly #originals = new Map<string, string>();
  readonly #sources = new Map<string, FilesystemSource>();
  readonly #places = new Set<string>();
  /** The ids of files that are called otherwise, by their beginnings. */
  readonly #byPrefix = new Map<string, string[]>();

  constructor(mask: BundleMask, session: SessionId) {
    this.#mask = mask;
    this.#session = hashText(session).slice(0, 8);
  }

  /** How many names were changed. */
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

  /** What an object is called; one that was not added keeps its id. */
  id<Id extends string>(id: Id): Id {
    return (this.#made.get(id) ?? id) as Id;
  }

  /** The id of an object in the database. */
  original<Id extends string>(id: Id): Id {
    return (this.#originals.get(id) ?? id) as Id;
  }

  /** Where a file lies that was added. */
  source(id: string, source: FilesystemSource): FilesystemSource {
    return this.#sources.get(id) ?? this.folder(source);
  }

  /** Where a folder lies. */
  folder({ filesystemId: filesystem, path }: Pick<FilesystemSource, 'filesystemId' | 'path'>): FilesystemSource {
    const shown = this.#name(path);
    return filesystemSource(filesystemId(this.#mask.masked(filesystem)), canonicalPath(shown.startsWith('/') ? shown : `/${shown}`));
  }

  /** What stands in the place of all that an object says; undefined where not all of it is hidden. */
  markOf(id: string): string | undefined {
    return this.#mask.hides(id) ? MASK : undefined;
  }

  /** A text without what is hidden, files in it called as they are called now, also by the beginnings of their ids. */
  text(text: string): string {
    return this.#renamed(this.#mask.masked(text));
  }

  /** A value, likewise. */
  value(value: Json): Json {
    return mapTexts(this.#mask.maskedValue(value), (text) => this.#renamed(text));
  }

  /** A value of our own in which nothing but ids of objects is called otherwise. */
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
