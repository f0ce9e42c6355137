import type { OpenContext } from '../../harness/http/session-entries.js';
import { defined } from '../../values/defined.js';
import type { AnswerBody, RequestBody } from './http-schemas.js';

/**
 * Returns the session as Amplifier's context manager. Loads the module on the first request,
 * because its token counter loads a vocabulary.
 */
async function contextOf({ client, session }: OpenContext) {
  const { AmplifierContext } = await import('./amplifier-context.js');
  return new AmplifierContext(client, session);
}

/** Adds messages to the list. */
export async function addAmplifierMessages(
  open: OpenContext,
  { messages }: RequestBody<'AmplifierMessages'>,
): Promise<AnswerBody<'AmplifierAdded'>> {
  return { ...(await (await contextOf(open)).add(messages)) };
}

/** Returns the whole list. */
export async function amplifierMessages(open: OpenContext): Promise<AnswerBody<'AmplifierMessageList'>> {
  return { messages: [...(await (await contextOf(open)).messages())] };
}

/** Sets the whole list. */
export async function setAmplifierMessages(
  open: OpenContext,
  { messages, ...options }: RequestBody<'AmplifierList'>,
): Promise<AnswerBody<'AmplifierListSet'>> {
  return { outcome: await (await contextOf(open)).set(messages, defined(options)) };
}

/** Clears the list. */
export async function clearAmplifierMessages(open: OpenContext): Promise<AnswerBody<'AmplifierCleared'>> {
  return { cleared: await (await contextOf(open)).clear() };
}

/** Returns the list within a token limit. */
export async function viewAmplifierMessages(
  open: OpenContext,
  body: RequestBody<'AmplifierView'>,
): Promise<AnswerBody<'AmplifierMessagesView'>> {
  const { view, messages, all, before } = await (await contextOf(open)).view({
    budget: body.budget,
    ...defined({
      compactThreshold: body.compact_threshold,
      targetUsage: body.target_usage,
      protectedRecent: body.protected_recent,
      protectedToolResults: body.protected_tool_results,
      maxToolResultBytes: body.max_tool_result_bytes,
      summary: body.summary,
      preserveSystem: body.preserve_system,
    }),
  });
  const { shrunk, state } = view;
  const compaction =
    shrunk === undefined
      ? null
      : {
          before_tokens: shrunk.before,
          after_tokens: shrunk.after,
          before_messages: before,
          after_messages: messages.length,
          steps: [...shrunk.steps],
          lines: shrunk.lines.length,
          gone: shrunk.gone.length,
          cut: shrunk.cut.length,
          summary: state.summary?.text ?? null,
        };
  return {
    messages: [...messages],
    tokens: view.tokens,
    counter: view.counter,
    limit: view.limits.most,
    all,
    lines: state.lines.length,
    gone: state.gone.length,
    compaction,
  };
}
