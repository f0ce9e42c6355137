import type { ContentType } from '../objects/object-type.js';
import type { FileState, ObjectMetadata } from './metadata.js';
import type { NameOf } from './names.js';
import { renderedValue } from './rendered-value.js';

type LineOf<T extends ContentType> = (metadata: ObjectMetadata<T>, nameOf: NameOf, strict: boolean) => readonly string[];

/** How a file's line ends [§4.1]; by the letter a deleted file is unread, since its file_hash is null (decision C3). */
const FILE_ENDINGS: Readonly<Record<FileState, (charCount: number, strict: boolean) => string>> = {
  stub: () => '[unread]',
  indexed: (charCount) => `char_count=${charCount}`,
  'not-text': (charCount) => `char_count=${charCount}`,
  deleted: (_charCount, strict) => (strict ? '[unread]' : '[deleted]'),
};

const LINES: { readonly [T in ContentType]: LineOf<T> } = {
  file: ({ id, displayPath, fileType, charCount, state }, nameOf, strict) => [
    `id=${nameOf(id)}`,
    'type=file',
    `path=${renderedValue(displayPath)}`,
    `file_type=${renderedValue(fileType)}`,
    FILE_ENDINGS[state](charCount, strict),
  ],
  toolcall: ({ id, tool, status }, nameOf) => [
    `id=${nameOf(id)}`,
    'type=toolcall',
    `tool=${renderedValue(tool)}`,
    `status=${renderedValue(status)}`,
  ],
};

/** The line of a content object in the metadata pool summary [§4.1]. */
export function metadataLine(metadata: ObjectMetadata, nameOf: NameOf, strict: boolean): string {
  return (LINES[metadata.type] as LineOf<ContentType>)(metadata, nameOf, strict).join(' ');
}

/** The line that stands in the chat for a tool call and its output [§4.1, decision E2]. */
export function referenceLine({ id, tool, status }: ObjectMetadata<'toolcall'>, nameOf: NameOf): string {
  return `toolcall_ref id=${nameOf(id)} tool=${renderedValue(tool)} status=${renderedValue(status)}`;
}
