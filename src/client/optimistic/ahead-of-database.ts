import { metadataOf } from '../../assembly/metadata.js';
import type { ShownAhead } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { withinLimit } from '../../process/within-limit.js';
import type { Head } from '../../store/store-snapshot.js';
import type { AppliedWrite } from '../delivery/outbox.js';
import type { MarkedVersion, SessionWrite } from '../delivery/session-write.js';
import type { HeldSession } from '../session/open-session.js';
import type { SessionEnvironment } from '../session/session-environment.js';
import { type CommittedHeads, type KnownHead, KnownHeads } from './known-heads.js';

/** What a context is made of that no transaction was waited for. */
export interface AheadContext {
  readonly heads: ReadonlyMap<ObjectId, KnownHead>;
  /** What the active objects hold. */
  readonly versions: ReadonlyMap<ObjectId, MarkedVersion>;
  /** The transaction that everything not listed in `ahead` was the newest at; undefined where nothing was read yet. */
  readonly basis: number | undefined;
  readonly ahead: readonly ShownAhead[];
}

/** Whether somebody else wrote: then it is being read. */
interface Looked {
  readonly reading: Promise<void> | undefined;
}

const NOTHING: Looked = { reading: undefined };

/** What stands for the basis of a database without transactions. */
const BEFORE_FIRST = -1;
/** How long a context waits for the answer whether somebody else wrote, milliseconds: the next one has it otherwise. */
const LOOK_MS = 100;
/** How old an answer may be that a context is made with, milliseconds. */
const FRESH_MS = 50;
/** How long it waits for what somebody else wrote, and for files that were only mentioned or seen to change, milliseconds. */
const READ_MS = 250;

/**
 * What a session's process knows without waiting for its own transactions (decision 0010): the newest versions as of a transaction, and beside them what it
 * has acknowledged since and what outlives it. What others write is noticed with one short question before each context, and only then is read again.
 */
export class AheadOfDatabase {
  readonly #environment: SessionEnvironment;
  readonly #held: () => HeldSession;
  readonly #known: KnownHeads;
  readonly #stop: () => void;
  #look: Promise<Looked> | undefined;
  #lookedAt = 0;
  #latest: Promise<number | undefined> | undefined;
  #reading: Promise<void> | undefined;

  constructor(environment: SessionEnvironment, held: () => HeldSession) {
    this.#environment = environment;
    this.#held = held;
    const isWanted = (id: ObjectId): boolean => held().state.has(id) || id === systemPromptObjectId(held().state.id);
    this.#known = new KnownHeads(environment.store.writes.own, isWanted);
    this.#stop = environment.outbox.listen((write, applied) => this.#wrote(write, applied));
  }

