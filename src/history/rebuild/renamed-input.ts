import type { AssemblyInput } from '../../assembly/layout.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';

type Rename = (id: ObjectId) => ObjectId;

function renamedMetadata(metadata: ObjectMetadata, rename: Rename): ObjectMetadata {
  const id = rename(metadata.id);
  return metadata.type === 'toolcall' ? { ...metadata, id, fileRefs: metadata.fileRefs.map(rename) } : { ...metadata, id };
}

function renamedMessage(message: Message, rename: Rename): Message {
  return message.toolcall_refs === undefined ? message : { ...message, toolcall_refs: message.toolcall_refs.map(rename) };
}

/** What a context is made of, with other ids for its objects. */
export function renamedInput(input: Omit<AssemblyInput, 'options'>, rename: Rename): Omit<AssemblyInput, 'options'> {
  return {
    systemPrompt: input.systemPrompt,
    pool: input.pool.map((metadata) => renamedMetadata(metadata, rename)),
    turns: input.turns.map((turn) => ({ ...turn, messages: turn.messages.map((message) => renamedMessage(message, rename)) })),
    active: input.active.map(({ metadata, content }) => ({ metadata: renamedMetadata(metadata, rename), content })),
  };
}
