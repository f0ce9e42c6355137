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
import type { AnswerPiece, AnswerProof, Step } from '../objects/step.js';
import { fileStub, indexedFile, nonTextFile, systemPromptVersion, type ToolcallInput, toolcallVersion } from '../objects/versions.js';
import { contentPartHash, marksOf, runningChatHead, runningSessionHead, toStored } from '../store/head.js';
import type { SessionDocuments } from '../store/session-documents.js';
import { toStepParts } from '../store/step-part.js';
import { defined } from '../values/defined.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { BundleError } from './bundle-error.js';
import { Fold } from './check-sessions.js';
import type { MaskedNames } from './masked-names.js';

/** A text that a masked document names. */
export interface MaskedText {
  readonly hash: Sha256;
  readonly isMessage: boolean;
  readonly text: string;
}

/** A document in which something was masked, with its texts. */
export interface MaskedDocument {
  readonly document: StoredDocument;
  readonly texts: readonly MaskedText[];
}

/** A version in which something may have been masked. */
export interface MaskedVersion extends MaskedDocument {
  /** What it holds of its text; null for one without. */
  readonly content: string | null;
  /** The texts that an answer can be proved with: what it holds and all of it, where that is kept. Undefined where something was masked in them. */
  readonly plain: readonly Sha256[] | undefined;
}

/** Whose documents are masked. */
export interface MaskedSession {
  readonly session: SessionId;
  readonly documents: SessionDocuments;
  readonly names: MaskedNames;
  /** Its steps as they were, from the first on. */
  readonly steps: readonly Step[];
}

/** UTF-16 units of texts, and of masked versions, that are held. */
const HELD_UNITS = 16 * 1_048_576;

const ofText = (text: string, isMessage = false): MaskedText => ({ hash: hashText(text), isMessage, text });

type Masked<Name extends keyof Step> = (value: NonNullable<Step[Name]>, names: MaskedNames) => Step[Name];

const same = <Value>(value: Value): Value => value;
const ids = <Value>(value: Value, names: MaskedNames): Value => names.ids(value);

/** What each member of a step is where something is hidden; a new one has to be thought of here. Calls are masked apart. */
const MASKED: { readonly [Name in keyof Required<Step>]: Masked<Name> } = {
  session: same,
  seq: same,
  turn: same,
  at: same,
  opens: (opens, names) => ({ ...opens, ...defined({ ref: opens.ref && names.text(opens.ref) }) }),
  message: ({ role, text, name, toolcall_refs }, names) => ({
    role: names.text(role),
    text: names.text(text),
    ...defined({ name: name && names.text(name), toolcall_refs: names.ids(toolcall_refs) }),
  }),
  call: same,
  changes: ids,
  fresh: ids,
  native: (native, names) => names.text(native),
  usage: (usage, names) => ({
    ...usage,
    ...defined({ cacheMiss: usage.cacheMiss && { ...usage.cacheMiss, reason: names.text(usage.cacheMiss.reason) } }),
  }),
  event: (event, names) => ({ ...event, ...defined({ detail: event.detail && names.text(event.detail) }) }),
  notes: (notes, names) => notes.map((note) => names.text(note)),
  by: same,
  undoes: same,
};

/** What a version's texts were. */
interface Texts {
  readonly content: string | null;
  /** Of a text of which the version holds head and tail, all of it where it is kept. */
  readonly whole: string | undefined;
  readonly args: ToolcallInput['args'];
}

/**
 * Hides texts in the documents of a session. What changes is made anew by those who make versions, steps and heads, so that its hashes are those of what is left; of what is not kept at all no hash is told, but a name that was made
 * of nothing. The same documents are masked alike each time.
 */
