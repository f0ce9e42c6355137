import * as z from 'zod';
import { messageSchema, type ReportedMessage } from '../harness/message-schema.js';
import { asList, asObject, type Json, parsedBody } from './json-facts.js';
import type { SentRequest } from './read-log.js';

const messagesSchema = z.array(messageSchema);

/** The conversation in a request, in the form that a harness reports. */
export interface RequestHistory {
  readonly system: string | undefined;
  readonly messages: readonly ReportedMessage[];
}

const textOf = (content: unknown): string | undefined => {
  if (typeof content === 'string') return content;
  const texts = asList(content).flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
  return texts.length === 0 ? undefined : texts.join('\n');
};

const withoutUndefined = (message: Json): Json =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== undefined));

/** Returns the items of the Responses API as messages. Skips opaque items. */
function itemMessages(input: unknown): readonly Json[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return asList(input).flatMap((item): readonly Json[] => {
    const { type = 'message', role, content, call_id: id, name, arguments: args, output } = item;
    if (type === 'message') return [{ role: role === 'developer' ? 'system' : role, content: textOf(content) ?? '' }];
    if (type === 'function_call' || type === 'custom_tool_call')
      return [{ role: 'assistant', content: null, tool_calls: [{ id, name, arguments: args ?? item.input ?? null }] }];
    if (type === 'function_call_output' || type === 'custom_tool_call_output')
      return [{ role: 'tool', tool_call_id: id, content: textOf(output) ?? JSON.stringify(output ?? null) }];
    return [];
  });
}

/** Converts Gemini's contents to messages. Numbers the calls that have no id. */
function geminiMessages(contents: unknown): readonly Json[] {
  let calls = 0;
  let results = 0;
  return asList(contents).flatMap(({ role, parts }): readonly Json[] => {
    const text = textOf(asList(parts).filter(({ thought }) => thought !== true));
    const made = asList(parts).flatMap(({ functionCall }) => {
      if (functionCall === undefined) return [];
      calls += 1;
      const { id = `call-${calls}`, name, args } = asObject(functionCall);
      return [{ id, name, arguments: args ?? {} }];
    });
    const answers = asList(parts).flatMap(({ functionResponse }) => {
      if (functionResponse === undefined) return [];
      results += 1;
      const { id = `call-${results}`, response } = asObject(functionResponse);
      return [{ role: 'tool', tool_call_id: id, content: JSON.stringify(response ?? null) }];
    });
    const said = role === 'model' ? 'assistant' : 'user';
    const calling = made.length === 0 ? {} : { tool_calls: made };
    const message = text === undefined && made.length === 0 ? [] : [{ role: said, content: text ?? null, ...calling }];
    return [...answers, ...message];
  });
}

/**
 * Returns the conversation in a request. Undefined if the body does not have the format of its
 * wire.
 */
export function requestHistory({ wire, spans, rebuilt }: SentRequest): RequestHistory | undefined {
  const whole = parsedBody(Buffer.concat(rebuilt?.spans ?? spans));
  const body = wire === 'gemini' && whole.contents === undefined ? asObject(whole.request) : whole;
  const messages =
    wire === 'responses'
      ? itemMessages(body.input)
      : wire === 'gemini'
        ? geminiMessages(body.contents)
        : asList(body.messages);
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const leading = messages.slice(0, Math.max(0, first));
  const system = [
    textOf(body.system ?? body.instructions ?? asObject(body.systemInstruction).parts),
    ...leading.map(({ content }) => textOf(content)),
  ].filter((text) => text !== undefined && text !== '');
  const parsed = messagesSchema.safeParse(messages.slice(leading.length).map(withoutUndefined));
  if (!parsed.success || parsed.data.length === 0) return undefined;
  return { system: system.length === 0 ? undefined : system.join('\n\n'), messages: parsed.data };
}
