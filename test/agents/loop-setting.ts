import { temporaryRoot } from '../support/mcp-clients.js';
import { type LoopModel, type LoopWire, startLoopModel } from './loop-model.js';
import { makeProject, reader, startNode, stopUnusedNode } from './loop-project.js';

/** A project and a home for a harness, a data folder, and a scripted model. */
export interface LoopSetting {
  readonly root: string;
  readonly dataDir: string;
  readonly model: LoopModel;
  /** Where a harness runs. */
  readonly where: { readonly home: string; readonly cwd: string; readonly dataDir: string; readonly model: LoopModel };
  /** Returns another empty folder, which is removed with the setting. */
  folder(): Promise<string>;
  /** Adds work for the end. The latest addition runs first. */
  atEnd(work: () => unknown): void;
  /** Opens a client on the data folder, which is closed with the setting. */
  reader(): ReturnType<typeof reader>;
  close(): Promise<void>;
}

interface SettingOptions {
  readonly wire?: LoopWire;
  /** The model's window in tokens, as it reports it. */
  readonly window?: number;
  /** Milliseconds that the model thinks. */
  readonly thinksMs?: number;
  readonly project?: (root: string) => Promise<void>;
  /** Whether the node of the data folder runs; it does by default. */
  readonly hasNode?: boolean;
}

/** Makes a setting; its project is {@link makeProject} by default. */
export async function loopSetting(options: SettingOptions = {}): Promise<LoopSetting> {
  const { wire, window, thinksMs, project = makeProject, hasNode = true } = options;
  const works: (() => unknown)[] = [];
  const atEnd = (work: () => unknown): void => void works.unshift(work);
  const close = async (): Promise<void> => {
    for (const work of works.splice(0)) await work();
  };
  const folder = async (): Promise<string> => {
    const { root, remove } = await temporaryRoot();
    // Folders are removed last, because programs still use them.
    works.push(remove);
    return root;
  };
  const [root, home, dataDir] = [await folder(), await folder(), await folder()];
  const model = await startLoopModel(thinksMs, wire, window);
  atEnd(() => model.close());
  try {
    await project(root);
    if (hasNode) {
      await startNode(dataDir);
      atEnd(() => stopUnusedNode(dataDir));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    root,
    dataDir,
    model,
    where: { home, cwd: root, dataDir, model },
    folder,
    atEnd,
    reader: async () => {
      const client = await reader(dataDir, root);
      atEnd(() => client.close());
      return client;
    },
    close,
  };
}
