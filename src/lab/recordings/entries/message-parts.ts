import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';

/** What a part of a message is as text: its text, or the line that stands for it. */
type PartText = (part: JsonObject) => string | undefined;

const field = (part: JsonObject, name: string): string | undefined => {
  const value = part[name];
  return typeof value === 'string' ? value : undefined;
};

const text: PartText = (part) => field(part, 'text') ?? field(part, 'content');

/** The place of a medium's data: in the part itself, or one object further in. */
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
  const url = field(medium, 'url') ?? field(medium, 'fileUri');
  const inline = url === undefined ? undefined : /^data:([^;,]*)[^,]*,(.*)$/s.exec(url);
  const type = inline?.[1] ?? field(medium, 'media_type') ?? field(medium, 'mimeType') ?? field(medium, 'format');
  const data = inline?.[2] ?? field(medium, 'data');
  const words = [kind, ...(type === undefined || type === '' ? [] : [type])];
  if (data !== undefined) words.push(`${Buffer.byteLength(data, 'base64')} bytes`);
  else if (url !== undefined) words.push(url.slice(0, 200));
  return `[${words.join(' ')}]`;
}

const medium =
  (kind: string): PartText =>
  (part) =>
    mediumLine(kind, part);

/** Parts of messages that several formats have. */
const PARTS: Readonly<Record<string, PartText>> = {
  text,
  input_text: text,
  output_text: text,
  refusal: (part) => field(part, 'refusal'),
  image: medium('image'),
  image_url: medium('image'),
  input_image: medium('image'),
  input_audio: medium('audio'),
  audio: medium('audio'),
  document: medium('document'),
  file: medium('file'),
};

/** A part that is no text and no medium; `undefined` where the format does not know it either. */
export type OtherPart = (part: JsonObject, place: string) => string | undefined;

/**
 * The content of a message as the model saw it: a text as it is, the text parts of a list each on lines of their own, media one line each
 * (`[image image/png 18234 bytes]`). Parts go to `other` first, which takes what the format keeps elsewhere (it gives the text that stands for it, `''` for
 * none). Whatever nobody knows is told as `unknown-block` and stands as `[kind]`.
 */
export function partsText(content: unknown, place: string, onLoss: OnLoss, other: OtherPart = () => undefined): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts: string[] = [];
  for (const [index, part] of parts.entries()) {
    const here = Array.isArray(content) ? `${place}.content[${index}]` : `${place}.content`;
    if (typeof part === 'string') texts.push(part);
    else texts.push(partText(part, here, onLoss, other));
  }
  return texts.filter((one, index) => one !== '' || typeof parts[index] === 'string').join('\n');
}

function partText(part: unknown, place: string, onLoss: OnLoss, other: OtherPart): string {
  if (!isJsonObject(part)) {
    onLoss({ reason: 'unknown-block', place, detail: `a ${part === null ? 'null' : typeof part} where a part of a message was expected` });
    return part === null ? '' : String(part);
  }
  const kind = field(part, 'type') ?? (typeof part.text === 'string' ? 'text' : Object.keys(part)[0]) ?? '';
  const known = other(part, place) ?? (Object.hasOwn(PARTS, kind) ? PARTS[kind]?.(part) : undefined);
  if (known !== undefined) return known;
  onLoss({ reason: 'unknown-block', place, detail: `a part of the kind ${JSON.stringify(kind)} is kept as its name alone` });
  return `[${kind}]`;
}
