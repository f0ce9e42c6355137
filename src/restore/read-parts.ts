import { linesAsked } from '../history/ask/call-names.js';
import { sessionCalls } from '../history/ask/session-calls.js';
import type { ObjectId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';

const MOST_PARTS = 4;

/**
 * Returns the parts of files that calls read, in words: `lines 1-200, 340-380`. A listing or a
 * search reads no file.
 */
export async function readParts(
  snapshot: StoreSnapshot,
  steps: readonly Step[],
): Promise<ReadonlyMap<ObjectId, string>> {
  const found = new Map<ObjectId, Set<string>>();
  for (const { reads, failed, args, fileRefs } of (await sessionCalls(snapshot, steps)).values()) {
    if (!reads || failed) continue;
    const lines = linesAsked({ args });
    const text = lines === undefined ? 'a part' : `${lines.from}-${lines.to ?? ''}`;
    for (const id of fileRefs) found.set(id, (found.get(id) ?? new Set()).add(text));
  }
  return new Map([...found].map(([id, parts]) => [id, partsText([...parts])]));
}

function partsText(parts: readonly string[]): string {
  const numbered = parts.filter((part) => part !== 'a part');
  if (numbered.length === 0) return 'a part';
  const more = numbered.length > MOST_PARTS ? ` and ${numbered.length - MOST_PARTS} more` : '';
  return `lines ${numbered.slice(0, MOST_PARTS).join(', ')}${more}`;
}
