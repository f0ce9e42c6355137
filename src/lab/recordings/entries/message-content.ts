import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import { textAt } from './fields.js';
import { notAnObject } from './losses.js';

/** Renders a part of a message: its text, or the line that stands for it. */
type PartText = (part: JsonObject) => string | undefined;

const text: PartText = (part) => textAt(part, 'text') ?? textAt(part, 'content');

/** The object that holds a medium's data: the part itself, or one inside it. */
function mediumOf(part: JsonObject): JsonObject {
  for (const name of ['source', 'image_url', 'input_audio', 'file', 'inlineData', 'fileData']) {
    const inner = part[name];
    if (isJsonObject(inner)) return inner;
    if (typeof inner === 'string') return { url: inner };
  }
  const [url] = Array.isArray(part.image_urls) ? part.image_urls : [];
  return typeof url === 'string' ? { url } : part;
}

function mediumLine(kind: string, part: JsonObject): string {
  const medium = mediumOf(part);
  const url = textAt(medium, 'url') ?? textAt(medium, 'fileUri');
  const inline = url === undefined ? undefined : /^data:([^;,]*)[^,]*,(.*)$/s.exec(url);
  const type = inline?.[1] ?? textAt(medium, 'media_type') ?? textAt(medium, 'mimeType') ?? textAt(medium, 'format');
  const data = inline?.[2] ?? textAt(medium, 'data');
  const words = [kind, ...(type === undefined || type === '' ? [] : [type])];
  if (data !== undefined) words.push(`${Buffer.byteLength(data, 'base64')} bytes`);
  else if (url !== undefined) words.push(url.slice(0, 200));
  return `[${words.join(' ')}]`;
}

const medium =
  (kind: string): PartText =>
  (part) =>
    mediumLine(kind, part);

/** The kinds of parts that several formats share. */
const PARTS: Readonly<Record<string, PartText>> = {
  text,
  input_text: text,
  output_text: text,
  refusal: (part) => textAt(part, 'refusal'),
  image: medium('image'),
  image_url: medium('image'),
  input_image: medium('image'),
  input_audio: medium('audio'),
  audio: medium('audio'),
  document: medium('document'),
  file: medium('file'),
};

/** Where a message stands, and what takes the losses in its content. */
export interface ContentPlace {
  readonly place: string;
  readonly onLoss: OnLoss;
  /**
   * Renders the parts that the format treats in its own way, before the known kinds are tried: the text that stands for the part, `''` for a part that becomes
   * an entry of its own, undefined for a part that it does not know.
   */
  readonly other?: (part: JsonObject) => string | undefined;
}

/**
 * The content of a message as the model saw it: a text as it is, the text parts of a list each on lines of their own, media one line each
 * (`[image image/png 18234 bytes]`). A part of an unknown kind stands as `[kind]` and is the loss `unknown-block`.
 */
export function partsText(content: unknown, at: ContentPlace): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts = parts.map((part, index) => {
    if (typeof part === 'string') return part;
    return partText(part, { ...at, place: Array.isArray(content) ? `${at.place}.content[${index}]` : `${at.place}.content` });
  });
  return texts.filter((one, index) => one !== '' || typeof parts[index] === 'string').join('\n');
}

function partText(part: unknown, { place, onLoss, other }: ContentPlace): string {
  if (!isJsonObject(part)) {
    onLoss({ ...notAnObject(part, 'a part of a message', place), reason: 'unknown-block' });
    return part === null ? '' : String(part);
  }
  const kind = textAt(part, 'type') ?? (typeof part.text === 'string' ? 'text' : Object.keys(part)[0]) ?? '';
  const known = other?.(part) ?? (Object.hasOwn(PARTS, kind) ? PARTS[kind]?.(part) : undefined);
  if (known !== undefined) return known;
  onLoss({ reason: 'unknown-block', place, detail: `a part of the kind ${JSON.stringify(kind)} is kept as its name alone` });
  return `[${kind}]`;
}
