import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import { canonicalJson, type Json } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import { HeadHashes } from '../objects/head-hashes.js';
import { type ObjectId, type SessionId, type Sha256, sessionId } from '../objects/ids.js';
import { keptArgs, keptArgsHash } from '../objects/kept-args.js';
import { abridge } from '../objects/large-text.js';
import type { ObjectVersion } from '../objects/seal.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import {
  fileStub,
  indexedFile,
  nonTextFile,
  systemPromptVersion,
  type ToolcallInput,
  toolcallVersion,
} from '../objects/versions.js';
import { contentPartHash, marksOf, runningChatHead, runningSessionHead, toStored } from '../store/head.js';
import type { SessionDocuments } from '../store/session-documents.js';
import { toStepParts } from '../store/step-part.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { Fold } from './check-sessions.js';
import type { MaskedNames } from './masked-names.js';
import { maskedStep } from './masked-step.js';

/** A masked text that a document refers to by hash. */
export interface MaskedText {
  readonly hash: Sha256;
  readonly isMessage: boolean;
  readonly text: string;
}

/** A document with masked content, and its texts. */
export interface MaskedDocument {
  readonly document: StoredDocument;
  readonly texts: readonly MaskedText[];
}

/** A version of a file, call or prompt after masking. */
export interface MaskedVersion extends MaskedDocument {
  /** The text of the version. Null if the version has no text. */
  readonly content: string | null;
  /**
   * The hashes of the version's texts: its content and, if stored, its whole text. They can prove a
   * tool's answer. Undefined if masking changed the texts.
   */
  readonly plain: readonly Sha256[] | undefined;
}

/** The session whose documents are masked. */
export interface MaskedSession {
  readonly session: SessionId;
  readonly documents: SessionDocuments;
  readonly names: MaskedNames;
  /** The session's original steps, from the first one. */
  readonly steps: readonly Step[];
}

/** Maximum UTF-16 units of texts, and of masked versions, in memory. */
const HELD_UNITS = 16 * 1_048_576;

const ofText = (text: string, isMessage = false): MaskedText => ({ hash: hashText(text), isMessage, text });

/** The original texts of a version. */
interface Texts {
  readonly content: string | null;
  /** The separately stored whole text, if the version holds only its beginning and end. */
  readonly whole: string | undefined;
  readonly args: ToolcallInput['args'];
}

/**
 * Masks texts in the documents of a session. Rebuilds changed versions, steps and heads, so that
 * their hashes cover the masked content. A hash of content outside the bundle becomes a
 * placeholder. The same documents are always masked the same way.
 */
