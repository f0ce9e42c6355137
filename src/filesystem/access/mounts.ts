import { posix } from 'node:path';
import {
  type AgentPath,
  agentPath,
  type CanonicalPath,
  canonicalPath,
  type FilesystemId,
  filesystemId,
} from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import { defined } from '../../values/defined.js';
import { named, SourceError } from './errors.js';

/** One mount mapping [§5.3]: what the agent sees at `agentPrefix` is the host's `canonicalPrefix`. */
export interface MountMapping {
  readonly agentPrefix: AgentPath;
  readonly canonicalPrefix: CanonicalPath;
  readonly filesystemId: FilesystemId;
}

/** A mapping as configured; without a filesystem id it is the host's own. */
export interface MountSetting {
  readonly agentPrefix: string;
  readonly canonicalPrefix: string;
  readonly filesystemId?: string;
}

/** Where an agent's path really is. */
export interface TranslatedPath {
  readonly path: CanonicalPath;
  readonly filesystemId: FilesystemId;
  /** Whether a mapping matched; otherwise the path is as the agent gave it, on the default filesystem. */
  readonly viaMount: boolean;
}

/** How a mount table is made. */
export interface MountTableOptions {
  readonly mappings?: readonly MountSetting[];
  /** The filesystem of paths that no mapping covers: the host's without a sandbox, the container's own with one [§5.2]. */
  readonly defaultFilesystemId: FilesystemId;
  /** The filesystem that this process sees; the default one if left out. */
  readonly localFilesystemId?: FilesystemId;
}

/** Whether `path` is `prefix` or lies below it, by whole components: `/workspace` does not hold `/workspace-other` (decision C9). */
export function isWithin(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || prefix === '/' || path[prefix.length] === '/');
}

/**
 * Whether a source is one of some folders or lies in one, by its path alone: a session may go on on a machine with another filesystem (decision F8). All of a
 * filesystem is that filesystem only.
 */
export function liesIn(source: FilesystemSource, folders: readonly FilesystemSource[]): boolean {
  return folders.some(
    ({ path, filesystemId: id }) => isWithin(source.path, path) && (path !== '/' || id === source.filesystemId),
  );
}

/** Puts `to` in the place of `from`, which `path` begins with. */
function replacePrefix(path: string, from: string, to: string): string {
  return posix.join(to, path.slice(from.length));
}

function normalPrefix(value: string, what: string): CanonicalPath {
  if (!posix.isAbsolute(value)) {
    throw new SourceError('invalid-path', `the ${what} ${named(value)} of a mount is not absolute; begin it with /`, {
      path: value,
    });
  }
  return canonicalPath(value);
}

/**
 * Reads a mount from `AGENT=CANONICAL[,FSID]`, as `--mount` takes it.
 * What follows the last comma is the filesystem id unless it holds a slash; so a canonical path with a comma in its last name needs the id written out.
 */
export function parseMount(text: string): MountSetting {
  const equals = text.indexOf('=');
  const rest = text.slice(equals + 1);
  const comma = rest.lastIndexOf(',');
  const hasId = comma >= 0 && !rest.includes('/', comma);
  const agentPrefix = text.slice(0, Math.max(equals, 0));
  const canonicalPrefix = hasId ? rest.slice(0, comma) : rest;
  const id = hasId ? rest.slice(comma + 1) : undefined;
  if (agentPrefix === '' || canonicalPrefix === '' || id === '') {
    throw new SourceError('invalid-path', `the mount ${named(text)} is not of the form AGENT=CANONICAL[,FSID]`, {
      path: text,
    });
  }
  normalPrefix(agentPrefix, 'agent prefix');
  normalPrefix(canonicalPrefix, 'canonical prefix');
  return { agentPrefix, canonicalPrefix, ...defined({ filesystemId: id }) };
}

/**
 * Translates between the agent's paths and canonical ones, both ways [§5.2, §5.3, decision C9]; a mount that is not configured is not looked for (reading C9).
 * Pure: touches no disk. The longest matching prefix wins in either direction, by whole components.
 */
