import { quoted } from '../objects/errors.js';
import type { SessionId } from '../objects/ids.js';
import type { ObjectStore } from '../store/object-store.js';
import type { TransactionLog } from '../xtdb/tx-log.js';
import { ErasureError } from './erasure-error.js';
import { Inventory, type KnownDocument, type KnownSession, refuseArriving } from './inventory.js';
import { STAYS_MARKED } from './mark-documents.js';
import type { ErasurePlan, Unproved } from './plan.js';
import type { Selection } from './selection.js';

/** A plan for a text or an object, and the texts to search for. */
export type PlannedTexts = Omit<ErasurePlan, 'selection' | 'sessions'> & { readonly texts: readonly string[] };

interface TextsInput {
  readonly log: TransactionLog;
  readonly store: ObjectStore;
  readonly selection: Extract<Selection, { readonly kind: 'text' | 'object' }>;
  readonly shared: boolean;
}

/**
 * Minimum characters of an erased object's content. Shorter content is not searched for in other
 * documents.
 */
const SHORTEST_QUOTED = 16;
/** If there are more steps and objects than this, an erasure may change at most half of them. */
const FEW_DOCUMENTS = 20;

/**
 * Returns the texts of an object's versions.
 * @throws {ErasureError} `unknown-object`, `wrong-kind`
 */
async function textsOfObject(store: ObjectStore, id: string): Promise<readonly string[]> {
  const snapshot = await store.latest();
  const head = (await snapshot.heads([id])).get(id);
  if (head === undefined)
    throw new ErasureError('unknown-object', `there is no object ${quoted(id)}: name it by its whole id`);
  const { type } = head.document;
  if (type !== 'file' && type !== 'toolcall')
    throw new ErasureError(
      'wrong-kind',
      `${quoted(id)} is a ${String(type)}, which is a part of its session: erase the session with --session`,
    );
  const heads = (await snapshot.historyOfHeads(id)).flatMap(({ document, marks }) =>
    document === undefined ? [] : [{ document, marks }],
  );
  const texts: string[] = [];
  for (const found of await snapshot.versionsIn(heads)) {
    const whole = await snapshot.wholeText(found);
    if (whole !== undefined) texts.push(whole.text);
  }
  return [...new Set(texts)].filter((text) => text.replaceAll(/\s/g, '').length >= SHORTEST_QUOTED);
}

const digestIn = (id: string): string => /^chunks?:([0-9a-f]{64})/.exec(id)?.[1] ?? '';
const isText = ({ type }: KnownDocument): boolean => type === 'chunk' || type === 'chunks';
const isTrace = ({ type }: KnownDocument): boolean => type === 'erased' || type === 'unproved';

/**
 * Returns some chunks of long texts with the lists that contain them, and with all chunks that only
 * these lists need.
 */
function wholeTexts(inventory: Inventory, chunks: ReadonlySet<KnownDocument>): ReadonlySet<KnownDocument> {
  const numbers = new Set([...chunks].map(({ id }) => inventory.numberOf(digestIn(id))));
  const lists = [...inventory.documents.values()].filter(({ type }) => type === 'chunks');
  const broken = lists.filter(({ texts }) => [...texts].some((one) => numbers.has(one)));
  const needed = new Set(lists.filter((one) => !broken.includes(one)).flatMap(({ texts }) => [...texts]));
  const parts = broken.flatMap(({ texts }) =>
    inventory.digestsOf(new Set([...texts].filter((one) => !needed.has(one)))),
  );
  return new Set([...chunks, ...broken, ...parts.flatMap((digest) => inventory.identifiedBy(digest))]);
}

/**
 * Returns the first step of a session that is erased or names an erased document. Undefined if
 * there is none.
 */
function firstTouched({ id, steps }: KnownSession, erased: ReadonlyMap<string, KnownDocument>): number | undefined {
  const own = [...erased.values()].some(({ session, type }) => session === id && type === 'system_prompt');
  if (own) return 0;
  const touched = [...steps].flatMap(([seq, { names }]) =>
    erased.has(`step:${id}:${seq}~`) || [...names].some((name) => erased.has(name)) ? [seq] : [],
  );
  return touched.length === 0 ? undefined : Math.min(...touched);
}

function unprovedOf(inventory: Inventory, erased: ReadonlyMap<string, KnownDocument>): readonly Unproved[] {
  const from = new Map<SessionId, number>();
  for (const session of inventory.sessions.values()) {
    const first = firstTouched(session, erased);
    if (first !== undefined) from.set(session.id, first);
  }
  // A fork also shows the steps that it shares with its parent, so it is affected too.
  for (let size = -1; size !== from.size; ) {
    size = from.size;
    for (const { id, parent } of inventory.sessions.values()) {
      const first = parent === undefined ? undefined : from.get(parent.session);
      if (parent !== undefined && first !== undefined && first <= parent.seq)
        from.set(id, Math.min(first, from.get(id) ?? first));
    }
  }
  return [...from].map(([session, first]) => {
    const { steps, contexts } = inventory.sessions.get(session) ?? { steps: new Map(), contexts: [] };
    const turn: number = steps.get(first)?.turn ?? 1;
    return { session, from: first, turn, contexts: contexts.filter((step: number) => step >= first).length };
  });
}

