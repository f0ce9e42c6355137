import type { AssemblyInput } from '../../assembly/layout.js';
import type { DisplayPaths, ObjectMetadata } from '../../assembly/metadata.js';
import { liesIn, MountTable } from '../../filesystem/access/mounts.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { callSuffix, filesystemId, type ObjectId, type SessionId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { FilesystemSource } from '../../objects/source.js';

/** Returns the paths as the agent saw them in a context, and which files it saw [§5.3]. */
export function shownPaths({ mounts = [], folders }: Pick<AssemblyProof, 'mounts' | 'folders'>): DisplayPaths {
  const [first] = mounts;
  const shows = folders === undefined ? {} : { shows: (source: FilesystemSource) => liesIn(source, folders) };
  if (first === undefined) return { display: ({ path }) => path, ...shows };
  const table = new MountTable({ mappings: mounts, defaultFilesystemId: filesystemId(first.filesystemId) });
  return { display: ({ path, filesystemId: id }) => table.toDisplay(path, id), ...shows };
}

/** Maps the id of an object to another id. */
export type Rename = (id: ObjectId) => ObjectId;

/** Returns the map from a fork's ids to the ids that the agent was shown (decision F6). */
export function shownName(session: SessionId, { rescuedFrom }: AssemblyProof): Rename {
  if (rescuedFrom === undefined) return (id) => id;
  const endings = [callSuffix(session), `@${session}`];
  return (id) => {
    const ending = endings.find((one) => id.endsWith(one)) ?? '';
    return id.slice(0, id.length - ending.length) as ObjectId;
  };
}

function renamedMetadata(metadata: ObjectMetadata, rename: Rename): ObjectMetadata {
  const id = rename(metadata.id);
  return metadata.type === 'toolcall'
    ? { ...metadata, id, fileRefs: metadata.fileRefs.map(rename) }
    : { ...metadata, id };
}

function renamedMessage(message: Message, rename: Rename): Message {
  return message.toolcall_refs === undefined
    ? message
    : { ...message, toolcall_refs: message.toolcall_refs.map(rename) };
}

/** Returns the input of a context with other ids for its objects. */
export function renamedInput(input: Omit<AssemblyInput, 'options'>, rename: Rename): Omit<AssemblyInput, 'options'> {
  return {
    systemPrompt: input.systemPrompt,
    pool: input.pool.map((metadata) => renamedMetadata(metadata, rename)),
    turns: input.turns.map((turn) => ({
      ...turn,
      messages: turn.messages.map((message) => renamedMessage(message, rename)),
    })),
    active: input.active.map(({ metadata, content }) => ({ metadata: renamedMetadata(metadata, rename), content })),
  };
}
