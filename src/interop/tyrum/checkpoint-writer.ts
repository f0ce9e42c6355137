import type { Json } from '../../objects/canonical-json.js';
import type { Summariser, SummaryTry } from '../../projection/summary.js';
import { type Checkpoint, checkpointSchema, checkpointText, OBLIGATION_LISTS } from './checkpoint.js';
import type { SessionFacts } from './session-facts.js';
import { TyrumError } from './tyrum-error.js';

/** Whoever writes checkpoints, mostly by asking a model for JSON. May fail, or be wrong: then the one that is made without a model stands in for it. */
export interface CheckpointWriter {
  readonly name: string;
  /** A checkpoint, or its JSON as text. */
  write(asked: SummaryTry): Promise<unknown>;
}

/** Models put JSON between fences, whatever they are told. */
const FENCED = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/;

/**
 * A value as a checkpoint: exactly its fields, with a goal and a handoff.
 * @throws {TyrumError} `checkpoint-refused`, with the field
 */
function readCheckpoint(value: unknown): Checkpoint {
  let said = value;
  if (typeof said === 'string') {
    try {
      said = JSON.parse(FENCED.exec(said)?.[1] ?? said);
    } catch (error) {
      throw new TyrumError('checkpoint-refused', 'it is no JSON', { cause: error });
    }
  }
  const read = checkpointSchema.safeParse(said);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new TyrumError('checkpoint-refused', `it is not valid at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'unknown'}`);
  }
  for (const field of ['goal', 'handoff_md'] as const)
    if (read.data[field].trim() === '') throw new TyrumError('checkpoint-refused', `its ${field} is empty`);
  return read.data;
}

/**
 * A checkpoint with the obligations that it left out.
 * @throws {TyrumError} `checkpoint-refused` where it then has more tokens than it may
 */
function withObligations(checkpoint: Checkpoint, { obligations }: SessionFacts, { limit, counter }: SummaryTry): Checkpoint {
  const held = checkpointText(checkpoint);
  const whole = { ...checkpoint };
  for (const list of OBLIGATION_LISTS) whole[list] = [...whole[list], ...obligations[list].filter((one) => !held.includes(one))];
  const [own, all] = [counter.count(held), counter.count(checkpointText(whole))];
  if (all <= limit || all === own) return whole;
  throw new TyrumError(
    'checkpoint-refused',
    `it has ${own} tokens of ${limit}, and leaves out obligations that take ${all - own} more: say them, or say less of the rest`,
  );
}

/** A writer of checkpoints as a summariser: what it writes is read strictly, gets the obligations that it left out, and is then audited as every summary is. */
export function checkpointSummariser(writer: CheckpointWriter, facts: SessionFacts): Summariser {
  return {
    name: writer.name,
    summarise: async (asked) => {
      const form = withObligations(readCheckpoint(await writer.write(asked)), facts, asked);
      return { text: checkpointText(form), form: form satisfies Json };
    },
  };
}

/** A checkpoint that was written before it was asked for: one try of a writer elsewhere. */
export class SentCheckpoint implements CheckpointWriter {
  #complaint: string | undefined;

  constructor(
    readonly name: string,
    readonly checkpoint: unknown,
  ) {}

  async write({ complaint }: Pick<SummaryTry, 'complaint'>): Promise<unknown> {
    this.#complaint = complaint;
    if (complaint !== undefined) throw new TyrumError('checkpoint-refused', complaint);
    return this.checkpoint;
  }

  /**
   * Refuses a compaction that did not take it.
   * @throws {TyrumError} `checkpoint-refused`
   */
  requireTaken(): void {
    if (this.#complaint === undefined) return;
    throw new TyrumError('checkpoint-refused', `the checkpoint was not taken: ${this.#complaint}; write it anew, or send it with last_try`);
  }
}
