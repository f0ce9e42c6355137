import { posix } from 'node:path';
import { MOST_DISCOVERED } from '../client/decide-file.js';
import type { FileAccess, LocatedFile } from '../client/file-access.js';
import type { ReportedMention } from '../client/session/call-report.js';
import { SourceError } from '../filesystem/access/errors.js';
import { resolveFrom } from '../filesystem/access/native-path.js';
import { datedFiles } from '../filesystem/access/regular-files.js';
import { ignoredNames, isInGitFolder } from '../filesystem/search/ignore-rules.js';
import { DocumentError } from '../objects/errors.js';
import { canonicalPath } from '../objects/ids.js';
import { filesystemSource } from '../objects/source.js';
import type { LineReadings } from './tool-output/listed-names.js';

/** Maximum number of an output's lines that are looked up on disk. */
const MOST_LINES = 20_000;

/** The files that an output mentions. The note says if there were too many. */
interface DiscoveredFiles {
  readonly mentions: readonly ReportedMention[];
  readonly note: string | undefined;
}

/** Locates the folders of agent paths. A folder that many lines name is located only once. */
class Folders {
  readonly #files: FileAccess;
  readonly #known = new Map<string, Promise<LocatedFile | undefined>>();

  constructor(files: FileAccess) {
    this.#files = files;
  }

  get(folder: string): Promise<LocatedFile | undefined> {
    let located = this.#known.get(folder);
    if (located === undefined) {
      located = this.#locate(folder);
      this.#known.set(folder, located);
    }
    return located;
  }

  async #locate(folder: string): Promise<LocatedFile | undefined> {
    try {
      const located = await this.#files.locate(folder);
      return located.location.reachable ? located : undefined;
    } catch (error) {
      // Most words that look like paths are not files, or are outside the roots.
      if (error instanceof SourceError || error instanceof DocumentError) return undefined;
      throw error;
    }
  }
}

interface Found extends ReportedMention {
  readonly folder: string;
  readonly name: string;
}

async function existing(
  files: FileAccess,
  folders: Folders,
  paths: readonly string[],
): Promise<readonly (Found | undefined)[]> {
  const places = await Promise.all(
    paths.map(async (path) => {
      const folder = await folders.get(posix.dirname(path));
      const name = posix.basename(path);
      return folder === undefined || name === ''
        ? undefined
        : { folder, name, path: posix.join(folder.location.path, name) };
    }),
  );
  const { roots, mounts } = files.access;
  const dated = await datedFiles(roots, [
    ...new Set(places.flatMap((place) => (place === undefined ? [] : [place.path]))),
  ]);
  const times = new Map(dated.map(({ path, mtimeMs }) => [path, mtimeMs]));
  return places.map((place) => {
    const mtimeMs = place === undefined ? undefined : times.get(place.path);
    if (place === undefined || mtimeMs === undefined) return undefined;
    const canonical = canonicalPath(place.path);
    const filesystem = mounts.filesystemOfCanonical(canonical) ?? place.folder.location.filesystemId;
    return {
      source: filesystemSource(filesystem, canonical),
      mtimeMs,
      folder: place.folder.location.path,
      name: place.name,
    };
  });
}

async function withoutIgnored(found: readonly Found[]): Promise<readonly Found[]> {
  const byFolder = new Map<string, Found[]>();
  for (const file of found) byFolder.set(file.folder, [...(byFolder.get(file.folder) ?? []), file]);
  const ignored = new Map<string, ReadonlySet<string>>();
  for (const [folder, entries] of byFolder) {
    const names = entries.map(({ name }) => ({ name, isFolder: false }));
    ignored.set(
      folder,
      isInGitFolder(folder) ? new Set(names.map(({ name }) => name)) : await ignoredNames(folder, names),
    );
  }
  return found.filter(({ folder, name }) => ignored.get(folder)?.has(name) !== true);
}

/**
 * Returns the existing regular files that an output's lines name [§5.6, Discovery; decision C7].
 * Ignored files are left out. Relative names are tried in each of `folders`, in order. For each
 * line, the first possible name that is a file counts.
 */
export async function discoverFiles(
  files: FileAccess,
  lines: readonly LineReadings[],
  folders: readonly string[],
): Promise<DiscoveredFiles> {
  const located = new Folders(files);
  const bySource = new Map<string, Found>();
  const portion = 512;
  const limited = lines.slice(0, MOST_LINES);
  for (let at = 0; at < limited.length && bySource.size <= MOST_DISCOVERED; at += portion) {
    const readings = limited
      .slice(at, at + portion)
      .map((line) => folders.flatMap((folder) => line.map((path) => resolveFrom(folder, path))));
    const flat = [...new Set(readings.flat())];
    const found = new Map((await existing(files, located, flat)).map((file, i) => [flat[i] ?? '', file]));
    const chosen = readings.flatMap(
      (line) => line.map((path) => found.get(path)).find((file) => file !== undefined) ?? [],
    );
    for (const file of await withoutIgnored(chosen))
      bySource.set(`${file.source.filesystemId} ${file.source.path}`, file);
  }
  const all = [...bySource.values()];
  const mentions = all.slice(0, MOST_DISCOVERED).map(({ source, mtimeMs }) => ({ source, mtimeMs }));
  const note =
    all.length > MOST_DISCOVERED || lines.length > MOST_LINES
      ? `only the first ${mentions.length} files of this output were added to the pool`
      : undefined;
  return { mentions, note };
}
