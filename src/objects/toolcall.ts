import { defined } from '../values/defined.js';
import type { Json } from './canonical-json.js';
import type { ObjectId } from './ids.js';
import { type ObjectVersion, sealVersion } from './seal.js';

/** What a tool call object is made of [§2.6]; optional members are left out of the document when absent (decision A2). */
export interface ToolcallInput {
  readonly id: ObjectId;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly status: 'ok' | 'fail';
  readonly chatRef: ObjectId;
  readonly fileRefs?: readonly ObjectId[];
  /** The tool's output as stored: whole, or head and tail of it when over the cap (decision B8). */
  readonly content: string | null;
}

/** The one version of a tool call [§2.6, §5.7]. */
export function toolcallVersion(input: ToolcallInput): ObjectVersion<'toolcall'> {
  const { id, tool, args, argsDisplay, status, chatRef, fileRefs, content } = input;
  return sealVersion({
    type: 'toolcall',
    id,
    content,
    file_hash: null,
    fields: {
      tool,
      args,
      ...defined({ args_display: argsDisplay }),
      status,
      chat_ref: chatRef,
      ...(fileRefs === undefined || fileRefs.length === 0 ? {} : { file_refs: fileRefs }),
    },
  });
}
