import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { send, type WireMessage } from './wire-ends.js';

type Json = Readonly<Record<string, unknown>>;
type Block = Record<string, unknown>;

/** A message of a client's history. */
interface ClientMessage {
  readonly role: 'user' | 'assistant';
  content: string | Block[];
}

const HEADERS = (session: string): readonly string[] => [
  'content-type',
  'application/json',
  'x-claude-code-session-id',
  session,
  'x-api-key',
  'sk-ant-secret-of-the-test',
  'anthropic-beta',
  'claude-code-2026,thinking-binding-controls-2026-08-01',
];

const TOOLS = ['Bash', 'Edit', 'Read', 'Task'].map((name) => ({
  name,
  description: `The tool ${name}. ${'It has a long description. '.repeat(250)}`,
  input_schema: { type: 'object', properties: {} },
}));

const numbered = (text: string): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line, i) => `${String(i + 1).padStart(6)}\t${line}`)
    .join('\n');

/** Reads the blocks of an answer from its events. */
function blocksOf(body: string): readonly Block[] {
  const blocks: Block[] = [];
  for (const line of body.split('\n')) {
    if (!line.startsWith('data: ')) continue;
    const event = JSON.parse(line.slice(6)) as { type: string; index: number; content_block?: Block; delta?: Block };
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block };
    if (event.type !== 'content_block_delta') continue;
    const block = blocks[event.index] as Block;
    const delta = event.delta ?? {};
    if (delta.type === 'text_delta') block.text = `${block.text}${delta.text}`;
    if (delta.type === 'thinking_delta') block.thinking = `${block.thinking}${delta.thinking}`;
    if (delta.type === 'signature_delta') block.signature = `${block.signature}${delta.signature}`;
    if (delta.type === 'input_json_delta') block.input = JSON.parse(String(delta.partial_json));
  }
  return blocks;
}

/**
 * A client on Anthropic's wire that works as Claude Code does. It sends its whole history, moves
 * its cache mark, writes a varying line into the prompt, and executes reads, edits and commands.
 */
export class ClaudeScript {
  session: string = randomUUID();
  messages: ClientMessage[] = [];
  #url: string;
  readonly #folder: string;
  /** Statuses other than 200, with their bodies. */
  readonly failures: string[] = [];
  /** Times of the model calls until the answer's end, milliseconds. */
  readonly times: number[] = [];
  /** The bodies as they were sent. */
  readonly sent: string[] = [];
  /** The answers to calls of the model's own tools. */
  readonly results: { readonly text: string; readonly ok: boolean }[] = [];
  /** The address that takes those calls. */
  verbs: string | undefined;
  calls = 0;

  constructor(gateway: string, folder: string) {
    this.#url = `${gateway}/anthropic/v1/messages?beta=true`;
    this.#folder = folder;
  }

  /** Runs a turn: the user's words, then calls of the model until it calls no more tools. */
  async turn(prompt: string): Promise<void> {
    const reminder = { type: 'text', text: '<system-reminder>\nToday is a day.\n</system-reminder>' };
    const words = { type: 'text', text: prompt };
    this.messages.push({ role: 'user', content: this.messages.length === 0 ? [reminder, words] : [words] });
    for (;;) {
      const blocks = await this.ask();
      const calls = blocks.filter(({ type }) => type === 'tool_use');
      if (calls.length === 0) return;
      const content: Block[] = [];
      for (const call of calls) content.push({ type: 'tool_result', tool_use_id: call.id, ...(await this.#run(call)) });
      this.messages.push({ role: 'user', content });
    }
  }

  /** The body of the next request. */
  body(messages: readonly ClientMessage[] = this.messages): string {
    const last = messages.length - 1;
    const marked = messages.map((message, i) => {
      const { role, content } = message;
      // Bare texts and lists of blocks change from call to call.
      if (i !== last)
        return typeof content !== 'string' &&
          content.length === 1 &&
          content[0]?.type === 'text' &&
          this.calls % 2 === 0
          ? { role, content: content[0].text }
          : message;
      const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
      const end = blocks.length - 1;
      return {
        role,
        content: blocks.map((one, j) => (j === end ? { ...one, cache_control: { type: 'ephemeral' } } : one)),
      };
    });
    const mark = { cache_control: { type: 'ephemeral' } };
    return JSON.stringify({
      model: 'claude-opus-5-5',
      max_tokens: 32_000,
      stream: true,
      thinking: { type: 'adaptive' },
      system: [
        { type: 'text', text: `x-anthropic-billing-header: n=${this.calls}` },
        { type: 'text', text: 'You are an agent.', ...mark },
        { type: 'text', text: `Rules. ${'Be careful with files. '.repeat(60)}`, ...mark },
      ],
      tools: TOOLS,
      metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: this.session }) },
      messages: marked,
    });
  }

