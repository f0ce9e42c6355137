import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import { type ToolcallInput, toolcallVersion } from '../../objects/versions.js';
import type { HeadMarks } from '../../store/head.js';
import { defined } from '../../values/defined.js';

/** A text stored in separate parts, under its hash. */
interface PartText {
  readonly hash: Sha256;
  readonly text: string;
}

/** Texts of a call that are stored beside its object. */
interface CallTexts {
  /** The whole output, if `content` holds only its head and tail (decisions B8, C6). */
  readonly wholeText?: PartText;
  /** The arguments, if the object only references their text (decision 0005). */
  readonly argsText?: PartText;
}

/** The stored form of a call: plain data without derived hashes. */
export interface CallRecord extends CallTexts {
  readonly made: ToolcallInput;
}

/**
 * A tool call's object before it is written. Its hashes are computed on first use, so that the
 * agent gets its response first. The input must not change after construction.
 */
export class StoredCall {
  readonly made: ToolcallInput;
  readonly wholeText: PartText | undefined;
  readonly argsText: PartText | undefined;
  #version: ObjectVersion<'toolcall'> | undefined;

  constructor({ made, wholeText, argsText }: CallRecord) {
    this.made = made;
    this.wholeText = wholeText;
    this.argsText = argsText;
  }

  /** Wraps a sealed version. */
  static of(version: ObjectVersion<'toolcall'>, texts: CallTexts): StoredCall {
    const {
      'xt/id': id,
      tool,
      args,
      args_display: argsDisplay,
      status,
      chat_ref: chatRef,
      file_refs: fileRefs,
      content,
    } = version;
    const call = new StoredCall({
      ...texts,
      made: { id, tool, args, status, chatRef, content, ...defined({ argsDisplay, fileRefs }) },
    });
    call.#version = version;
    return call;
  }

  get id(): ObjectId {
    return this.made.id;
  }

  /**
   * The version with its hashes.
   * @throws {DocumentError} the input cannot be stored exactly
   */
  get version(): ObjectVersion<'toolcall'> {
    this.#version ??= toolcallVersion(this.made);
    return this.#version;
  }

  /** The marks of its head. */
  get marks(): HeadMarks {
    return {
      size: this.made.content?.length ?? 0,
      ...(this.wholeText === undefined ? {} : { whole: this.wholeText.hash }),
    };
  }

  /** The call as plain data. */
  get record(): CallRecord {
    const { made, wholeText, argsText } = this;
    return { made, ...defined({ wholeText, argsText }) };
  }

  /** Returns a copy of the call with changes, such as another id. */
  with(changes: Partial<ToolcallInput>): StoredCall {
    return new StoredCall({ ...this.record, made: { ...this.made, ...changes } });
  }
}
