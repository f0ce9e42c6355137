import type { Json } from '../../objects/canonical-json.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type { AssistantEntry, Entry, ResultEntry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';

type Fields = { readonly [key: string]: Json };

/** Hides the content that redaction rules name. */
export interface TrajectoryMask {
  masked(text: string): string;
  maskedValue(value: Json): Json;
  /** Returns true if an object's whole content is hidden. */
  hides(id: string): boolean;
}

/** The input of a trajectory: a session at a moment, its steps, and the agent that ran it. */
export interface TrajectorySource {
  readonly projection: Projection;
  readonly steps: readonly Step[];
  readonly version: string;
  readonly mask: TrajectoryMask;
}

const HIDDEN = '[redacted]';

/** In ATIF, the prompt's tokens include the cached tokens. */
function metricsOf({ input, output, cacheRead, cacheWrite }: ModelUsage): Fields {
  const prompt = input === undefined ? undefined : input + (cacheRead ?? 0) + (cacheWrite ?? 0);
  return defined({ prompt_tokens: prompt, completion_tokens: output, cached_tokens: cacheRead });
}

/** Builds the steps of a trajectory. */
class TrajectorySteps {
  readonly #mask: TrajectoryMask;
  readonly #usage: ReadonlyMap<number, ModelUsage>;
  readonly #results: ReadonlyMap<string, readonly ResultEntry[]>;

  constructor({ projection, steps, mask }: TrajectorySource) {
    this.#mask = mask;
    this.#usage = new Map(steps.flatMap(({ seq, usage }) => (usage === undefined ? [] : [[seq, usage] as const])));
    const results = new Map<string, ResultEntry[]>();
    for (const entry of projection.entries) {
      if (entry.kind !== 'result') continue;
      const known = results.get(entry.of);
      if (known === undefined) results.set(entry.of, [entry]);
      else known.push(entry);
    }
    this.#results = results;
  }

  /** Returns the step of an entry; undefined for results, which are part of their call's step. */
  of(entry: Entry): Fields | undefined {
    if (entry.kind === 'result' || entry.kind === 'approval') return undefined;
    const source = entry.kind === 'assistant' ? 'agent' : entry.kind === 'user' ? 'user' : 'system';
    const said = { source, message: this.#mask.masked(entry.text) };
    const common = entry.at > 0 ? { timestamp: new Date(entry.at).toISOString(), ...said } : said;
    return entry.kind === 'assistant' ? { ...common, ...this.#answer(entry) } : common;
  }

  #answer({ id, seq, calls }: AssistantEntry): Fields {
    const usage = this.#usage.get(seq);
    const metrics = usage === undefined ? {} : metricsOf(usage);
    return {
      ...(Object.keys(metrics).length === 0 ? {} : { metrics }),
      ...(calls.length === 0
        ? {}
        : {
            tool_calls: calls.map((call) => ({
              tool_call_id: call.native,
              function_name: call.tool,
              arguments: this.#mask.hides(call.id)
                ? { redacted: HIDDEN }
                : this.#mask.maskedValue(JSON.parse(call.argsText) as Json),
            })),
            observation: { results: (this.#results.get(id) ?? []).map((result) => this.#result(result)) },
          }),
    };
  }

  #result({ native, call, text, status }: ResultEntry): Fields {
    return {
      source_call_id: native,
      content: this.#mask.hides(call) ? HIDDEN : this.#mask.masked(text ?? ''),
      ...(status === 'fail' ? { extra: { is_error: true } } : {}),
    };
  }
}

const sum = (numbers: readonly (number | undefined)[]): number | undefined => {
  const known = numbers.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, one) => total + one, 0);
};

/**
 * Returns a session as an ATIF 1.7 trajectory. A step is a message, with its calls and their
 * results. Pure: the same session gives the same value. The model's thinking is not stored, so no
 * step has it.
 */
export function trajectoryOf(source: TrajectorySource): Fields {
  const { projection, version } = source;
  const made = new TrajectorySteps(source);
  const steps = projection.entries
    .map((entry) => made.of(entry))
    .filter((step) => step !== undefined)
    .map((step, i): Fields => ({ step_id: i + 1, ...step }));
  const metrics = [...source.steps].flatMap(({ usage }) => (usage === undefined ? [] : [metricsOf(usage)]));
  const total = (name: string): number | undefined => sum(metrics.map((one) => one[name] as number | undefined));
  return {
    schema_version: 'ATIF-v1.7',
    session_id: projection.session,
    agent: { name: 'palimpsest', version },
    steps,
    final_metrics: defined({
      total_prompt_tokens: total('prompt_tokens'),
      total_completion_tokens: total('completion_tokens'),
      total_cached_tokens: total('cached_tokens'),
      total_steps: steps.length,
    }),
  };
}
