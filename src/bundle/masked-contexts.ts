import type { ContextSnapshot } from '../history/rebuild/context-snapshot.js';
import { HistoryError } from '../history/rebuild/history-error.js';
import { AssemblyRebuilder } from '../history/rebuild/rebuild-assembly.js';
import type { RebuiltAssembly } from '../history/rebuild/rebuilt-assembly.js';
import type { AssemblyProof, ShownAhead } from '../objects/assembly-proof.js';
import { DocumentError } from '../objects/errors.js';
import type { Sha256 } from '../objects/ids.js';
import type { FilesystemSource } from '../objects/source.js';
import { assemblyId } from '../store/assemblies.js';
import { isDamage } from '../store/errors.js';
import { fromStored, marksOf } from '../store/head.js';
import type { Head } from '../store/snapshot-rows.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { XtdbError } from '../xtdb/errors.js';
import type { MaskedDocuments } from './masked-documents.js';
import type { MaskedNames } from './masked-names.js';

/** The inputs for masking contexts. */
interface Masking {
  readonly names: MaskedNames;
  readonly documents: MaskedDocuments;
}

/**
 * A snapshot for rendering contexts. Its reads return the masked content, and objects have their
 * masked names.
 */
class MaskedSnapshot implements ContextSnapshot {
  readonly #of: StoreSnapshot;
  readonly #masking: Masking;
  readonly #contexts: MaskedContexts;
  /** The masked texts of heads that were read. */
  readonly #contents = new WeakMap<StoredDocument, string>();

  constructor(of: StoreSnapshot, masking: Masking, contexts: MaskedContexts) {
    this.#of = of;
    this.#masking = masking;
    this.#contexts = contexts;
  }

  get basis(): StoreSnapshot['basis'] {
    return this.#of.basis;
  }

