import { linesWith } from '../history/search/found-lines.js';
import { ownMember } from '../values/own-member.js';
import { Refused } from './access.js';
import type { AnswerSource } from './ask.js';
import {
  type AnswerParameters,
  answerKey,
  BLOCK_ID,
  MANIFEST_ID,
  PAGE_FORMAT,
  PAGE_VERSION,
  type Packed,
  type PageManifest,
} from './server/page-format.js';
import { sha256 } from './sha256.js';
import { unpackedValue } from './unpacked-value.js';
import type { Log, Notes, Search } from './wire.js';

function bytesOf(id: string): Uint8Array<ArrayBuffer> {
  const text = atob(document.querySelector(`#${id}`)?.textContent ?? '');
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function unpacked(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

const broken = (why: string): Refused => new Refused('altered', 0, `this file was altered or cut short: ${why}`);

/** The corpus of a search. */
interface Corpus {
  readonly found: Search;
  readonly texts: readonly string[];
}

/** Answers a question from the file's content; the parameters are those of `/v1`. */
type Special = (file: EmbeddedSession, parameters: AnswerParameters) => Promise<unknown>;

/** Questions whose answers the file stores in another form. */
const SPECIAL: Readonly<Record<string, Special>> = {
  '/v1/search': async (file, { session, tx, text, limit, order }) => {
    const { found, texts } = (await file.answer('/v1/search', { session, tx })) as Corpus;
    const hits = found.hits.flatMap((hit, i) => {
      const lines = linesWith(texts[i] ?? '', String(text));
      return lines.count === 0 ? [] : [{ ...hit, ...lines }];
    });
    if (order === 'first') hits.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : (a.step ?? 0) - (b.step ?? 0)));
    const most = Number(limit ?? 100);
    const chars = texts.reduce((sum, one) => sum + one.length, 0);
    return { ...found, hits: hits.slice(0, most), texts: texts.length, chars, is_cut: hits.length > most };
  },
  '/v1/log': async (file, parameters) => {
    const { limit, ...others } = parameters;
    const answer = (await file.answer('/v1/log', parameters)) as Log;
    return others.object === undefined ? { ...answer, turns: answer.turns?.slice(0, Number(limit ?? 100)) } : answer;
  },
  '/v1/notes': async (file, { object, ...parameters }) => {
    const answer = (await file.answer('/v1/notes', parameters)) as Notes;
    return object === undefined ? answer : { ...answer, said: answer.said.filter((note) => note.object === object) };
  },
  '/v1/conversation': async (file, { session, tx }) => file.answer('/v1/conversation', { session, tx }),
  '/v1/show': async (file, parameters) => {
    if (parameters.valid_time !== undefined) return file.answer('/v1/show', parameters);
    const { versions } = (await file.answer('/v1/log', { object: parameters.object, tx: parameters.tx })) as Log;
    const [last] = versions ?? [];
    return file.answer('/v1/show', { ...parameters, valid_time: last?.valid_time, tx: last?.tx_id });
  },
  '/v1/query': async () => {
    throw new Refused(
      'not-in-file',
      0,
      'a query needs a database, and this file has only stored answers: import the session and query it there',
    );
  },
};

/** The session embedded in this file. Reads its answers block by block on request. */
export class EmbeddedSession implements AnswerSource {
  readonly isServed = false;
  readonly manifest: PageManifest;
  /** SHA-256 of the manifest. The manifest contains the hashes of all blocks. */
  readonly sha256: string;
  readonly #blocks = new Map<number, Promise<void>>();
  readonly #nodes = new Map<number, Packed>();

  private constructor(manifest: PageManifest, digest: string) {
    this.manifest = manifest;
    this.sha256 = digest;
  }

  /** @throws {Refused} `altered`, `newer-version` */
  static async open(): Promise<EmbeddedSession> {
    const bytes = bytesOf(MANIFEST_ID);
    let manifest: PageManifest;
    try {
      manifest = JSON.parse(new TextDecoder().decode(bytes)) as PageManifest;
    } catch {
      throw broken('its manifest is missing');
    }
    if (manifest.format !== PAGE_FORMAT) throw broken('its manifest has another format');
    if (manifest.version > PAGE_VERSION)
      throw new Refused('newer-version', 0, 'the content of this file is from a later version than its page');
    return new EmbeddedSession(manifest, await sha256(bytes));
  }

  /**
   * Answers a question.
   * @throws {Refused} `not-in-file` – the file has no answer to the question
   */
  ask(path: string, parameters: AnswerParameters): Promise<unknown> {
    return (ownMember(SPECIAL, path) ?? ((file, asked) => file.answer(path, asked)))(this, parameters);
  }

  /** Returns the file's answer. */
  async answer(path: string, parameters: AnswerParameters): Promise<unknown> {
    const key = answerKey(path, parameters, this.manifest);
    const index = (await this.#node(this.manifest.answers)) as Readonly<Record<string, Packed>>;
    if (!Object.hasOwn(index, key))
      throw new Refused(
        'not-in-file',
        0,
        `this file holds one session at one moment, without an answer to this request: ${key}`,
      );
    return this.#value(index[key] as Packed);
  }

  /** Returns the keys of all answers. */
  async keys(): Promise<readonly string[]> {
    return Object.keys((await this.#node(this.manifest.answers)) as object);
  }

  /** Returns the answer of a key. */
  async byKey(key: string): Promise<unknown> {
    return this.#value(((await this.#node(this.manifest.answers)) as Readonly<Record<string, Packed>>)[key] as Packed);
  }

  /** Whether a block matches the manifest. */
  async isWhole(number: number): Promise<boolean> {
    const said = this.manifest.blocks[number];
    const bytes = await unpacked(bytesOf(`${BLOCK_ID}${number}`)).catch(() => undefined);
    return (
      bytes !== undefined && said !== undefined && bytes.length === said.bytes && (await sha256(bytes)) === said.sha256
    );
  }

  async #node(node: number): Promise<Packed> {
    await this.#load(node);
    const found = this.#nodes.get(node);
    if (found === undefined) throw broken(`part ${node} is missing`);
    return found;
  }

  /** Reads the block that contains a node of packed values. */
  #load(node: number): Promise<void> {
    let first = 0;
    const { blocks } = this.manifest;
    for (const [number, { nodes }] of blocks.entries()) {
      if (node < first + nodes) {
        const known = this.#blocks.get(number) ?? this.#read(number, first);
        this.#blocks.set(number, known);
        return known;
      }
      first += nodes;
    }
    return Promise.reject(broken(`part ${node} is missing`));
  }

  async #read(number: number, first: number): Promise<void> {
    let nodes: readonly Packed[];
    try {
      nodes = JSON.parse(
        new TextDecoder().decode(await unpacked(bytesOf(`${BLOCK_ID}${number}`))),
      ) as readonly Packed[];
    } catch {
      throw broken(`block ${number} cannot be read`);
    }
    for (const [i, node] of nodes.entries()) this.#nodes.set(first + i, node);
  }

  /** Unpacks a value, and reads blocks until it is complete. */
  async #value(packed: Packed): Promise<unknown> {
    for (;;) {
      const missing = new Set<number>();
      const value = unpackedValue(packed, (node) => {
        const known = this.#nodes.get(node);
        if (known === undefined) missing.add(node);
        return known;
      });
      if (missing.size === 0) return value;
      for (const node of missing) await this.#load(node);
    }
  }
}