export class MaskedDocuments {
  /** The masked steps, from the first one. */
  readonly steps: Step[] = [];
  readonly #of: MaskedSession;
  readonly #long = new LRUCache<string, string>({ maxSize: HELD_UNITS, sizeCalculation: ({ length }) => length + 64 });
  readonly #versions = new LRUCache<string, MaskedVersion>({
    maxSize: HELD_UNITS,
    sizeCalculation: ({ texts, content }) =>
      texts.reduce((sum, { text }) => sum + text.length, 2_048 + (content?.length ?? 0)),
  });
  /** Hidden hashes with their replacements. */
  readonly #hashes = new Map<string, string>();
  /** Objects with masked text in one of their versions. */
  readonly #masked = new Set<string>();
  /** Pairs of an object id and the hash of a text that masking left unchanged. */
  readonly #held = new Set<string>();
  readonly #folds = new Map<string, { readonly fold: Fold; readonly hashes: HeadHashes; readonly upto: number }>();
  #unheld = 0;

  constructor(of: MaskedSession) {
    this.#of = of;
  }

  /** Number of versions that masking changed. */
  versions = 0;

  /** Registers a version, so that masking other documents can replace references to its hash. */
  async learn(document: StoredDocument): Promise<void> {
    const { document: made, plain } = await this.version(document);
    if (document.type === 'file') {
      // A context may have shown a stub version of the file that the database never stored.
      const [was, is] = [document.source, made.source].map(
        (source) => fileStub(parseSource(source) as FilesystemSource).object_hash,
      );
      this.replace(String(was), String(is));
    }
    if (plain === undefined) this.#masked.add(document['xt/id']);
    else for (const hash of plain) this.#held.add(`${document['xt/id']} ${hash}`);
    this.replace(String(document.object_hash), String(made.object_hash));
    if (isDeepStrictEqual({ ...made }, { ...document })) return;
    this.versions += 1;
  }

  /** Registers the steps, after all versions. Returns how many masking changed. */
  learnSteps(): number {
    for (const step of this.#of.steps)
      this.steps.push(maskedStep(step, this.#of.names, { masked: this.#masked, held: this.#held }));
    return this.steps.filter((step, i) => !isDeepStrictEqual(step, this.#of.steps[i])).length;
  }

  /** Registers the replacement of a hash. */
  replace(hash: string, made: string): void {
    this.#hashes.set(hash, made);
  }

  /** Returns the replacement of a hash or a name. Undefined if it has none. */
  replacementOf(hash: string): string | undefined {
    return this.#hashes.get(hash);
  }

  /** Returns the replacement of a hash. Content outside the bundle gets a placeholder. */
  hash(hash: string): Sha256 {
    const known = this.#hashes.get(hash);
    if (known !== undefined) return known as Sha256;
    this.#unheld += 1;
    const name = hashText(canonicalJson(['redacted', this.#of.session, this.#unheld]));
    this.#hashes.set(hash, name);
    return name;
  }

  /** Returns an original text by its hash. Undefined if the text is not stored. */
  async text(hash: Sha256): Promise<string | undefined> {
    const known = this.#long.get(hash);
    if (known !== undefined) return known;
    const parts = await this.#of.documents.textParts(hash);
    if (parts.length === 0) return undefined;
    const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('');
    this.#long.set(hash, text);
    return text;
  }

  /** Returns the masked version of a file, call or prompt. */
  async version(document: StoredDocument): Promise<MaskedVersion> {
    const { gone = false } = marksOf(document);
    const key = `${document['xt/id']} ${String(document.object_hash)} ${gone}`;
    const known = this.#versions.get(key) ?? (await this.#version(document));
    this.#versions.set(key, known);
    return known;
  }

  async #version(document: StoredDocument): Promise<MaskedVersion> {
    const { names } = this.#of;
    const { gone, size, ...marks } = marksOf(document);
    const was = await this.#textsOf(document, marks.whole);
    const mark = names.markOf(document['xt/id']);
    // A fully masked version has no whole text.
    const whole = was.whole === undefined || mark !== undefined ? undefined : names.text(was.whole);
    // The whole text is masked before it is cut, because half of a secret cannot be recognised.
    const isCut = was.whole !== undefined && abridge(was.whole).content === was.content;
    const shown = isCut ? () => abridge(whole ?? '').content : () => names.text(was.content ?? '');
    const content = was.content === null ? null : (mark ?? shown());
    const args = document.type === 'toolcall' ? keptArgs(names.value(was.args as Json) as typeof was.args) : undefined;
    const made = this.#made(document, {
      content,
      whole: mark === undefined ? whole : (content ?? undefined),
      args: args?.args ?? {},
    });
    const kept = whole === undefined || document.type === 'file' ? undefined : hashText(whole);
    const isOfContent = mark !== undefined || size === (was.content?.length ?? 0);
    const stored = toStored(
      made,
      defined({
        gone,
        whole: kept,
        size: size === undefined ? undefined : isOfContent ? (content?.length ?? 0) : (whole?.length ?? size),
      }),
    );
    const texts = [
      ...(stored.texts.length === 0 || content === null ? [] : [ofText(content)]),
      ...(args?.text === undefined ? [] : [ofText(args.text.text)]),
      ...(whole === undefined ? [] : [ofText(whole)]),
    ];
    const isPlain = content === was.content && whole === was.whole;
    const plain = [content, whole].flatMap((text) => (typeof text === 'string' ? [hashText(text)] : []));
    return { document: stored.head, texts, content, plain: isPlain ? plain : undefined };
  }

  /**
   * Returns a masked step. A step that a fork inherited keeps the id of the session that wrote it.
   */
  step({ seq, session_ref }: StoredDocument): MaskedDocument {
    const step = this.steps[Number(seq) - 1] as Step;
    const { part, texts } = toStepParts({ ...step, session: sessionId(String(session_ref).slice('session:'.length)) });
    return { document: part, texts: texts.length === 0 ? [] : [ofText(step.message?.text ?? '', true)] };
  }

  /**
   * Returns a session's or chat's head after the masked steps. Call this for heads in the order of
   * their steps.
   */
  folded(document: StoredDocument): MaskedDocument {
    const owner = sessionId(document['xt/id'].slice(String(document.type).length + 1));
    const { roots, ...marks } = marksOf(document);
    const upto = marks.upto ?? 0;
    const before = this.#folds.get(document['xt/id']);
    const running =
      before !== undefined && before.upto <= upto
        ? before
        : { fold: new Fold(owner, this.steps), hashes: new HeadHashes(owner) };
    this.#folds.set(document['xt/id'], { ...running, upto });
    const made = document.type === 'chat' ? runningChatHead : runningSessionHead;
    const shown = defined({ roots: roots?.map((root) => this.#of.names.folder(root)) });
    return { document: made(running.fold.at(upto, document), running.hashes, { ...marks, ...shown }), texts: [] };
  }

  async #textsOf(document: StoredDocument, marked: Sha256 | undefined): Promise<Texts> {
    const part = contentPartHash(document);
    const content = part === undefined ? (document.content as string | null) : await this.text(part);
    const argsHash = keptArgsHash(document.args);
    const args = argsHash === undefined ? JSON.stringify(document.args ?? {}) : await this.text(argsHash);
    if (content === undefined || args === undefined)
      throw new BundleError(
        'malformed',
        `a text of ${JSON.stringify(document['xt/id'])} is not in the database; run palimpsest verify ` +
          `${this.#of.session}`,
      );
    const { type, file_hash, content_hash } = document;
    const hash =
      marked ??
      (type === 'file' && file_hash !== null && content !== null && file_hash !== content_hash ? file_hash : undefined);
    return {
      content,
      whole: hash === undefined ? undefined : await this.text(hash as Sha256),
      args: JSON.parse(args) as ToolcallInput['args'],
    };
  }

  #made(document: StoredDocument, { content, whole, args }: Texts): ObjectVersion {
    const { names } = this.#of;
    const id = document['xt/id'];
    if (document.type === 'system_prompt')
      return systemPromptVersion(sessionId(id.slice('system_prompt:'.length)), content);
    if (document.type === 'file') {
      const source = names.source(id, parseSource(document.source) as FilesystemSource);
      const { file_hash, content_hash } = document as {
        readonly file_hash?: Sha256 | null;
        readonly content_hash?: Sha256 | null;
      };
      if (file_hash === null || file_hash === undefined) return fileStub(source);
      if (content === null) return nonTextFile(source, this.hash(file_hash));
      const isWhole = file_hash === content_hash;
      return indexedFile(
        source,
        content,
        isWhole ? hashText(content) : whole === undefined ? this.hash(file_hash) : hashText(whole),
      );
    }
    const { tool, args_display, status, chat_ref, file_refs } = document;
    return toolcallVersion({
      id: names.id(id) as ObjectId,
      tool: names.text(String(tool)),
      args,
      status: status as ToolcallInput['status'],
      chatRef: chat_ref as ObjectId,
      content,
      ...defined({
        argsDisplay: typeof args_display === 'string' ? names.text(args_display) : undefined,
        fileRefs: (file_refs as readonly ObjectId[] | undefined)?.map((one) => names.id(one)),
      }),
    });
  }
}
