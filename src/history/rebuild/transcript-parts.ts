import { chatObjectId, type ObjectId, type SessionId, systemPromptObjectId } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { promptTokens } from './model-calls.js';
import { type ShownCall, shownCalls } from './shown-calls.js';
import { entriesAt, replacedAt, type TranscriptEntries, type TranscriptEntry } from './transcript-entries.js';
import { type Presences, readPresences } from './transcript-presence.js';

/** A part of a request as a transcript shows it. */
export interface TranscriptPart {
  readonly section: 'system' | 'list';
  /** `call`: the tool and its arguments. */
  readonly kind: 'system' | 'message' | 'summary' | 'call' | 'result';
  readonly text: string;
  /** Length of the text as the model saw it. */
  readonly chars: number;
  readonly object: ObjectId;
  /** The step that it comes from. Undefined for the system prompt. */
  readonly step?: Step;
}

/** Returns the tokens of a request by the provider's count; undefined without one. */
export function countedPrompt(usage: ModelUsage | undefined): number | undefined {
  return usage === undefined ? undefined : promptTokens(usage) || undefined;
}

/** Reads the parts of the requests that a session's transcript shows. Reads each text once. */
export class TranscriptReader {
  readonly #present: StoreSnapshot;
  readonly #session: SessionId;
  /** The entries of the requests, without texts of calls. */
  readonly told: TranscriptEntries;
  readonly #calls = new Map<ObjectId, ShownCall>();
  #prompt: Promise<string> | undefined;
  #presences: Promise<Presences> | undefined;

  constructor(present: StoreSnapshot, session: SessionId, told: TranscriptEntries) {
    [this.#present, this.#session, this.told] = [present, session, told];
  }

  /** Returns where the requests had each call and each file. */
  presences(): Promise<Presences> {
    this.#presences ??= readPresences(this.#present, this.told);
    return this.#presences;
  }

  /** Returns the parts of the request that ends at a step, in its order. */
  async at(step: number): Promise<readonly TranscriptPart[]> {
    const entries = entriesAt(this.told, step);
    const fresh = entries.filter(({ step: { call } }) => call !== undefined && !this.#calls.has(call.id));
    const read = await shownCalls(
      this.#present,
      fresh.map((entry) => entry.step),
    );
    for (const [id, call] of read) this.#calls.set(id, call);
    this.#prompt ??= this.#readPrompt();
    const prompt = await this.#prompt;
    const object = systemPromptObjectId(this.#session);
    const system: readonly TranscriptPart[] =
      prompt === '' ? [] : [{ section: 'system', kind: 'system', text: prompt, chars: prompt.length, object }];
    return [...system, ...entries.flatMap((entry) => this.#partsOf(entry, step))];
  }

  async #readPrompt(): Promise<string> {
    const id = systemPromptObjectId(this.#session);
    const heads = await this.#present.heads([id]);
    const found = (await this.#present.versionsOf([...heads.values()])).get(id);
    return found?.version.content ?? '';
  }

  #partsOf(entry: TranscriptEntry, at: number): readonly TranscriptPart[] {
    const { kind, step } = entry;
    const chat = chatObjectId(step.session);
    const list = { section: 'list', step } as const;
    if (kind === 'summary') {
      const text = step.event?.detail ?? '';
      return [{ ...list, kind, text, chars: text.length, object: chat }];
    }
    if (kind === 'message') {
      const { role = '', text: said = '' } = step.message ?? {};
      const text = `${role}: ${said}`;
      return [{ ...list, kind, text, chars: text.length, object: chat }];
    }
    const id = step.call?.id;
    const call = id === undefined ? undefined : this.#calls.get(id);
    if (id === undefined || call === undefined) return [];
    const replaced = replacedAt(entry, at);
    const [result, chars] = replaced === undefined ? [call.result, call.chars] : [replaced, replaced.length];
    return [
      { ...list, kind: 'call', text: call.head, chars: call.head.length, object: id },
      ...(result === '' ? [] : [{ ...list, kind: 'result', text: result, chars, object: id } as const]),
    ];
  }
}

const HEADS: Readonly<Record<TranscriptPart['kind'], string>> = {
  system: 'system prompt',
  message: 'message',
  summary: 'summary of a compaction',
  call: 'call',
  result: 'result',
};

/** Returns the parts of a request as one text, each below a line that names its kind. */
export const transcriptText = (parts: readonly TranscriptPart[]): string =>
  parts
    .map(({ kind, step, text }) => {
      const where = step === undefined ? '' : `, step ${step.seq}`;
      return `--- ${HEADS[kind]}${where} ---\n${text}\n`;
    })
    .join('\n');
