import { posix } from 'node:path';
import { MOST_DISCOVERED } from '../client/decide-file.js';
import { fileObjectId, type LocatedFile } from '../client/file-access.js';
import type { ReportedMention } from '../client/session/call-report.js';
import { unreachableError } from '../filesystem/access/access.js';
import { datedFiles } from '../filesystem/access/regular-files.js';
import { canonicalPath } from '../objects/ids.js';
import { filesystemSource } from '../objects/source.js';
import { defined } from '../values/defined.js';
import type { ArgumentShape } from './arguments.js';
import { defineTool, type Performed, type ToolDefinition, type ToolSettings, type Work } from './define-tool.js';
import { continuation, frame, headerLine, headerValue, lineRange, remaining, shownId } from './framing.js';
import { pageOf } from './page.js';
import type { Tool } from './tool.js';

/** The result of a listing tool. */
interface Listing extends Pick<Performed, 'mentions'> {
  /** Fields of the answer's header after the call's id, also for programs. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** Whether a limit cut the listing. Set only by tools that report it to programs. */
  readonly truncated?: boolean;
  readonly lines: readonly string[];
  /** The text for an empty listing. */
  readonly none: string;
  /** Notes about lines that were left out, with the reasons. */
  readonly notes: readonly (string | undefined)[];
  /**
   * How to get the remaining lines. It is shown only with the last line, so that a cut answer names
   * only one way to continue.
   */
  readonly rest?: string | undefined;
}

/**
 * Builds the output of a listing tool. All lines are stored, and as many as fit are shown. The
 * call's id reads the rest.
 */
function performedListing(tool: string, listing: Listing, work: Work): Performed {
  const { fields, lines, none, mentions, truncated, rest } = listing;
  const notes = listing.notes.filter((note) => note !== undefined);
  const ends = rest === undefined ? notes : [...notes, rest];
  const content = lines.length === 0 ? none : lines.join('\n');
  const show = (callId: Parameters<Performed['show']>[0]): string => {
    const id = shownId(callId, work);
    const header = headerLine(tool, { id, ...fields });
    const taken = header.length + ends.reduce((sum, note) => sum + note.length + 1, 0) + headerValue(id).length + 120;
    const page = pageOf(content, { offset: 1, column: 1 }, remaining(work.limits, taken, ends.length + 2));
    const shown = page.next === undefined ? header : headerLine(tool, { id, ...fields, lines: lineRange(page) });
    return frame(shown, page.text, [...notes, page.next === undefined ? rest : continuation(page, 'read', { id })]);
  };
  return {
    content: [content, ...ends].join('\n'),
    show,
    meta: { ...fields, ...defined({ truncated }) },
    ...defined({ mentions }),
  };
}

/** The parts that define a listing tool. */
interface ListingDefinition<Shape extends ArgumentShape>
  extends Pick<ToolDefinition<Shape>, 'name' | 'description' | 'shape'> {
  list(args: Parameters<ToolDefinition<Shape>['perform']>[0], work: Work): Promise<Listing>;
}

/** Defines a read-only tool that lists something. */
export function listingTool<Shape extends ArgumentShape>({
  list,
  ...definition
}: ListingDefinition<Shape>): (settings: ToolSettings) => Tool {
  return defineTool({
    ...definition,
    annotations: { readOnlyHint: true, openWorldHint: false },
    perform: async (args, work) => performedListing(definition.name, await list(args, work), work),
  });
}

/**
 * Resolves a path to a place on disk.
 *
 * @throws {SourceError} `unreachable` – the filesystem is not visible to this process; also the
 *   errors of `locate`
 */
export async function reachablePlace(path: string, { client }: Work): Promise<LocatedFile> {
  const place = await client.files.locate(path);
  if (!place.location.reachable) throw unreachableError(path);
  return place;
}

/** The files that a listing mentions. The note says if there were too many. */
interface Discovered {
  readonly mentions: readonly ReportedMention[];
  readonly note: string | undefined;
}

/** The canonical paths of the first files in a listing, and the number of all. */
interface ListedFiles {
  readonly paths: readonly string[];
  /** The number of all files. Default: the length of `paths`. */
  readonly of?: number;
}

/**
 * Returns mentions of the files that a listing of `folder` names [§5.6, Discovery]. They are
 * existing regular files. Files are not read, and a file that the session knows is only referenced.
 */
export async function discover(
  folder: LocatedFile,
  { paths, of = paths.length }: ListedFiles,
  work: Work,
): Promise<Discovered> {
  const { roots, mounts } = work.client.files.access;
  const { state } = work.session;
  const listed = paths.slice(0, MOST_DISCOVERED).map((path) => {
    const canonical = canonicalPath(path);
    const source = filesystemSource(mounts.filesystemOfCanonical(canonical) ?? folder.location.filesystemId, canonical);
    return { path, source, isKnown: state.has(fileObjectId(source)) };
  });
  const unknown = listed.flatMap(({ path, isKnown }) => (isKnown ? [] : [path]));
  const dates = new Map((await datedFiles(roots, unknown)).map(({ path, mtimeMs }) => [path, mtimeMs]));
  const mentions = listed.flatMap(({ path, source, isKnown }) => {
    const mtimeMs = isKnown ? 0 : dates.get(path);
    return mtimeMs === undefined ? [] : [{ source, mtimeMs }];
  });
  const note =
    of > MOST_DISCOVERED
      ? `[Only the first ${MOST_DISCOVERED} of these ${of} files were added to your pool.]`
      : undefined;
  return { mentions, note };
}

/**
 * Converts a canonical path below a folder to the path that the agent would write. The result
 * begins with the folder as the agent gave it.
 */
export function asGiven(folder: LocatedFile, path: string): string {
  return posix.join(folder.location.shown, posix.relative(folder.location.path, path)) || '.';
}
