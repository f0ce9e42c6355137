import { posix } from 'node:path';
import { DocumentError } from '../../objects/errors.js';
import {
  type AgentPath,
  agentPath,
  type CanonicalPath,
  canonicalPath,
  type FilesystemId,
  filesystemId,
} from '../../objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../../objects/source.js';
import { defined } from '../../values/defined.js';
import { named, SourceError } from './errors.js';
import { fromNative, shownPath } from './native-path.js';

/** A mount mapping [§5.3]: the agent's `agentPrefix` is the host's `canonicalPrefix`. */
export interface MountMapping {
  readonly agentPrefix: AgentPath;
  readonly canonicalPrefix: CanonicalPath;
  readonly filesystemId: FilesystemId;
}

/** A mapping as configured. Without a filesystem id, it belongs to the host's filesystem. */
export interface MountSetting {
  readonly agentPrefix: string;
  readonly canonicalPrefix: string;
  readonly filesystemId?: string;
}

/** The real location of an agent's path. */
export interface TranslatedPath {
  readonly path: CanonicalPath;
  readonly filesystemId: FilesystemId;
  /** Whether a mapping matched. Otherwise the path is unchanged and on the default filesystem. */
  readonly viaMount: boolean;
}

/** Options of a mount table. */
export interface MountTableOptions {
  readonly mappings?: readonly MountSetting[];
  /**
   * The filesystem of paths without a mapping: the host's without a sandbox, the container's with
   * one [§5.2].
   */
  readonly defaultFilesystemId: FilesystemId;
  /** The filesystem that this process sees; defaults to `defaultFilesystemId`. */
  readonly localFilesystemId?: FilesystemId;
}

/**
 * Returns whether `path` is `prefix` or lies below it, by whole components: `/workspace-other` is
 * not within `/workspace` (decision C9).
 */
export function isWithin(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || prefix === '/' || path[prefix.length] === '/');
}

/**
 * Returns whether a source is one of the folders or lies in one. Compares only paths, because a
 * session may continue on a machine with another filesystem (decision F8). But the root of a
 * filesystem matches only that filesystem.
 */
export function liesIn(source: FilesystemSource, folders: readonly FilesystemSource[]): boolean {
  return folders.some(
    ({ path, filesystemId: id }) => isWithin(source.path, path) && (path !== '/' || id === source.filesystemId),
  );
}

/** Replaces the prefix `from` of `path` by `to`. */
function replacePrefix(path: string, from: string, to: string): string {
  return posix.join(to, path.slice(from.length));
}

function normalPrefix(given: string, what: string): CanonicalPath {
  const value = fromNative(given);
  if (!posix.isAbsolute(value)) {
    throw new SourceError('invalid-path', `the ${what} ${named(value)} of a mount is not absolute; begin it with /`, {
      path: value,
    });
  }
  return canonicalPath(value);
}

/**
 * Parses a mount from `AGENT=CANONICAL[,FSID]`, the form of `--mount`. The text after the last
 * comma is the filesystem id unless it contains a slash. If the last name of a canonical path
 * contains a comma, the id is therefore required.
 *
 * @example
 * ```ts
 * const mounts = [parseMount('/workspace=/home/me/project')];
 * ```
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
 * Translates between agent-visible and canonical paths [§5.2, §5.3, decision C9]. Uses only
 * configured mounts (reading C9) and does not touch the disk. In both directions, the longest
 * prefix wins that matches by whole components.
 */
export class MountTable {
  readonly mappings: readonly MountMapping[];
  readonly defaultFilesystemId: FilesystemId;
  readonly localFilesystemId: FilesystemId;
  readonly #byAgentPrefix: readonly MountMapping[];
  readonly #byCanonicalPrefix: readonly MountMapping[];

  /**
   * Throws {@link SourceError} `invalid-path` for a relative prefix and for two mappings of one
   * agent prefix.
   */
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

  /**
   * Translates an absolute, normalised agent path to its canonical path and filesystem [§5.3].
   * Throws {@link SourceError} `invalid-path` for a relative one.
   */
  toCanonical(path: AgentPath): TranslatedPath {
    const normal = normalPrefix(path, 'path');
    const mapping = this.#byAgentPrefix.find(({ agentPrefix }) => isWithin(normal, agentPrefix));
    if (mapping === undefined) return { path: normal, filesystemId: this.defaultFilesystemId, viaMount: false };
    const translated = canonicalPath(replacePrefix(normal, mapping.agentPrefix, mapping.canonicalPrefix));
    return { path: translated, filesystemId: mapping.filesystemId, viaMount: true };
  }

  /**
   * Translates a canonical path to the agent-visible path [§5.3]. Without a mapping of that
   * filesystem, the two paths are equal. Skips a mapping that a deeper mount hides from the agent:
   * the path by that mapping would lead to another file.
   */
  toDisplay(path: CanonicalPath, filesystem: FilesystemId): string {
    for (const mapping of this.#byCanonicalPrefix) {
      if (mapping.filesystemId !== filesystem || !isWithin(path, mapping.canonicalPrefix)) continue;
      const display = replacePrefix(path, mapping.canonicalPrefix, mapping.agentPrefix);
      const back = this.toCanonical(agentPath(display));
      if (back.path === path && back.filesystemId === filesystem) return shownPath(display);
    }
    return shownPath(path);
  }

  /**
   * Returns the sources that an absolute path may name: as an agent-visible path, and as a
   * canonical path of each filesystem of this table. Empty for a relative path.
   */
  sourcesAt(path: string): readonly FilesystemSource[] {
    if (!posix.isAbsolute(path)) return [];
    const filesystems = [
      this.defaultFilesystemId,
      this.localFilesystemId,
      ...this.mappings.map((one) => one.filesystemId),
    ];
    try {
      const seen = this.toCanonical(agentPath(path));
      return [
        filesystemSource(seen.filesystemId, seen.path),
        ...[...new Set(filesystems)].map((one) => filesystemSource(one, canonicalPath(path))),
      ];
    } catch (error) {
      if (error instanceof DocumentError) return [];
      throw error;
    }
  }

  /**
   * Returns the filesystem of the longest mapping that contains a canonical path; `undefined` if
   * there is none. Links may lead from one mount into another.
   */
  filesystemOfCanonical(path: CanonicalPath): FilesystemId | undefined {
    return this.#byCanonicalPrefix.find(({ canonicalPrefix }) => isWithin(path, canonicalPrefix))?.filesystemId;
  }

  /**
   * Returns whether this process can read a canonical path of that filesystem: its own, or a
   * mounted one.
   */
  isReachable(path: CanonicalPath, filesystem: FilesystemId): boolean {
    if (filesystem === this.localFilesystemId) return true;
    return this.mappings.some(
      (mapping) => mapping.filesystemId === filesystem && isWithin(path, mapping.canonicalPrefix),
    );
  }
}
