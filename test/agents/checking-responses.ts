import { type CheckedCall, type CheckingUpstream, startCheckedModel } from './checked-model.js';

type Json = Readonly<Record<string, unknown>>;

const CALL = /^(?:function|custom_tool)_call$/;
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : []);

/** Returns the fault for which the provider would refuse the calls and results of an input. */
function unpaired(input: readonly Json[]): string | undefined {
  const called = new Set<unknown>();
  const answered = new Set<unknown>();
  for (const [i, { type, call_id: id }] of input.entries()) {
    if (CALL.test(String(type))) {
      if (called.has(id)) return `input[${i}]: the call ${id} is there twice`;
      called.add(id);
    } else if (/_call_output$/.test(String(type))) {
      if (!called.has(id) || answered.has(id)) return `input[${i}]: the result ${id} has no call`;
      answered.add(id);
    }
  }
  const open = [...called].find((id) => !answered.has(id));
  return open === undefined ? undefined : `No tool output found for function call ${open}`;
}

/** Remembers the issued items, and checks that reasoning and the item after it stay together. */
class PairCheck {
  /** The item after each reasoning, by its encrypted content, and the other way round. */
  readonly #next = new Map<string, string>();
  readonly #before = new Map<string, string>();
  readonly #opaque = new Set<string>();

  issued(items: readonly Json[]): void {
    for (const [i, item] of items.entries()) {
      if (item.type === 'compaction') this.#opaque.add(String(item.encrypted_content));
      if (item.type !== 'reasoning') continue;
      const after = PairCheck.nameOf(items[i + 1]);
      this.#next.set(String(item.encrypted_content), after);
      this.#before.set(after, String(item.encrypted_content));
    }
  }

  faultOf(input: readonly Json[]): string | undefined {
    for (const [i, item] of input.entries()) {
      const content = String(item.encrypted_content);
      if (item.type === 'compaction' && !this.#opaque.has(content)) return `input[${i}]: the compaction was changed`;
      if (item.type === 'reasoning') {
        const next = this.#next.get(content);
        if (next === undefined) return `input[${i}]: the encrypted content could not be verified`;
        if (PairCheck.nameOf(input[i + 1]) !== next) return `input[${i}]: reasoning without its following item`;
      }
      const before = this.#before.get(PairCheck.nameOf(item));
      if (before !== undefined && input[i - 1]?.encrypted_content !== before)
        return `input[${i}]: the item was provided without its required reasoning item`;
    }
    return unpaired(input);
  }

  /** The id of an item in an answer, which a client sends back. */
  static nameOf(item: Json | undefined): string {
    return String(item?.id ?? '');
  }
}

/**
 * Starts a model on OpenAI's Responses wire that reasons before each answer. A request that
 * separates reasoning from its item, or a call from its result, gets the 400 of the provider. A
 * request for a summary gets a summary. A request that ends with `compaction_trigger` gets an
 * opaque item. `tokens` returns the size that a call reports, from the call's number.
 */
export function startCheckingResponses(tokens: (turn: number) => number = () => 1_000): Promise<CheckingUpstream> {
  const check = new PairCheck();
  const send = (call: CheckedCall, output: readonly Json[], input: number): void => {
    check.issued(output);
    const usage = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: Math.floor(input / 2) },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: input + 9,
    };
    const answer = {
      id: `resp_${process.pid}_${call.number}`,
      object: 'response',
      created_at: 0,
      status: 'in_progress',
      output: [],
    };
    call.send([
      { type: 'response.created', response: answer },
      ...output.flatMap((item, i) => [
        { type: 'response.output_item.added', output_index: i, item },
        { type: 'response.output_item.done', output_index: i, item },
      ]),
      { type: 'response.completed', response: { ...answer, status: 'completed', output, usage } },
    ]);
  };
  return startCheckedModel(/\/responses$/, (call) => {
    const { number } = call;
    const message = (text: string): Json => ({
      type: 'message',
      id: `msg_${process.pid}_${number}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    });
    const input = list(call.body.input);
    const fault = check.faultOf(input);
    if (fault !== undefined) return call.refuse(fault, { error: { type: 'invalid_request_error', message: fault } });
    if (input.at(-1)?.type === 'compaction_trigger')
      return send(call, [{ type: 'compaction', id: `cmp_${number}`, encrypted_content: `opaque ${number}` }], 1_000);
    const asked = JSON.stringify(input.at(-1) ?? '');
    if (asked.includes('CHECKPOINT COMPACTION') || list(call.body.tools).length === 0)
      return send(call, [message('The files were read.')], 1_000);
    const { tools: called = [], say } = call.move();
    const calls = called.map(({ name, args }, i): Json => {
      const id = `call_${process.pid}_${number}_${i}`;
      return name === 'apply_patch'
        ? {
            type: 'custom_tool_call',
            id: `ctc_${id}`,
            call_id: id,
            name,
            input: String(args.input),
            status: 'completed',
          }
        : {
            type: 'function_call',
            id: `fc_${id}`,
            call_id: id,
            name,
            arguments: JSON.stringify(args),
            status: 'completed',
          };
    });
    const reasoning = {
      type: 'reasoning',
      id: `rs_${number}`,
      summary: [],
      encrypted_content: `thought ${process.pid} ${number}`,
    };
    return send(call, [reasoning, ...(say === undefined ? [] : [message(say)]), ...calls], tokens(call.turns));
  });
}
