import type { AssemblyInput } from '../../../src/assembly/layout.js';
import type { ObjectMetadata } from '../../../src/assembly/metadata.js';
import { hashText } from '../../../src/objects/hashes.js';
import { objectId } from '../../../src/objects/ids.js';
import type { Message } from '../../../src/objects/object-type.js';

/** Returns metadata of a file with the given text; null means no text. */
export function fileOf(
  id: string,
  text: string | null,
  more: Partial<ObjectMetadata<'file'>> = {},
): ObjectMetadata<'file'> {
  const hash = text === null ? null : hashText(text);
  return {
    type: 'file',
    id: objectId(id),
    displayPath: `/${id}.ts`,
    fileType: 'ts',
    charCount: text?.length ?? 0,
    state: text === null ? 'stub' : 'indexed',
    fileHash: hash,
    contentHash: hash,
    ...more,
  };
}

/** Returns metadata of a tool call with the given output. */
export function callOf(
  id: string,
  output: string | null,
  more: Partial<ObjectMetadata<'toolcall'>> = {},
): ObjectMetadata<'toolcall'> {
  const contentHash = output === null ? null : hashText(output);
  return {
    type: 'toolcall',
    id: objectId(id),
    tool: 'bash',
    status: 'ok',
    contentHash,
    charCount: output?.length ?? 0,
    fileRefs: [],
    wholeRead: false,
    ...more,
  };
}

/** Returns an input that is empty except for the given fields. */
export function inputOf(
  more: Omit<Partial<AssemblyInput>, 'options'> & { readonly strict?: boolean; readonly shortIds?: boolean },
): AssemblyInput {
  const { strict = false, shortIds = false, ...parts } = more;
  return { systemPrompt: null, pool: [], turns: [], active: [], options: { strict, shortIds }, ...parts };
}

export const turnOf = (...messages: readonly Message[]) => [{ turn: 1, messages }];