/** Returns the pages of steps whose range includes one of the steps. A page repeats its steps. */
function pagesOver(inventory: Inventory, steps: readonly KnownDocument[]): readonly KnownDocument[] {
  return [...inventory.documents.values()].filter(({ id, type, session }) => {
    const [, first, last] = /:(\d+)-(\d+)~$/.exec(id) ?? [];
    if (type !== 'steps' || first === undefined) return false;
    return steps.some((step) => {
      const seq = Number(/:(\d+)~$/.exec(step.id)?.[1]);
      return step.session === session && seq >= Number(first) && seq <= Number(last);
    });
  });
}

/**
 * Plans the erasure of a text, or of an object with every full copy of its contents. Steps, calls,
 * files and prompts that contain the text are stored again with a mark. Records and pages of steps
 * that contain it are erased.
 *
 * @throws {ErasureError} `unknown-object`, `wrong-kind`, `not-found`, `matches-all`, `shared`,
 *   `importing`
 */
export async function planTexts({ log, store, selection, shared }: TextsInput): Promise<PlannedTexts> {
  const object = selection.kind === 'object' ? selection.id : undefined;
  const texts =
    object === undefined ? [selection.kind === 'text' ? selection.text : ''] : await textsOfObject(store, object);
  const inventory = await Inventory.read(log, texts);
  const all = [...inventory.documents.values()].filter((one) => !isTrace(one));
  const target = object === undefined ? undefined : inventory.documents.get(object);
  const held = all.filter(({ holds }) => holds);
  const ofTarget =
    target === undefined ? [] : inventory.digestsOf(target.texts).flatMap((one) => inventory.identifiedBy(one));
  const gone = wholeTexts(inventory, new Set([...held, ...ofTarget].filter(isText)));
  const digests = new Set([...gone].map(({ id }) => inventory.numberOf(digestIn(id))));
  const holders = all.filter(
    (one) => !isText(one) && (one.holds || one === target || [...one.texts].some((n) => digests.has(n))),
  );
  if (holders.length === 0 && gone.size === 0)
    throw new ErasureError('not-found', 'no recorded text contains this text, so there is nothing to erase');
  const places = all.filter(({ type }) => STAYS_MARKED.has(type));
  const taken = holders.filter(({ type }) => STAYS_MARKED.has(type));
  if (places.length > FEW_DOCUMENTS && taken.length > places.length / 2)
    throw new ErasureError(
      'matches-all',
      `${taken.length} of ${places.length} steps and objects contain the text: name a longer text, or erase sessions`,
    );
  refuseArriving(inventory, new Set());
  const holder = holders.find(({ id }) => texts.some((text) => id.includes(text)));
  if (holder !== undefined)
    throw new ErasureError(
      'wrong-kind',
      `an id in session ${holder.session ?? 'none'} contains the text, and ids cannot change: erase that session`,
    );
  const erased = new Map([...holders, ...gone].map((one) => [one.id, one]));
  for (const page of pagesOver(inventory, taken)) erased.set(page.id, page);
  // Also evicts the packed lines of finished imports, which nothing reads any more.
  const named = (digests: ReadonlySet<number>): readonly KnownDocument[] =>
    inventory.digestsOf(digests).flatMap((digest) => inventory.identifiedBy(digest));
  const packed = named(inventory.staged).flatMap((one) => [one, ...named(one.texts)]);
  const evicted = new Map([...packed, ...erased.values()].map((one) => [one.id, one]));
  const unproved = unprovedOf(inventory, erased);
  if (unproved.length > 1 && !shared)
    throw new ErasureError(
      'shared',
      `${unproved.length} sessions show this content (${unproved
        .map(({ session }) => session)
        .slice(0, 5)
        .join(', ')}), and ` +
        'each would lose the proof of its contexts from that step on. To allow this, repeat the command with --shared',
    );
  return {
    txId: inventory.txId,
    evict: [...evicted.keys()].sort(),
    bytes: [...evicted.values()].reduce((sum, { bytes }) => sum + bytes, 0),
    buried: [...erased.values()]
      .filter((one) => STAYS_MARKED.has(one.type) || isText(one))
      .map(({ id, type, hashes }) => ({ id, type, hashes })),
    unproved,
    marked: taken.map(({ id }) => id),
    kept: [],
    texts,
  };
}
