/** What became of a prompt that waited. */
export interface QueuedPrompt {
  readonly text: string;
  /** Whether the model got it in the middle of a turn; else the person took it back. */
  readonly given: boolean;
}

/**
 * Prompts that were typed while the model worked. The recording tells how they entered and left the queue: one that is dequeued follows as a prompt of its
 * own, one that is removed was handed to the model in the middle of a turn (later versions write it as an attachment too), all popped went back to the editor.
 */
export class QueuedPrompts {
  #waiting: string[] = [];
  /** Prompts that came as attachments or by removal, and have not come the other way yet. */
  #attached: string[] = [];
  #removed: string[] = [];

  /** A prompt came as an attachment; whether it is new. */
  attach(text: string): boolean {
    if (takeOut(this.#removed, text)) return false;
    this.#attached.push(text);
    return true;
  }

  /** What an operation on the queue says of prompts that stand nowhere else. */
  operate(operation: string, content: string | undefined): readonly QueuedPrompt[] {
    if (operation === 'enqueue') {
      this.#waiting.push(content ?? '');
      return [];
    }
    if (operation === 'popAll') {
      const back = content === undefined ? this.#waiting : [content];
      this.#waiting = [];
      return back.filter((text) => text !== '').map((text) => ({ text, given: false }));
    }
    const first = this.#waiting.shift() ?? '';
    const text = content ?? first;
    if (operation !== 'remove' || text === '' || takeOut(this.#attached, text)) return [];
    this.#removed.push(text);
    return [{ text, given: true }];
  }
}

function takeOut(texts: string[], text: string): boolean {
  const at = texts.indexOf(text);
  if (at >= 0) texts.splice(at, 1);
  return at >= 0;
}
