/**
 * The content that an erasure order removes. Each part of the program that keeps copies of recorded
 * content outside the database receives it.
 */
export interface Forgotten {
  /** Sessions erased whole, by their ids. */
  readonly sessions: ReadonlySet<string>;
  /**
   * Ids of erased documents: objects, and parts such as `step:{session}:{seq}~` and
   * `chunk:{sha256}~`.
   */
  readonly documents: ReadonlySet<string>;
  /** Texts that the order names. A copy that contains one of them is erased, too. */
  readonly texts: readonly string[];
}

/** Returns the forms of a text in stored bytes: as it is, inside JSON, and inside JSON in JSON. */
export function formsOf(text: string): readonly string[] {
  const once = JSON.stringify(text).slice(1, -1);
  return [...new Set([text, once, JSON.stringify(once).slice(1, -1)])];
}

const encoded = (text: string): readonly Buffer[] => {
  const wide = Buffer.from(text, 'utf16le');
  return [Buffer.from(text), wide, Buffer.from(wide).swap16()];
};

/**
 * Returns whether the bytes of a file hold one of some texts: in UTF-8 or UTF-16, with either line
 * end, or inside JSON.
 */
export function bytesHold(bytes: Buffer, texts: readonly string[]): boolean {
  const forms = texts.flatMap((text) => [...formsOf(text), text.replaceAll('\n', '\r\n')]);
  return [...new Set(forms)].flatMap(encoded).some((form) => bytes.includes(form));
}

/**
 * Erases the copies of recorded content that one part of the program keeps in a data folder.
 * `program.ts` lists all of them.
 */
export interface Forgetter {
  /** The copies, as a noun for plans: `the search index`. */
  readonly keeps: string;
  /** Returns one line for each copy that the order concerns. Changes nothing. */
  find(dataDir: string, forgotten: Forgotten): Promise<readonly string[]>;
  /**
   * Erases these copies. When it resolves, no file of the data folder holds their bytes. A resumed
   * erasure calls it again, so it must not fail on copies that are gone.
   *
   * @throws an error that names the process that must end first, if a living one holds a copy
   */
  forget(dataDir: string, forgotten: Forgotten): Promise<void>;
}