  earlier(basis: { readonly validTime: Date; readonly txId: number }): MaskedSnapshot | undefined {
    const earlier = this.#of.earlier(basis);
    return earlier === undefined ? undefined : new MaskedSnapshot(earlier, this.#masking, this.#contexts);
  }

  async heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
    const { names } = this.#masking;
    const heads = new Map<string, Head>();
    for (const [id, head] of await this.#of.heads(ids.map((one) => names.original(one))))
      heads.set(names.id(id), { ...head, ...(await this.#head(head.document)) });
    return heads;
  }

  async versionsOf(heads: readonly Head[]): ReturnType<StoreSnapshot['versionsOf']> {
    return new Map(
      heads.map(({ document, marks }) => {
        const version = fromStored(document, this.#contents.get(document));
        return [version['xt/id'], { version, marks }] as const;
      }),
    );
  }

  async historyOfHeads(id: string): ReturnType<StoreSnapshot['historyOfHeads']> {
    const all = await this.#of.historyOfHeads(this.#masking.names.original(id));
    return Promise.all(
      all.map(async (one) => (one.document === undefined ? one : { ...one, ...(await this.#head(one.document)) })),
    );
  }

  async steps(): ReturnType<StoreSnapshot['steps']> {
    return this.#masking.documents.steps;
  }

  async stepsAlong(
    { session }: { readonly session: AssemblyProof['session'] },
    range: { readonly first: number; readonly last: number },
  ): ReturnType<StoreSnapshot['steps']> {
    return this.#masking.documents.steps.slice(range.first - 1, range.last).map((step) => ({ ...step, session }));
  }

  lineage: StoreSnapshot['lineage'] = (session) => this.#of.lineage(session);
  existingSteps: StoreSnapshot['existingSteps'] = (lineage, seqs) => this.#of.existingSteps(lineage, seqs);
  stepTimes: StoreSnapshot['stepTimes'] = (session, seqs) => this.#of.stepTimes(session, seqs);
  knownCall: StoreSnapshot['knownCall'] = () => undefined;
  /**
   * Returns no texts, because a redacted bundle leaves out the requests that a gateway forwarded.
   */
  texts: StoreSnapshot['texts'] = async () => new Map();

  async times(ids: readonly string[]): ReturnType<StoreSnapshot['times']> {
    const originals = new Map(ids.map((id) => [this.#contexts.original(id), id]));
    return new Map(
      [...(await this.#of.times([...originals.keys()]))].map(([id, times]) => [originals.get(id) ?? id, times]),
    );
  }

  async assemblies(...asked: Parameters<StoreSnapshot['assemblies']>): ReturnType<StoreSnapshot['assemblies']> {
    return (await this.#of.assemblies(...asked)).map((proof) => this.#contexts.renamed(proof));
  }

  async #head(was: StoredDocument): Promise<Pick<Head, 'document' | 'marks'>> {
    const { type } = was;
    if (type !== 'file' && type !== 'toolcall' && type !== 'system_prompt') return { document: was, marks: {} };
    const { document, content } = await this.#masking.documents.version(was);
    if (content !== null) this.#contents.set(document, content);
    return { document, marks: marksOf(document) };
  }
}

/**
 * Returns whether stored data prevents a rebuild of the context. Other errors, such as an
 * unreachable database, are thrown.
 */
const isOfDatabase = (error: unknown): boolean =>
  error instanceof HistoryError ||
  error instanceof DocumentError ||
  isDamage(error) ||
  (error instanceof XtdbError && error.code === 'out-of-sync');

const keyOf = ({ session, step, sha256 }: Pick<AssemblyProof, 'session' | 'step' | 'sha256'>): string =>
  `${session} ${step} ${sha256}`;

type Renamed<Name extends keyof AssemblyProof> = (
  value: NonNullable<AssemblyProof[Name]>,
  masking: Masking,
) => AssemblyProof[Name];

const same = <Value>(value: Value): Value => value;
const ids = <Value>(value: Value, { names }: Masking): Value => names.ids(value);

/**
 * How to mask the names in each member of an assembly record. The compiler requires an entry for
 * each member.
 */
const RENAMED: { readonly [Name in keyof Required<AssemblyProof>]: Renamed<Name> } = {
  session: same,
  turn: same,
  step: same,
  renderer: same,
  layout: same,
  version: same,
  options: same,
  tail: ids,
  epoch: (epoch, { names }) => ({ ...epoch, ...defined({ note: names.ids(epoch.note) }) }),
  sections: same,
  blocks: same,
  chars: same,
  sha256: same,
  basis: same,
  ahead: (ahead, { names, documents }) =>
    ahead.map((one): ShownAhead => ({ ...one, id: names.id(one.id), object_hash: documents.hash(one.object_hash) })),
  behind: same,
  absent: ids,
  mounts: (mounts, { names }) =>
    mounts.map(({ agentPrefix, canonicalPrefix, filesystemId }) => {
      const folder = names.folder({ filesystemId, path: canonicalPrefix } as FilesystemSource);
      return { agentPrefix: names.text(agentPrefix), canonicalPrefix: folder.path, filesystemId: folder.filesystemId };
    }),
  folders: (folders, { names }) => folders.map((folder) => names.folder(folder)),
  redacted: same,
  delivered: same,
  sent: same,
  handed: same,
  rescuedFrom: same,
  at: same,
};

/**
 * Renders contexts again from masked content. Their records carry the hashes and sizes of the
 * masked text, so that they can be verified in any database. A context without masked content keeps
 * its record. If a harness mixed our context with its own messages, that list is left out, because
 * the database does not store the harness's messages.
 */
export class MaskedContexts {
  readonly #masking: Masking;
  readonly #rebuilder: AssemblyRebuilder;
  /** The original ids of records, by the ids that result from masking their names. */
  readonly #originals = new Map<string, string>();
  readonly #hashes = new Map<string, Sha256>();

  constructor(present: StoreSnapshot, masking: Masking) {
    this.#masking = masking;
    const snapshot = new MaskedSnapshot(present, masking, this);
    this.#rebuilder = new AssemblyRebuilder(
      { latest: async () => snapshot, asOf: async (basis) => snapshot.earlier(basis) ?? snapshot },
      snapshot,
    );
  }

  /** Returns the id that a record has in the database. */
  original(id: string): string {
    return this.#originals.get(id) ?? id;
  }

  /** Returns a record with masked names. Its hashes stay the original ones. */
  renamed(proof: AssemblyProof): AssemblyProof {
    const made = Object.fromEntries(
      Object.entries(proof).map(([name, value]) => [
        name,
        RENAMED[name as keyof AssemblyProof](value as never, this.#masking),
      ]),
    ) as unknown as AssemblyProof;
    this.#originals.set(assemblyId(made), assemblyId(proof));
    return made;
  }

  /**
   * Returns a masked assembly record. Call it in the order in which the contexts were handed out,
   * because within an epoch a record names the previous record.
   */
  async masked(proof: AssemblyProof): Promise<AssemblyProof> {
    const { documents } = this.#masking;
    const { handed, ...half } = this.renamed(proof);
    const { previous, list } = half.epoch ?? {};
    const before = previous && {
      ...previous,
      sha256: this.#hashes.get(keyOf({ ...proof, ...previous })) ?? documents.hash(previous.sha256),
    };
    const epoch = half.epoch && {
      ...half.epoch,
      ...defined({ previous: before, list: list && { ...list, sha256: documents.hash(list.sha256) } }),
    };
    const left = await this.#left(half);
    const made = { ...half, ...defined({ epoch }), ...left };
    this.#hashes.set(keyOf(proof), made.sha256);
    documents.replace(proof.sha256, made.sha256);
    for (const [i, { sha256 }] of proof.sections.entries())
      documents.replace(sha256, made.sections[i]?.sha256 ?? sha256);
    return made;
  }

  /** Returns the fields of a record that masking changes. */
  async #left(half: AssemblyProof): Promise<Partial<AssemblyProof>> {
    let rebuilt: RebuiltAssembly | undefined;
    try {
      rebuilt = await this.#rebuilder.rebuild(half);
    } catch (error) {
      if (!isOfDatabase(error)) throw error;
    }
    if (rebuilt?.equal === true) return {};
    if (rebuilt === undefined) {
      // This context cannot be rebuilt from the database, so its masked hashes are unknown. The
      // original hashes would reveal content.
      const { documents } = this.#masking;
      return { redacted: true, sha256: documents.hash(half.sha256), sections: [], blocks: 0, chars: 0 };
    }
    const { sections, blocks, chars, sha256 } = rebuilt.rendered.record;
    return { redacted: true, sections, blocks: blocks.length, chars, sha256 };
  }
}
