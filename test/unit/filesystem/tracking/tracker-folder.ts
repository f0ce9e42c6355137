import { readFile } from 'node:fs/promises';
import { afterEach } from '@jest/globals';
import { type MountSetting, MountTable } from '../../../../src/filesystem/access/mounts.js';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { FileTracker, type FileTrackerOptions } from '../../../../src/filesystem/tracking/file-tracker.js';
import { canonicalPath, filesystemId } from '../../../../src/objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../../../../src/objects/source.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

const HOST = filesystemId('host');

/** A report of a tracker: the path, and the result of reading it at that moment. */
export interface Told {
  readonly path: string;
  /** `undefined` for a missing file. */
  readonly content: string | undefined;
}

/** A tracker on a separate folder that records all its reports. */
export interface TrackedTemp {
  readonly folder: TempFolder;
  readonly tracker: FileTracker;
  readonly told: readonly Told[];
  readonly notices: readonly string[];
  readonly states: readonly string[];
  source(path: string): FilesystemSource;
  /** Writes files below the root and tracks them. */
  trackFiles(...paths: readonly string[]): Promise<readonly string[]>;
  /** Resolves once `condition` holds. Checks it after every report. */
  until(condition: () => boolean): Promise<void>;
  /** Returns the reported contents of one path, in order. */
  contents(path: string): readonly (string | undefined)[];
  close(): Promise<void>;
}

export const contentOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

export async function trackedTemp(
  options: Partial<FileTrackerOptions> & { readonly mounts?: (folder: TempFolder) => readonly MountSetting[] } = {},
): Promise<TrackedTemp> {
  const folder = await tempFolder();
  const mappings = options.mounts?.(folder) ?? [];
  const mounts = new MountTable({ mappings, defaultFilesystemId: HOST });
  const roots = await AllowedRoots.open(
    [folder.inside],
    mounts.mappings.map(({ canonicalPrefix }) => canonicalPrefix),
  );
  const told: Told[] = [];
  const notices: string[] = [];
  const states: string[] = [];
  const conditions = new Map<() => boolean, () => void>();
  const look = (): void => {
    for (const [condition, resolve] of conditions) if (condition()) resolve();
  };
  const source = (path: string): FilesystemSource => filesystemSource(HOST, canonicalPath(path));
  const tracker = new FileTracker(
    { roots, mounts },
    {
      onChange: async ({ path }) => {
        told.push({ path, content: await contentOf(path) });
        look();
      },
      onState: ({ path }, state) => {
        states.push(`${path} ${state}`);
        look();
      },
      onNotice: (notice) => {
        notices.push(notice);
        look();
      },
      ...options,
    },
  );
  return {
    folder,
    tracker,
    told,
    notices,
    states,
    source,
    async trackFiles(...paths) {
      const files = await Promise.all(paths.map((path) => folder.put(`root/${path}`, `first ${path}`)));
      await tracker.trackMany(files.map((path) => ({ source: source(path) })));
      return files;
    },
    async until(condition) {
      while (!condition()) {
        await new Promise<void>((resolve) => {
          conditions.set(condition, resolve);
        });
        conditions.delete(condition);
      }
    },
    contents: (path) => told.filter((one) => one.path === path).map(({ content }) => content),
    async close() {
      await tracker.close();
      await folder.remove();
    },
  };
}

/**
 * Returns a factory of such folders for the tests of a file. Each is closed and removed after its
 * test.
 */
export function trackedTemps(): typeof trackedTemp {
  const opened: TrackedTemp[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
  });
  return async (options) => {
    const made = await trackedTemp(options);
    opened.push(made);
    return made;
  };
}