  /** Sends the history, appends the answer to it and returns the answer's blocks. */
  async ask(): Promise<readonly Block[]> {
    const begun = performance.now();
    this.calls += 1;
    const body = this.body();
    this.sent.push(body);
    const answer = await this.post(body);
    this.times.push(performance.now() - begun);
    if (!answer.start.startsWith('200')) {
      this.failures.push(`${answer.start} ${answer.body.toString('utf8')}`);
      return [];
    }
    const blocks = blocksOf(answer.body.toString('utf8'));
    this.messages.push({ role: 'assistant', content: [...blocks] });
    return blocks;
  }

  /** Sends a body to the gateway. */
  post(body: string): Promise<WireMessage> {
    return send(this.#url, { headers: HEADERS(this.session), body });
  }

  /** Continues over another gateway. */
  moveTo(gateway: string): void {
    this.#url = `${gateway}/anthropic/v1/messages?beta=true`;
  }

  /** Requests a summary and continues after it, as the client's own compaction does. */
  async compact(): Promise<void> {
    const words = 'CRITICAL: Respond with TEXT ONLY. Write a summary of the conversation.';
    const before = [...this.messages];
    this.messages.push({ role: 'user', content: [{ type: 'text', text: words }] });
    const blocks = await this.ask();
    const summary = blocks.find(({ type }) => type === 'text')?.text;
    const text = `This session is being continued from a previous conversation that ran out of context. ${summary}`;
    this.messages = before.length === 0 ? before : [{ role: 'user', content: [{ type: 'text', text }] }];
    this.messages.push({ role: 'assistant', content: [{ type: 'text', text: 'I go on.' }] });
  }

  /** Returns a client that continues this history in another session. */
  fork(): ClaudeScript {
    const fork = new ClaudeScript(this.#url.replace(/\/anthropic\/.*/, ''), this.#folder);
    fork.messages = structuredClone(this.messages);
    return fork;
  }

  async #run({ id, name, input }: Block): Promise<Json> {
    const verb = /^mcp__palimpsest__(\w+)$/.exec(String(name))?.[1];
    if (verb !== undefined) {
      const body = JSON.stringify({ verb, ids: (input as { readonly ids: unknown }).ids, callId: id });
      const answer = await send(this.verbs ?? '', { body });
      const result = JSON.parse(answer.body.toString('utf8')) as { text: string; ok: boolean };
      this.results.push(result);
      return { content: result.text };
    }
    const args = input as Readonly<Record<string, string>>;
    const path = args.file_path?.startsWith('/') === true ? args.file_path : `${this.#folder}/${args.file_path}`;
    if (name === 'Read') return { content: numbered(readFileSync(path, 'utf8')) };
    if (name === 'Bash')
      return { content: [{ type: 'text', text: `${args.command}\n${'a line of output\n'.repeat(80)}` }] };
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replaceAll(args.old_string as string, args.new_string as string));
    return { content: `The file ${path} has been updated successfully.` };
  }
}
