import { readText } from '../../harness/tool-output/read-output.js';
import { kindOfCall, searches } from '../../history/rebuild/call-names.js';
import { shownCalls } from '../../history/rebuild/shown-calls.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId } from '../../objects/ids.js';
import type { FileCall } from './acted-versions.js';
import { askedChange } from './asked-change.js';
import { editedTexts, type KnownText, linesFound, runsOf } from './known-texts.js';

/** Reads what calls showed of files. Reads each result once. */
export class ShownTexts {
  readonly #timeline: Timeline;
  readonly #results = new Map<ObjectId, Promise<string>>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /**
   * Returns the texts of a file that some calls showed, and those that own edits made of them.
   * Joins adjacent lines. `whole`: all of it, as it was at a step.
   */
  async of(
    shown: readonly FileCall[],
    path: string,
    whole?: { readonly text: string; readonly step: number },
  ): Promise<readonly KnownText[]> {
    const read = shown.filter(({ isMade }) => !isMade);
    const outputs = await this.#outputs(read);
    const numbered = new Map<number, string>();
    const texts = read.map(({ step, call }) => {
      const output = outputs.get(call.id) ?? '';
      const found = readText({ args: call.args, output, truncated: false });
      for (const [i, line] of (found?.text.split('\n') ?? []).entries())
        numbered.set((found?.startLine ?? 1) + i, line);
      return { text: found?.text ?? output, step: step.seq };
    });
    const edits = shown.flatMap(({ step, call, isMade }) => {
      const change = isMade ? askedChange(call, path) : undefined;
      return change === undefined ? [] : [{ step: step.seq, change }];
    });
    const before = [...(whole === undefined ? [] : [whole]), ...texts].sort((a, b) => a.step - b.step);
    const plain = [...texts.map(({ text }) => text), ...runsOf(numbered)];
    return [...plain.map((text): KnownText => ({ text, from: 'read' })), ...editedTexts(before, edits)];
  }

  /** Returns what calls printed of a file that they only searched or named. */
  async printed(calls: readonly FileCall[], path: string): Promise<readonly KnownText[]> {
    const outputs = await this.#outputs(calls);
    return calls.flatMap(({ call }): readonly KnownText[] => {
      const output = outputs.get(call.id) ?? '';
      if (kindOfCall(call) !== 'grep' && !searches(call)) return [{ text: output, from: 'command' }];
      const lines = linesFound(output, path, call.fileRefs.length === 1);
      return lines.length === 0 ? [] : [{ text: lines.join('\n'), from: 'search' }];
    });
  }

  async #outputs(calls: readonly FileCall[]): Promise<ReadonlyMap<ObjectId, string>> {
    const fresh = calls.filter(({ call }) => !this.#results.has(call.id));
    const read = shownCalls(
      this.#timeline.present,
      fresh.map(({ step }) => step),
    );
    for (const { call } of fresh)
      this.#results.set(
        call.id,
        read.then((all) => all.get(call.id)?.result ?? ''),
      );
    const found = await Promise.all(
      calls.map(async ({ call }) => [call.id, (await this.#results.get(call.id)) ?? ''] as const),
    );
    return new Map(found);
  }
}
