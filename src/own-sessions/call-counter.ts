import { ModelCallRule } from '../history/rebuild/model-calls.js';

/** Counts the model calls of a session as an import would count them in its steps. */
export class CallCounter {
  readonly rule = new ModelCallRule();
  calls = 0;
  /** Number of calls that were copied from another session. */
  copied = 0;
  /** Number of its own tool calls. They count as model calls if there are no answers with text. */
  tools = 0;
  /** Calls that a rewind took back. */
  left = { calls: 0, tools: 0 };
  hasAnswers = false;

  add(begins: boolean, copied: boolean | undefined): void {
    if (!begins) return;
    this.calls += 1;
    if (copied === true) this.copied += 1;
  }

  /** Calls that the session made itself. */
  get own(): number {
    return this.hasAnswers ? this.calls - this.copied : this.tools;
  }

  /** Its own calls in the conversation as it is now. */
  get kept(): { readonly calls: number; readonly tools: number } {
    return { calls: this.calls - this.copied - this.left.calls, tools: this.tools - this.left.tools };
  }

  returnTo({ calls, tools }: CallCounter['kept']): void {
    this.left = { calls: this.calls - this.copied - calls, tools: this.tools - tools };
  }
}
