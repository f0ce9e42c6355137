import { renderedValue } from '../assembly/rendered-value.js';
import { isJsonObject } from '../values/json-object.js';
import type { ReportedContent } from './message-schema.js';

type Part = Readonly<Record<string, unknown>>;

/** Kinds of blocks that are recorded as separate messages or calls. */
export const CALL_PARTS: ReadonlySet<string> = new Set(['tool_use', 'toolCall', 'tool_result']);

const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'input_text', 'output_text']);

const asPart = (value: unknown): Part | undefined => (isJsonObject(value) ? (value as Part) : undefined);
const asText = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** The data of a block that is an image, sound or file: its type, and its bytes or location. */
interface Media {
  readonly type?: string | undefined;
  readonly base64?: string | undefined;
  readonly url?: string | undefined;
}

function fromUrl(url: string): Media {
  const data = /^data:([^;,]*)((?:;[^;,]*)*),/.exec(url);
  if (data === null) return { url };
  return { type: asText(data[1]), base64: url.slice(data[0].length) };
}

/** Returns the media data of a block, which providers' APIs put into different fields. */
function mediaOf(part: Part): Media {
  const nested =
    asPart(part.image_url) ??
    asPart(part.input_audio) ??
    asPart(part.file) ??
    asPart(part.source) ??
    asPart(part.resource) ??
    part;
  const type =
    asText(nested.media_type) ??
    asText(nested.mimeType) ??
    asText(nested.mime_type) ??
    asText(nested.format) ??
    asText(part.mimeType);
  const url = asText(part.image_url) ?? asText(nested.url) ?? asText(nested.uri) ?? asText(nested.file_data);
  const fromText = url === undefined ? {} : fromUrl(url);
  return {
    ...fromText,
    type: type ?? fromText.type,
    base64: asText(nested.data) ?? asText(nested.blob) ?? fromText.base64,
  };
}

/** Returns the number of bytes that a base64 text encodes. */
function decodedBytes(base64: string): number {
  const digits = base64.replace(/[\s=]+/g, '').length;
  return Math.floor((digits * 3) / 4);
}

const KINDS: ReadonlyMap<string, string> = new Map([
  ['image_url', 'image'],
  ['input_image', 'image'],
  ['input_audio', 'audio'],
  ['input_file', 'file'],
]);

/**
 * Returns the line for a block that is not text (decision B4), such as `[image image/png 18234
 * bytes]`.
 */
function mediaLine(part: Part): string {
  const kind = asText(part.type) ?? 'part';
  const { type, base64, url } = mediaOf(part);
  const words = [KINDS.get(kind) ?? kind, ...(type === undefined ? [] : [type])];
  if (base64 !== undefined) words.push(`${decodedBytes(base64)} bytes`);
  else if (url !== undefined) words.push(url.slice(0, 200).toWellFormed());
  else words.push(`${Buffer.byteLength(JSON.stringify(part))} bytes`);
  return `[${words.map((word) => (/^\d+ bytes$/.test(word) ? word : renderedValue(word))).join(' ')}]`;
}

/**
 * Returns the content of a message or result as one text (decisions B4, B6). Text parts are joined
 * by newlines, and every other part becomes one line. Calls and results are left out, because they
 * become separate objects.
 */
export function contentText(content: ReportedContent | undefined): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  return content
    .filter(({ type }) => !CALL_PARTS.has(type))
    .map((part) => (TEXT_PARTS.has(part.type) && typeof part.text === 'string' ? part.text : mediaLine(part)))
    .join('\n');
}
