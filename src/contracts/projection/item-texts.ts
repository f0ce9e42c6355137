import type { ObjectId } from '../../objects/ids.js';
import type { Projection } from './project-session.js';

/** Returns a function that maps the name of an entry or object to its texts, for redaction. */
export function textsOf({ entries, files }: Projection): (name: string) => readonly string[] {
  const texts = new Map<string, string[]>();
  const add = (name: string | undefined, text: string | null | undefined): void => {
    if (name === undefined || typeof text !== 'string') return;
    const known = texts.get(name);
    if (known === undefined) texts.set(name, [text]);
    else known.push(text);
  };
  for (const entry of entries) {
    if (entry.kind === 'approval') continue;
    const names: readonly (string | ObjectId | undefined)[] =
      entry.kind === 'result' ? [entry.id, entry.call, entry.native] : [entry.id, entry.native];
    for (const name of new Set(names)) add(name, entry.text);
  }
  for (const { metadata, content } of files) add(metadata.id, content);
  return (name) => texts.get(name) ?? [];
}
