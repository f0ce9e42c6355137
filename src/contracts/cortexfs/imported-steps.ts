import { PALIMPSEST_FILE } from './palimpsest-file.js';
import type { PlannedCall, PlannedStep } from './planned-step.js';
import type { AnnouncedCall } from './read-messages.js';
import { OWN_PINNED } from './write-directory.js';

/** The tool of calls that represent a file pinned by another program. */
export const PINNED_TOOL = 'import.pinned';
/** The tool of calls that hand work to a child agent. */
export const HANDOFF_TOOL = 'agent.handoff';

const ENDED: ReadonlySet<string> = new Set(['done', 'error', 'cancelled']);

/** Returns the id of the call for a pinned file or a child's folder. */
const importedId = (kind: 'pinned' | 'child', name: string): string => `import-${kind}-${name}`;

/**
 * Returns true if the import made the call to represent a file. Such a call has no line in
 * `messages.jsonl`.
 */
export const isImportedCall = (tool: string, id: string): boolean =>
  (tool === PINNED_TOOL && id.startsWith('import-pinned-')) ||
  (tool === HANDOFF_TOOL && id.startsWith('import-child-'));

/** Returns true if a step is part of the chat. Two sessions are compared by their chats only. */
export const isOfChat = ({ message, call }: PlannedStep): boolean =>
  message !== undefined || (call !== undefined && !isImportedCall(call.tool, call.id ?? ''));

function pinnedCalls(files: ReadonlyMap<string, string>): readonly PlannedCall[] {
  const hasOwn = files.has(PALIMPSEST_FILE);
  return [...files].flatMap(([path, content]): readonly PlannedCall[] => {
    const name = /^context\/pinned\/([^/]+)$/.exec(path)?.[1];
    // Skips files of our own export: its steps already record the pins.
    if (name === undefined || name === 'system.md' || (hasOwn && OWN_PINNED.test(name))) return [];
    return [
      { id: importedId('pinned', name), tool: PINNED_TOOL, args: { name }, status: 'ok', content, own: { pin: true } },
    ];
  });
}

/** A child agent as its folder describes it. */
interface ChildFolder {
  readonly name: string;
  readonly status: string;
  readonly args: PlannedCall['args'];
  readonly result: string;
}

function childFolders(files: ReadonlyMap<string, string>): readonly ChildFolder[] {
  const names = new Set([...files.keys()].flatMap((path) => /^context\/child\/([^/]+)\//.exec(path)?.[1] ?? []));
  return [...names].map((name) => {
    const text = (file: string): string => files.get(`context/child/${name}/${file}`) ?? '';
    const word = (file: string): string => text(file).trim();
    const args = { child: name, agent: word('agent'), session: word('session'), handoff: text('handoff.md') };
    return { name, status: word('status'), args, result: text('result.md') };
  });
}

/**
 * Returns the steps for files that other programs pinned, and for results of child agents that no
 * message contains. These steps follow those of the messages.
 */
export function importedSteps(
  files: ReadonlyMap<string, string>,
  steps: readonly PlannedStep[],
): readonly PlannedStep[] {
  const told = new Set(steps.flatMap(({ call }) => (call?.tool === HANDOFF_TOOL ? [call.args.child] : [])));
  const children = childFolders(files).flatMap(({ name, status, args, result }): readonly PlannedCall[] => {
    if (!ENDED.has(status) || told.has(name)) return [];
    return [
      {
        id: importedId('child', name),
        tool: HANDOFF_TOOL,
        args,
        status: status === 'done' ? 'ok' : 'fail',
        content: result,
        own: { pin: false },
      },
    ];
  });
  const known = new Set(steps.flatMap(({ call }) => (call?.id === undefined ? [] : [`${call.id} ${call.content}`])));
  const own = [...pinnedCalls(files), ...children].filter(({ id, content }) => !known.has(`${id} ${content}`));
  return own.map((call) => ({ lines: [], call }));
}

/** Returns the calls of children that have not ended. */
export function openHandoffs(files: ReadonlyMap<string, string>): readonly AnnouncedCall[] {
  return childFolders(files).flatMap(({ name, status, args }) => {
    const id = importedId('child', name);
    return status === 'pending' || status === 'active' ? [{ id, name: id, tool: HANDOFF_TOOL, args }] : [];
  });
}
