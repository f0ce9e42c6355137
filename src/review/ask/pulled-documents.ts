import { EdnList, EdnMap, EdnSymbol, type EdnValue, Keyword } from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import type { Json } from '../../objects/canonical-json.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { ownMember } from '../../values/own-member.js';
import type { FoldedValues } from './folded-values.js';
import { symbolNames } from './query-terms.js';
import { attributeAsked, type Kept, SSOT_ATTRIBUTES } from './ssot-attributes.js';

type Document = { readonly [attribute: string]: Json };

/**
 * The parts of a document that a pull takes: some or all attributes, and nested pulls for
 * attributes that name other documents.
 */
export interface PullShape {
  readonly isWhole: boolean;
  readonly attributes: readonly string[];
  readonly joins: readonly { readonly attribute: string; readonly shape: PullShape }[];
}

/** Maximum characters of documents and contents in the answer of one query. */
const MOST_CHARACTERS = 64 * 1_048_576;
/** Number of documents that are read concurrently. */
const PAGE = 200;
/** Kinds of attributes that heads store with the same value as the document. */
const ON_HEADS: ReadonlySet<Kept | undefined> = new Set(['direct', 'shared', 'map', 'list']);

const refused = (what: string): HistoryError =>
  new HistoryError(
    'query-refused',
    `a pull takes [*], attributes and joins such as {:chat_ref [:type]}, not ${what}: ask for the rest with clauses`,
  );

function shapeOf(pattern: EdnValue | undefined): PullShape {
  if (!Array.isArray(pattern)) throw refused('a pattern that is not a vector');
  const attributes: string[] = [];
  const joins: PullShape['joins'][number][] = [];
  let isWhole = false;
  for (const part of pattern as readonly EdnValue[]) {
    if (part instanceof EdnSymbol && part.name === '*') isWhole = true;
    else if (part instanceof EdnMap) {
      for (let i = 0; i < part.flat.length; i += 2)
        joins.push({ attribute: attributeAsked(part.flat[i]), shape: shapeOf(part.flat[i + 1]) });
    } else if (part instanceof Keyword && part.name.startsWith('_'))
      throw refused(`:${part.name}, which goes backwards`);
    else if (part instanceof Keyword) attributes.push(attributeAsked(part));
    else throw refused(part instanceof EdnList ? 'attributes with options' : 'other parts');
  }
  return { isWhole, attributes, joins };
}

/** Returns the pull of a `:find` element with its variable. Undefined for another element. */
export function pullOf(element: EdnValue): { readonly variable: EdnValue; readonly shape: PullShape } | undefined {
  if (!(element instanceof EdnList) || symbolNames(element.items)[0] !== 'pull') return undefined;
  const [, variable, pattern] = element.items;
  if (!(variable instanceof EdnSymbol)) throw refused('anything but a variable to pull');
  return { variable, shape: shapeOf(pattern) };
}

/** Counts the size of an answer and stops it at the limit. */
export class AnswerSize {
  readonly #what: string;
  readonly #way: string;
  readonly #most: number;
  #characters = 0;

  /** `most` is the limit. The error names the counted values (`what`) and a remedy (`way`). */
  constructor({
    what = 'the documents that the query pulls',
    way = 'ask for fewer rows (--limit), or for fewer attributes',
    most = MOST_CHARACTERS,
  } = {}) {
    this.#what = what;
    this.#way = way;
    this.#most = most;
  }

  /** @throws {HistoryError} `query-too-wide` */
  add(value: Json): void {
    this.#characters += typeof value === 'string' ? value.length : JSON.stringify(value).length;
    if (this.#characters <= this.#most) return;
    throw new HistoryError('query-too-wide', `${this.#what} hold more than ${this.#most} characters: ${this.#way}`);
  }
}

/** The snapshot and the folded values that a pull reads, and the size limit of its answer. */
export interface PullSources {
  readonly snapshot: StoreSnapshot;
  readonly values: FoldedValues;
  readonly size: AnswerSize;
}

async function documentsOf(
  { snapshot, values }: PullSources,
  ids: readonly string[],
  shape: PullShape,
): Promise<ReadonlyMap<string, Document>> {
  const wanted = [...shape.attributes, ...shape.joins.map(({ attribute }) => attribute)];
  if (!shape.isWhole && wanted.every((attribute) => ON_HEADS.has(ownMember(SSOT_ATTRIBUTES, attribute)))) {
    return new Map([...(await snapshot.heads(ids))].map(([id, { document }]) => [id, document as Document]));
  }
  const isFolded = (id: string): boolean => id.startsWith('chat:') || id.startsWith('session:');
  const folded = (await values.documents(ids.filter(isFolded))).map(
    (document) => [document['xt/id'], document as unknown as Document] as const,
  );
  const others = [...(await snapshot.getMany(ids.filter((id) => !isFolded(id))))];
  return new Map<string, Document>([
    ...folded,
    ...others.map(([id, { version }]) => [id, version as unknown as Document] as const),
  ]);
}

const namedBy = (value: Json | undefined): readonly string[] =>
  typeof value === 'string'
    ? [value]
    : Array.isArray(value)
      ? value.filter((one): one is string => typeof one === 'string')
      : [];

/**
 * Applies a pull to the documents under some ids, as the SSOT's documents have them (decision G1).
 * Ids without a document are absent.
 */
export async function pulledDocuments(
  sources: PullSources,
  ids: readonly string[],
  shape: PullShape,
): Promise<ReadonlyMap<string, Json>> {
  const pulled = new Map<string, Json>();
  const unique = [...new Set(ids)];
  for (let i = 0; i < unique.length; i += PAGE) {
    const documents = await documentsOf(sources, unique.slice(i, i + PAGE), shape);
    const joined = new Map<string, ReadonlyMap<string, Json>>();
    for (const { attribute, shape: inner } of shape.joins) {
      const named = [...documents.values()].flatMap((document) => namedBy(document[attribute]));
      joined.set(attribute, await pulledDocuments(sources, named, inner));
    }
    for (const [id, document] of documents) {
      const found = projected(document, shape, joined);
      sources.size.add(found);
      pulled.set(id, found);
    }
  }
  return pulled;
}

function projected(document: Document, shape: PullShape, joined: ReadonlyMap<string, ReadonlyMap<string, Json>>): Json {
  const found: Record<string, Json> = {};
  for (const attribute of shape.isWhole ? Object.keys(SSOT_ATTRIBUTES) : shape.attributes) {
    const value = document[attribute];
    if (value !== undefined) found[attribute] = value;
  }
  for (const [attribute, others] of joined) {
    const value = document[attribute];
    if (typeof value === 'string') found[attribute] = others.get(value) ?? {};
    else if (Array.isArray(value)) found[attribute] = value.map((id) => others.get(String(id)) ?? {});
  }
  return found;
}