  /** Asks whether somebody else wrote since the last look; the next context waits for the answer a little. Never rejects. */
  look(): Promise<Looked> {
    const now = performance.now();
    if (this.#look !== undefined && now - this.#lookedAt < FRESH_MS) return this.#look;
    this.#lookedAt = now;
    this.#look = this.#ask().catch(() => NOTHING);
    return this.#look;
  }

  /** The last transaction of the database as the look under way finds it; without one, or with an old one, it is asked for. */
  latest(): Promise<number | undefined> {
    const isFresh = performance.now() - this.#lookedAt < FRESH_MS;
    return (isFresh ? this.#latest : undefined) ?? this.#environment.store.latestTransaction();
  }

  /** What a context of the session as it is held is made of; undefined where not everything of it is known here. */
  async context(): Promise<AheadContext | undefined> {
    await this.#catchUp();
    const held = this.#held();
    const { index, active } = held.state.sets;
    const basis = this.#known.basis === BEFORE_FIRST ? undefined : this.#known.basis;
    const heads = new Map<ObjectId, KnownHead>();
    const ahead: ShownAhead[] = this.#prompt(held);
    for (const id of index) {
      const head = this.#shown(id);
      if (head === undefined) return undefined;
      heads.set(id, head);
      if (head.metadata?.type === 'file') ahead.push(...this.#named(id, head));
    }
    const versions = await this.#versions(active, heads, basis);
    return versions === undefined ? undefined : { heads, versions, basis, ahead };
  }

  /** Idempotent. */
  close(): void {
    this.#stop();
  }

  async #catchUp(): Promise<void> {
    const { reading } = await withinLimit(this.look(), LOOK_MS, () => NOTHING);
    this.#look = undefined;
    this.#latest = undefined;
    const { outbox } = this.#environment;
    const held = this.#held();
    const isStub = (id: ObjectId): boolean => {
      const pending = outbox.journaled(id);
      return pending?.version.type === 'file' && pending.version.file_hash === null && pending.marks.gone !== true;
    };
    const waits: Promise<unknown>[] = [outbox.filesDrained(READ_MS)];
    if (reading !== undefined) waits.push(reading);
    // Whether a file that was only mentioned is known already, the database alone can tell.
    if (outbox.status.outage === undefined && held.state.sets.index.some(isStub)) waits.push(outbox.drained(held.state.id, READ_MS));
    await withinLimit(Promise.all(waits), READ_MS, () => []);
    if (outbox.status.outage === undefined && held.state.sets.index.some((id) => this.#shown(id) === undefined)) {
      await withinLimit(this.#read(), READ_MS, () => undefined).catch(() => undefined);
    }
  }

  async #ask(): Promise<Looked> {
    const { store } = this.#environment;
    const before = this.#known.basis;
    this.#latest = undefined;
    if (before !== undefined && !this.#known.isStale) {
      this.#latest = store.latestTransaction();
      const latest = await this.#latest;
      if (latest === undefined || store.writes.own.coverSent(before, latest)) {
        // Nothing is missed; nobody waits for it.
        if (this.#known.isBehind) this.#read().catch(() => undefined);
        return NOTHING;
      }
    }
    return { reading: this.#read().catch(() => undefined) };
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(): Promise<void> {
    const { store, files, cache } = this.#environment;
    const { state } = this.#held();
    const asked = new Set<ObjectId>([...state.sets.index, systemPromptObjectId(state.id)]);
    const txId = (await store.latestTransaction()) ?? BEFORE_FIRST;
    const found = txId === BEFORE_FIRST ? new Map<string, Head>() : await store.newestAt(txId).heads([...asked]);
    for (const { document, marks } of found.values()) cache.learn(document, marks, txId);
    this.#known.read(txId, asked, new Map([...found].map(([id, head]) => [id as ObjectId, knownHead(head, files)])));
  }

  #wrote({ step, heads, at }: SessionWrite, { txId, written, files, met, metAt }: AppliedWrite): void {
    const { files: access } = this.#environment;
    if (txId === undefined && step === undefined) return;
    const times = new Map(files.map(({ version, validTime }) => [version['xt/id'], validTime]));
    const found = new Map<ObjectId, KnownHead>();
    for (const head of met) found.set(head.document['xt/id'] as ObjectId, knownHead(head, access));
    for (const { version, marks } of written) {
      const id = version['xt/id'];
      found.set(id, ofVersion({ version, marks }, (times.get(id) ?? new Date(at)).getTime(), access));
    }
    for (const { head, validTime } of heads) {
      if (head.type !== 'system_prompt') continue;
      const [hash, since] = [head.object_hash as Sha256, validTime ?? new Date(at)];
      found.set(head['xt/id'] as ObjectId, { hash, gone: false, validTime: since.getTime(), metadata: undefined });
    }
    const commit: CommittedHeads = { heads: found, readAt: files.length + met.length === 0 ? undefined : metAt };
    this.#known.wrote(txId, commit);
  }

  /** The version of an object that a context shows: what is acknowledged here, else the newest that is known. */
  #shown(id: ObjectId): KnownHead | undefined {
    const acknowledged = this.#environment.outbox.journaled(id);
    if (acknowledged === undefined) return this.#known.newest(id);
    return ofVersion(acknowledged, Number.POSITIVE_INFINITY, this.#environment.files);
  }

  #named(id: ObjectId, { hash, gone }: Pick<KnownHead, 'hash' | 'gone'>): readonly ShownAhead[] {
    const there = this.#known.at(id);
    if (there?.hash === hash && there.gone === gone) return [];
    return [{ id, object_hash: hash, ...(gone ? { gone } : {}) }];
  }

  #prompt({ state, prompt }: HeldSession): ShownAhead[] {
    const { object_hash } = systemPromptVersion(state.id, prompt);
    return [...this.#named(systemPromptObjectId(state.id), { hash: object_hash, gone: false })];
  }

  /** The versions of some objects that their heads name: those at hand, the others read at the basis. */
  async #versions(
    ids: readonly ObjectId[],
    heads: ReadonlyMap<ObjectId, KnownHead>,
    basis: number | undefined,
  ): Promise<ReadonlyMap<ObjectId, MarkedVersion> | undefined> {
    const { outbox, recent, store } = this.#environment;
    const isWanted = (id: ObjectId, found: MarkedVersion | undefined): found is MarkedVersion => {
      const head = heads.get(id);
      return found?.version.object_hash === head?.hash && (found?.marks.gone === true) === head?.gone;
    };
    const versions = new Map<ObjectId, MarkedVersion>();
    const missing: ObjectId[] = [];
    for (const id of ids) {
      const found = [outbox.journaled(id), recent.get(id)].find((one) => isWanted(id, one));
      if (found === undefined) missing.push(id);
      else versions.set(id, found);
    }
    if (missing.length === 0) return versions;
    if (basis === undefined) return undefined;
    for (const [id, found] of await store.newestAt(basis).getMany(missing)) {
      if (!isWanted(id, found)) return undefined;
      recent.set(found);
      versions.set(id, found);
    }
    return versions.size === ids.length ? versions : undefined;
  }
}

function knownHead({ document, marks, validTime }: Head, files: SessionEnvironment['files']): KnownHead {
  const metadata = metadataOf(document, marks, files);
  return { hash: document.object_hash as Sha256, gone: marks.gone === true, validTime: validTime.getTime(), metadata };
}

function ofVersion({ version, marks }: MarkedVersion, validTime: number, files: SessionEnvironment['files']): KnownHead {
  return { hash: version.object_hash, gone: marks.gone === true, validTime, metadata: metadataOf(version, marks, files) };
}
