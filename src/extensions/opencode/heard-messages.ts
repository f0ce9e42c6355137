import type { OpencodeInfo, OpencodeMessage, OpencodePart } from './opencode-api.js';

const isCompleted = ({ time }: OpencodeInfo): boolean => (time as { readonly completed?: number } | undefined)?.completed !== undefined;

/** Messages of which parts are kept. */
const MOST = 50;

/** The messages of the model as OpenCode's events tell of them, part by part: it may end before anybody can ask for the last one. */
export class HeardMessages {
  readonly #parts = new Map<string, Map<string, OpencodePart>>();

  /** Takes in a part as it stands now. */
  part(part: OpencodePart): void {
    const parts = this.#parts.get(part.messageID) ?? new Map<string, OpencodePart>();
    this.#parts.set(part.messageID, parts.set(part.id, part));
    // Messages of the user are never completed.
    for (const id of this.#parts.keys()) if (this.#parts.size > MOST) this.#parts.delete(id);
  }

  /** The message, once the model is done with it; undefined for any other, and for a summary of a compaction. */
  completed(info: OpencodeInfo): OpencodeMessage | undefined {
    if (info.role !== 'assistant' || !isCompleted(info)) return undefined;
    const parts = this.#parts.get(info.id);
    this.#parts.delete(info.id);
    return parts === undefined || info.summary === true ? undefined : { info, parts: [...parts.values()] };
  }
}

/**
 * The list before a model call with what the model answered; undefined where the message is no answer to it: a command of the user's own and a task that
 * was asked for come with a message of the user that the list does not have.
 */
export function answeredList(own: readonly OpencodeMessage[], message: OpencodeMessage): readonly OpencodeMessage[] | undefined {
  const { id, parentID } = message.info;
  const asked = own.findLast(({ info }) => info.role === 'user')?.info.id;
  return parentID === undefined || parentID === asked ? [...own.filter(({ info }) => info.id !== id), message] : undefined;
}