export class MountTable {
  readonly mappings: readonly MountMapping[];
  readonly defaultFilesystemId: FilesystemId;
  readonly localFilesystemId: FilesystemId;
  readonly #byAgentPrefix: readonly MountMapping[];
  readonly #byCanonicalPrefix: readonly MountMapping[];

  /** Throws {@link SourceError} `invalid-path` for a relative prefix and for two mappings of one agent prefix. */
  constructor(options: MountTableOptions) {
    this.defaultFilesystemId = options.defaultFilesystemId;
    this.localFilesystemId = options.localFilesystemId ?? options.defaultFilesystemId;
    this.mappings = (options.mappings ?? []).map((setting) => ({
      agentPrefix: agentPath(normalPrefix(setting.agentPrefix, 'agent prefix')),
      canonicalPrefix: normalPrefix(setting.canonicalPrefix, 'canonical prefix'),
      filesystemId: setting.filesystemId === undefined ? this.localFilesystemId : filesystemId(setting.filesystemId),
    }));
    const prefixes = this.mappings.map((mapping) => mapping.agentPrefix);
    const twice = prefixes.find((prefix, index) => prefixes.indexOf(prefix) !== index);
    if (twice !== undefined) {
      throw new SourceError('invalid-path', `two mounts have the agent prefix ${named(twice)}; keep one of them`, {
        path: twice,
      });
    }
    this.#byAgentPrefix = [...this.mappings].sort((a, b) => b.agentPrefix.length - a.agentPrefix.length);
    this.#byCanonicalPrefix = [...this.mappings].sort((a, b) => b.canonicalPrefix.length - a.canonicalPrefix.length);
  }

  /** Forward [§5.3]: an absolute agent path, normalised, to its canonical path and filesystem. Throws {@link SourceError} `invalid-path` for a relative one. */
  toCanonical(path: AgentPath): TranslatedPath {
    const normal = normalPrefix(path, 'path');
    const mapping = this.#byAgentPrefix.find(({ agentPrefix }) => isWithin(normal, agentPrefix));
    if (mapping === undefined) return { path: normal, filesystemId: this.defaultFilesystemId, viaMount: false };
    const translated = canonicalPath(replacePrefix(normal, mapping.agentPrefix, mapping.canonicalPrefix));
    return { path: translated, filesystemId: mapping.filesystemId, viaMount: true };
  }

  /**
   * Reverse [§5.3]: how the agent names a canonical path; the canonical path itself where no mapping of that filesystem covers it.
   * A mapping whose place in the agent's view is covered by another, deeper mount is passed over: its name would lead to another file.
   */
  toDisplay(path: CanonicalPath, filesystem: FilesystemId): string {
    for (const mapping of this.#byCanonicalPrefix) {
      if (mapping.filesystemId !== filesystem || !isWithin(path, mapping.canonicalPrefix)) continue;
      const display = replacePrefix(path, mapping.canonicalPrefix, mapping.agentPrefix);
      const back = this.toCanonical(agentPath(display));
      if (back.path === path && back.filesystemId === filesystem) return display;
    }
    return path;
  }

  /** The filesystem of the longest mapping that holds a canonical path; `undefined` where none does. Links may lead from one mount into another. */
  filesystemOfCanonical(path: CanonicalPath): FilesystemId | undefined {
    return this.#byCanonicalPrefix.find(({ canonicalPrefix }) => isWithin(path, canonicalPrefix))?.filesystemId;
  }

  /** Whether this process can read a canonical path of that filesystem: its own, or a mounted one. */
  isReachable(path: CanonicalPath, filesystem: FilesystemId): boolean {
    if (filesystem === this.localFilesystemId) return true;
    return this.mappings.some(
      (mapping) => mapping.filesystemId === filesystem && isWithin(path, mapping.canonicalPrefix),
    );
  }
}
