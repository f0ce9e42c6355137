import type { palimpsestForOpencode } from '../../src/extensions/opencode/opencode-plugin.js';
import type {
  Opencode2Command,
  Opencode2Context,
  Opencode2Event,
  Opencode2Message,
  Opencode2Tool,
  StoredMessage,
} from '../../src/extensions/opencode/opencode2-api.js';

/** The default export of the built plugin. */
export type OpencodePlugin = typeof palimpsestForOpencode;

/** OpenCode's messages are instances of a class. */
export class HostMessage {
  constructor(fields: Opencode2Message) {
    Object.assign(this, fields);
  }
}

/**
 * A double of the plugin interface of OpenCode 2, which no package registry has. It follows the
 * published types and documents, and keeps what a plugin registers.
 */
export interface Opencode2Double {
  readonly context: Opencode2Context;
  readonly hooks: ReadonlyMap<string, (event: unknown) => Promise<void> | void>;
  readonly tools: readonly Opencode2Tool[];
  readonly commands: readonly Opencode2Command[];
  /** The entries that OpenCode has stored of each session. */
  readonly stored: Map<string, readonly StoredMessage[]>;
  /** Runs a registered hook, such as `session.context`. */
  fire(name: string, event: object): Promise<void>;
  /** Sends an event of the server to the plugin. */
  send(event: Opencode2Event): void;
  /** Resolves when the plugin has stopped listening to events. */
  readonly unsubscribed: Promise<void>;
}

/** Creates a double of OpenCode 2 for a folder. */
export function opencode2Double(directory: string): Opencode2Double {
  const hooks = new Map<string, (event: unknown) => Promise<void> | void>();
  const stored = new Map<string, readonly StoredMessage[]>();
  const tools: Opencode2Tool[] = [];
  const commands: Opencode2Command[] = [];
  const events: Opencode2Event[] = [];
  const arrived = new EventTarget();
  let unsubscribe = (): void => undefined;
  const unsubscribed = new Promise<void>((resolve) => {
    unsubscribe = resolve;
  });
  const hookOf = (domain: string) => async (name: string, callback: unknown) =>
    hooks.set(`${domain}.${name}`, callback as (event: unknown) => void);
  async function* subscribe({ signal }: { readonly signal: AbortSignal }): AsyncIterable<Opencode2Event> {
    signal.addEventListener('abort', () => arrived.dispatchEvent(new Event('event')));
    while (!signal.aborted) {
      const next = events.shift();
      if (next === undefined)
        await new Promise((resolve) => arrived.addEventListener('event', resolve, { once: true }));
      else yield next;
    }
    unsubscribe();
  }
  const context: Opencode2Context = {
    location: { directory },
    model: { list: async () => [{ providerID: 'scripted', id: 'scripted', limit: { context: 200_000 } }] },
    session: {
      hook: hookOf('session'),
      context: async ({ sessionID }) => stored.get(sessionID) ?? [],
    },
    tool: {
      hook: hookOf('tool'),
      transform: async (callback) => callback({ add: (tool) => tools.push(tool) }),
    },
    permission: { hook: hookOf('permission') },
    command: { transform: async (callback) => callback({ add: (command) => commands.push(command) }) },
    event: { subscribe },
  };
  return {
    context,
    hooks,
    tools,
    commands,
    stored,
    unsubscribed,
    fire: async (name, event) => hooks.get(name)?.(event),
    send: (event) => {
      events.push(event);
      arrived.dispatchEvent(new Event('event'));
    },
  };
}
