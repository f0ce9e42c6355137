import type { ObjectId, Sha256 } from '../../objects/ids.js';
import { keptArgsHash } from '../../objects/kept-args.js';
import { parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { contentPartHash } from '../../store/head.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { SearchedKind } from './kinds.js';
import type { SessionScope } from './session-scope.js';

/** A place with a text: a message, or the content or the arguments of one version. */
export type SearchedPlace = {
  readonly kind: SearchedKind;
  /** Beginning of its valid time, in milliseconds since 1970. */
  readonly at: number;
  /** The sessions that have the text. The first one provides its path and contexts. */
  readonly scopes: readonly SessionScope[];
} & (
  | { readonly step: Step; readonly object?: undefined }
  | {
      readonly step?: undefined;
      readonly object: ObjectId;
      readonly part: 'content' | 'arguments';
      readonly head: HistoryHead;
    }
);

/** Selects the places to search. */
export interface PlaceFilter {
  readonly kind?: SearchedKind | undefined;
  /** Accepts the path of a file. Texts without a path are left out. */
  readonly path?: ((path: string) => boolean) | undefined;
  /** Leaves out the calls of a tool. */
  readonly exceptTool?: string | undefined;
}

/** Number of objects whose versions are read concurrently. */
const OBJECTS_AT_ONCE = 64;

const isSearched = (type: unknown): type is Exclude<SearchedKind, 'message'> =>
  type === 'toolcall' || type === 'file' || type === 'system_prompt';

/** Returns the path of a file's version as a session shows it. Undefined for all others. */
export function pathOf({ document }: HistoryHead, { paths }: SessionScope): string | undefined {
  const source = document?.type === 'file' ? parseSource(document.source) : null;
  return source === null ? undefined : paths.display(source);
}

/** Returns the places of one version that a filter selects. */
export function placesOf(
  scope: SessionScope,
  { object, head }: { readonly object: ObjectId; readonly head: HistoryHead },
  { kind, path, exceptTool }: PlaceFilter,
): readonly SearchedPlace[] {
  const type = head.document?.type;
  if (!isSearched(type) || (kind !== undefined && kind !== type)) return [];
  if (type === 'toolcall' && exceptTool !== undefined && head.document?.tool === exceptTool) return [];
  const shown = path === undefined ? undefined : pathOf(head, scope);
  if (path !== undefined && (shown === undefined || !path(shown))) return [];
  const place = { kind: type, at: head.validTime.getTime(), scopes: [scope], object, head };
  const content = { ...place, part: 'content' } as const;
  return type === 'toolcall' ? [content, { ...place, part: 'arguments' }] : [content];
}

/** Returns every place of a session that a filter selects, by walking its steps and objects. */
export async function everyPlace(scope: SessionScope, filter: PlaceFilter): Promise<readonly SearchedPlace[]> {
  const { kind, path } = filter;
  const places: SearchedPlace[] = [];
  if (path === undefined && (kind === undefined || kind === 'message')) {
    for (const step of await scope.steps())
      if (step.message !== undefined) places.push({ kind: 'message', at: step.at, scopes: [scope], step });
  }
  if (kind === 'message') return places;
  const objects = await scope.objects();
  for (let i = 0; i < objects.length; i += OBJECTS_AT_ONCE) {
    const batch = objects.slice(i, i + OBJECTS_AT_ONCE);
    const heads = await Promise.all(batch.map((object) => scope.heads(object)));
    for (const [j, object] of batch.entries())
      for (const head of heads[j] ?? []) places.push(...placesOf(scope, { object, head }, filter));
  }
  return places;
}

/** Identifies a place across sessions. */
const placeKey = ({ object, step, ...place }: SearchedPlace): string => {
  const [scope] = place.scopes;
  if (step !== undefined) return `${scope?.session}\0${step.seq}`;
  const { head, part } = place as SearchedPlace & { readonly head: HistoryHead; readonly part: string };
  const line = scope?.isShared === true ? '' : scope?.session;
  return `${object}\0${head.txId}\0${head.validTime.getTime()}\0${part}\0${line}`;
};

/** Merges the places of several sessions. Each place occurs once, the newest first. */
export function mergedPlaces(places: readonly SearchedPlace[]): readonly SearchedPlace[] {
  const found = new Map<string, SearchedPlace>();
  for (const place of places) {
    const key = placeKey(place);
    const before = found.get(key);
    found.set(key, before === undefined ? place : { ...before, scopes: [...before.scopes, ...place.scopes] });
  }
  return [...found].sort(([a, x], [b, y]) => y.at - x.at || (a < b ? -1 : 1)).map(([, place]) => place);
}

/** A version of an object with a searched text, and the part that is searched. */
export interface VersionPart extends Pick<HistoryHead, 'document' | 'marks'> {
  readonly part: 'content' | 'arguments';
}

/** Formats arguments as lines, one for each value, so that a match shows only its own value. */
function argumentLines(value: unknown, name: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [`${name}: ${String(value)}`];
  return Object.entries(value).flatMap(([key, one]) => argumentLines(one, name === '' ? key : `${name}.${key}`));
}

/** Returns the hashes under which a version's text may be stored, the whole text first. */
export function textHashes({ document, marks, part }: VersionPart): readonly Sha256[] {
  if (part === 'arguments') return [keptArgsHash(document?.args)].filter((hash) => hash !== undefined);
  if (document === undefined || document.content === null) return [];
  const { file_hash: file, content_hash: content } = document;
  const whole = marks.whole ?? (typeof file === 'string' && file !== content ? (file as Sha256) : undefined);
  return [whole, contentPartHash(document)].filter((hash) => hash !== undefined);
}

/** Returns the text of a version, given the stored texts. Undefined for a version without text. */
export function textOfVersion(version: VersionPart, texts: ReadonlyMap<Sha256, string>): string | undefined {
  for (const hash of textHashes(version)) {
    const text = texts.get(hash);
    if (text !== undefined) return text;
  }
  const { document } = version;
  if (version.part === 'arguments') return argumentLines(document?.args ?? {}, '').join('\n');
  return typeof document?.content === 'string' ? document.content : undefined;
}

/**
 * Reads the texts of some places in order. Each is the whole text, even if `content` is abridged.
 * Undefined for a version without text.
 */
export async function textsOf(
  snapshot: StoreSnapshot,
  places: readonly SearchedPlace[],
): Promise<readonly (string | undefined)[]> {
  const versions = places.map((place) =>
    place.object === undefined ? undefined : { ...place.head, part: place.part },
  );
  const hashes = versions.flatMap((version) => (version === undefined ? [] : textHashes(version)));
  const texts = await snapshot.texts([...new Set(hashes)]);
  return places.map((place, i) => {
    const version = versions[i];
    return version === undefined ? place.step?.message?.text : textOfVersion(version, texts);
  });
}
