import type { MountSetting } from '../filesystem/access/mounts.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import type { StepPolicy } from '../session/step-policy.js';
import type { ToolOptions } from '../tools/create-tools.js';

/** What a process that serves agents was told by its flags and environment. */
export interface ServerSettings {
  /** The version of this program. */
  readonly version: string;
  /** The node of a data folder, started when there is none. */
  readonly node: Omit<EnsureNodeOptions, 'onProgress' | 'signal'>;
  /** A node that someone else runs; then none is started. */
  readonly nodeUrl: string | undefined;
  /** Folders that agents may use. */
  readonly roots: readonly string[];
  /** Where relative paths of the agents start, as they see it. */
  readonly cwd: string;
  readonly mounts: readonly MountSetting[];
  /** The session of every call; otherwise each client says, or gets a new one. */
  readonly session: string | undefined;
  /** Moves a session here that another process has open. */
  readonly takeOver: boolean;
  /** What an acknowledged step survives. */
  readonly durability: 'process' | 'power';
  readonly policy: StepPolicy;
  readonly tools: ToolOptions;
}
