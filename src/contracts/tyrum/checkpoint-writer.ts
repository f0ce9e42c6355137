import type { Json } from '../../objects/canonical-json.js';
import type { Summariser, SummaryTry } from '../projection/summary.js';
import { type Checkpoint, checkpointSchema, checkpointText, OBLIGATION_LISTS } from './checkpoint.js';
import type { SessionFacts } from './session-facts.js';
import { TyrumError } from './tyrum-error.js';

/**
 * Writes checkpoints, usually by asking a model for JSON. If it fails or returns an invalid
 * checkpoint, the one made without a model is used.
 */
export interface CheckpointWriter {
  readonly name: string;
  /** Returns a checkpoint, or its JSON as text. */
  write(asked: SummaryTry): Promise<unknown>;
}

/** Models put JSON into a code fence even if the prompt forbids it. */
const FENCED = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?```\s*$/;

/**
 * Parses a checkpoint: exactly the fields of the contract, with a goal and a handoff.
 * @throws {TyrumError} `checkpoint-refused`, with the field
 */
function readCheckpoint(value: unknown): Checkpoint {
  let said = value;
  if (typeof said === 'string') {
    try {
      said = JSON.parse(FENCED.exec(said)?.[1] ?? said);
    } catch (error) {
      throw new TyrumError('checkpoint-refused', 'it is not JSON', { cause: error });
    }
  }
  const read = checkpointSchema.safeParse(said);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new TyrumError(
      'checkpoint-refused',
      `it is not valid at ${issue?.path.join('.') || 'its top level'}: ${issue?.message ?? 'unknown'}`,
    );
  }
  for (const field of ['goal', 'handoff_md'] as const)
    if (read.data[field].trim() === '') throw new TyrumError('checkpoint-refused', `its ${field} is empty`);
  return read.data;
}

/**
 * Adds the obligations that a checkpoint lacks.
 * @throws {TyrumError} `checkpoint-refused` if they make the checkpoint exceed the token limit
 */
function withObligations(
  checkpoint: Checkpoint,
  { obligations }: SessionFacts,
  { limit, counter }: SummaryTry,
): Checkpoint {
  const held = checkpointText(checkpoint);
  const whole = { ...checkpoint };
  for (const list of OBLIGATION_LISTS)
    whole[list] = [...whole[list], ...obligations[list].filter((one) => !held.includes(one))];
  const [own, all] = [counter.count(held), counter.count(checkpointText(whole))];
  if (all <= limit || all === own) return whole;
  throw new TyrumError(
    'checkpoint-refused',
    `it has ${own} of at most ${limit} tokens, and leaves out obligations that take ${all - own} more: ` +
      'include them, or shorten the rest',
  );
}

/**
 * Wraps a checkpoint writer as a summariser. Its output is parsed strictly, completed with missing
 * obligations, and audited like every summary.
 */
export function checkpointSummariser(writer: CheckpointWriter, facts: SessionFacts): Summariser {
  return {
    name: writer.name,
    summarise: async (asked) => {
      const form = withObligations(readCheckpoint(await writer.write(asked)), facts, asked);
      return { text: checkpointText(form), form: form satisfies Json };
    },
  };
}

/** A writer for a checkpoint that the caller sent with the request. It has one attempt. */
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
   * Throws if the sent checkpoint was rejected.
   * @throws {TyrumError} `checkpoint-refused`
   */
  requireTaken(): void {
    if (this.#complaint === undefined) return;
    throw new TyrumError(
      'checkpoint-refused',
      `the checkpoint was not accepted: ${this.#complaint}; write it again, or send it with last_try`,
    );
  }
}