export class MaskedDocuments {
  /** The steps as they are written, from the first on. */
  readonly steps: Step[] = [];
  readonly #of: MaskedSession;
  readonly #long = new LRUCache<string, string>({ maxSize: HELD_UNITS, sizeCalculation: ({ length }) => length + 64 });
  readonly #versions = new LRUCache<string, MaskedVersion>({
    maxSize: HELD_UNITS,
    sizeCalculation: ({ texts, content }) => texts.reduce((sum, { text }) => sum + text.length, 2_048 + (content?.length ?? 0)),
  });
  /** Hashes that are not told, and what stands for them. */
  readonly #hashes = new Map<string, string>();
  /** Objects of which a version's text was masked. */
  readonly #masked = new Set<string>();
  /** Ids with the hashes of the texts that are written as they were. */
  readonly #held = new Set<string>();
  readonly #folds = new Map<string, { readonly fold: Fold; readonly hashes: HeadHashes; readonly upto: number }>();
  #unheld = 0;

  constructor(of: MaskedSession) {
    this.#of = of;
  }

  /** How many versions differ from what they were. */
  versions = 0;

  /** Takes in a version, which others are made of: its hash is known from then on, and that it differs. */
  async learn(document: StoredDocument): Promise<void> {
    const { document: made, plain } = await this.version(document);
    if (document.type === 'file') {
      // One that is only mentioned may have been shown without ever being written.
      const [was, is] = [document.source, made.source].map((source) => fileStub(parseSource(source) as FilesystemSource).object_hash);
      this.tell(String(was), String(is));
    }
    if (plain === undefined) this.#masked.add(document['xt/id']);
    else for (const hash of plain) this.#held.add(`${document['xt/id']} ${hash}`);
    this.tell(String(document.object_hash), String(made.object_hash));
    if (isDeepStrictEqual({ ...made }, { ...document })) return;
    this.versions += 1;
  }

  /** Takes in the steps, once every version is known. Answers how many differ. */
  learnSteps(): number {
    for (const step of this.#of.steps) this.steps.push(this.#step(step));
    return this.steps.filter((step, i) => !isDeepStrictEqual(step, this.#of.steps[i])).length;
  }

  /** Says what stands for a hash. */
  tell(hash: string, made: string): void {
    this.#hashes.set(hash, made);
  }

  /** What stands for a hash or a name; undefined for one that nothing was said of. */
  told(hash: string): string | undefined {
    return this.#hashes.get(hash);
  }

  /** What is told in the place of a hash: of something that the bundle does not hold a name. */
  hash(hash: string): Sha256 {
    const known = this.#hashes.get(hash);
    if (known !== undefined) return known as Sha256;
    this.#unheld += 1;
    const name = hashText(canonicalJson(['redacted', this.#of.session, this.#unheld]));
    this.#hashes.set(hash, name);
    return name;
  }

  /** A text by its hash, as it was; undefined where it is not kept. */
  async text(hash: Sha256): Promise<string | undefined> {
    const known = this.#long.get(hash);
    if (known !== undefined) return known;
    const parts = await this.#of.documents.textParts(hash);
    if (parts.length === 0) return undefined;
    const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('');
    this.#long.set(hash, text);
    return text;
  }

  /** A version of a file, call or prompt. */
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
    // Of one that is hidden as a whole nothing is left, whatever its texts have in common with what is masked.
    const whole = was.whole === undefined || mark !== undefined ? undefined : names.text(was.whole);
    // Masked before it is cut: of half a text nobody can tell what it was.
    const isCut = was.whole !== undefined && abridge(was.whole).content === was.content;
    const shown = isCut ? () => abridge(whole ?? '').content : () => names.text(was.content ?? '');
    const content = was.content === null ? null : (mark ?? shown());
    const args = document.type === 'toolcall' ? keptArgs(names.value(was.args as Json) as typeof was.args) : undefined;
    const made = this.#made(document, { content, whole: mark === undefined ? whole : (content ?? undefined), args: args?.args ?? {} });
    const kept = whole === undefined || document.type === 'file' ? undefined : hashText(whole);
    const isOfContent = mark !== undefined || size === (was.content?.length ?? 0);
    const stored = toStored(
      made,
      defined({ gone, whole: kept, size: size === undefined ? undefined : isOfContent ? (content?.length ?? 0) : (whole?.length ?? size) }),
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

  /** A step as it is written; of a fork's shared ones each is of the session that wrote it. */
  step({ seq, session_ref }: StoredDocument): MaskedDocument {
    const step = this.steps[Number(seq) - 1] as Step;
    const { part, texts } = toStepParts({ ...step, session: sessionId(String(session_ref).slice('session:'.length)) });
    return { document: part, texts: texts.length === 0 ? [] : [ofText(step.message?.text ?? '', true)] };
  }

  /** The head of a session or chat, folded from the steps as they are written; asked for in their order. */
  folded(document: StoredDocument): MaskedDocument {
    const owner = sessionId(document['xt/id'].slice(String(document.type).length + 1));
    const { roots, ...marks } = marksOf(document);
    const upto = marks.upto ?? 0;
    const before = this.#folds.get(document['xt/id']);
    const running =
      before !== undefined && before.upto <= upto ? before : { fold: new Fold(owner, this.steps), hashes: new HeadHashes(owner) };
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
        `a text of ${JSON.stringify(document['xt/id'])} is not in the database: palimpsest verify ${this.#of.session} says more`,
      );
    const { type, file_hash, content_hash } = document;
    const hash =
      marked ?? (type === 'file' && file_hash !== null && content !== null && file_hash !== content_hash ? file_hash : undefined);
    return {
      content,
      whole: hash === undefined ? undefined : await this.text(hash as Sha256),
      args: JSON.parse(args) as ToolcallInput['args'],
    };
  }

  #made(document: StoredDocument, { content, whole, args }: Texts): ObjectVersion {
    const { names } = this.#of;
    const id = document['xt/id'];
    if (document.type === 'system_prompt') return systemPromptVersion(sessionId(id.slice('system_prompt:'.length)), content);
    if (document.type === 'file') {
      const source = names.source(id, parseSource(document.source) as FilesystemSource);
      const { file_hash, content_hash } = document as { readonly file_hash?: Sha256 | null; readonly content_hash?: Sha256 | null };
      if (file_hash === null || file_hash === undefined) return fileStub(source);
      if (content === null) return nonTextFile(source, this.hash(file_hash));
      const isWhole = file_hash === content_hash;
      return indexedFile(source, content, isWhole ? hashText(content) : whole === undefined ? this.hash(file_hash) : hashText(whole));
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

  #step(step: Step): Step {
    const entries = Object.entries(step).map(([name, value]) => [name, MASKED[name as keyof Step](value as never, this.#of.names)]);
    const made = Object.fromEntries(entries) as unknown as Step;
    const { call } = step;
    return call === undefined
      ? made
      : { ...made, call: { ...defined({ by: call.by }), id: this.#of.names.id(call.id), ...this.#answer(call) } };
  }

  /** What proves an answer, where it can be made of what the bundle holds as it was; a proof of anything else would be the hash of something that is not there. */
  #answer({ id, answer }: NonNullable<Step['call']>): { readonly answer?: AnswerProof } {
    if (answer === undefined) return {};
    const { names } = this.#of;
    const isPlain = (piece: AnswerPiece): boolean =>
      typeof piece === 'string' ? names.text(piece) === piece : !this.#masked.has(piece.id ?? id);
    const isHeld = this.#held.has(`${id} ${answer.sha256}`) || (answer.pieces?.every(isPlain) ?? false);
    if (!isHeld) return {};
    const renamed = (piece: AnswerPiece): AnswerPiece =>
      typeof piece === 'string' ? piece : { ...piece, ...defined({ id: piece.id && names.id(piece.id) }) };
    return { answer: { ...answer, ...defined({ pieces: answer.pieces?.map(renamed) }) } };
  }
}
