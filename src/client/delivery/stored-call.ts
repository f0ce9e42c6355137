import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import { type ToolcallInput, toolcallVersion } from '../../objects/versions.js';
import type { HeadMarks } from '../../store/head.js';
import { defined } from '../../values/defined.js';

/** A text that lies in parts of its own, under its hash. */
interface PartText {
  readonly hash: Sha256;
  readonly text: string;
}

/** Texts of a call that lie beside its object. */
interface CallTexts {
  /** The whole output where `content` holds only head and tail of it (decisions B8, C6). */
  readonly wholeText?: PartText;
  /** The arguments where the object only names their text (decision 0005). */
  readonly argsText?: PartText;
}

/** What a call is kept as: plain data, without the hashes that follow from it. */
export interface CallRecord extends CallTexts {
  readonly made: ToolcallInput;
}

/**
 * The object of a tool call that is to be written. Its hashes are computed when they are first asked for: the agent has its answer before, and what it is made of must not
 * change from here on.
 */
export class StoredCall implements CallTexts {
  readonly made: ToolcallInput;
  readonly wholeText?: PartText;
  readonly argsText?: PartText;
  #version: ObjectVersion<'toolcall'> | undefined;

  constructor({ made, wholeText, argsText }: CallRecord) {
    this.made = made;
    if (wholeText !== undefined) this.wholeText = wholeText;
    if (argsText !== undefined) this.argsText = argsText;
  }

  /** The object of a version that was sealed before. */
  static of(version: ObjectVersion<'toolcall'>, texts: CallTexts): StoredCall {
    const { 'xt/id': id, tool, args, args_display: argsDisplay, status, chat_ref: chatRef, file_refs: fileRefs, content } = version;
    const call = new StoredCall({ ...texts, made: { id, tool, args, status, chatRef, content, ...defined({ argsDisplay, fileRefs }) } });
    call.#version = version;
    return call;
  }

  get id(): ObjectId {
    return this.made.id;
  }

  /** The version with its hashes. @throws {DocumentError} it is made of what cannot be stored exactly */
  get version(): ObjectVersion<'toolcall'> {
    this.#version ??= toolcallVersion(this.made);
    return this.#version;
  }

  /** The marks of its head. */
  get marks(): HeadMarks {
    return { size: this.made.content?.length ?? 0, ...(this.wholeText === undefined ? {} : { whole: this.wholeText.hash }) };
  }

  /** As plain data. */
  get record(): CallRecord {
    const { made, wholeText, argsText } = this;
    return { made, ...defined({ wholeText, argsText }) };
  }

  /** The same call with something else about it, such as another id. */
  with(changes: Partial<ToolcallInput>): StoredCall {
    return new StoredCall({ ...this.record, made: { ...this.made, ...changes } });
  }
}
