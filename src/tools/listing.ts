import { posix } from 'node:path';
import { fileObjectId, type LocatedFile } from '../client/file-access.js';
import type { ReportedMention } from '../client/session/call-report.js';
import { unreachableError } from '../filesystem/access/access.js';
import { datedFiles } from '../filesystem/access/regular-files.js';
import { MOST_DISCOVERED } from '../indexing/decide-file.js';
import { canonicalPath } from '../objects/ids.js';
import { filesystemSource } from '../objects/source.js';
import { defined } from '../values/defined.js';
import type { ArgumentShape } from './arguments.js';
import { defineTool, type Performed, type ToolDefinition, type ToolSettings, type Work } from './define-tool.js';
import { continuation, frame, headerLine, headerValue, lineRange, remaining, shownId } from './framing.js';
import { pageOf } from './page.js';
import type { Tool } from './tool.js';

/** What a tool that lists something found. */
interface Listing extends Pick<Performed, 'mentions'> {
  /** Fields of the header, after the call's own id, and of the answer's data. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** Whether a limit left something out, for a tool that says so in its data. */
  readonly truncated?: boolean;
  readonly lines: readonly string[];
  /** Said when there are no lines. */
  readonly none: string;
  /** What was left out, and why. */
  readonly notes: readonly (string | undefined)[];
  /** How to get what comes behind the lines. Said below the last of them, so that an answer that is cut before names one way to go on. */
  readonly rest?: string | undefined;
}

/** The output of a listing tool: all lines are stored, as many as fit are shown, the rest is read by the call's own id. */
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

/** What a listing tool is made of. */
interface ListingDefinition<Shape extends ArgumentShape>
  extends Pick<ToolDefinition<Shape>, 'name' | 'description' | 'shape'> {
  list(args: Parameters<ToolDefinition<Shape>['perform']>[0], work: Work): Promise<Listing>;
}

/** Makes a tool that only looks and lists. */
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
 * The place that a path names.
 *
 * @throws {SourceError} `unreachable` – on a filesystem that this process does not see; and what `locate` throws
 */
export async function reachablePlace(path: string, { client }: Work): Promise<LocatedFile> {
  const place = await client.files.locate(path);
  if (!place.location.reachable) throw unreachableError(path);
  return place;
}

/** The files that a listing mentions, and a note where there were too many of them. */
interface Discovered {
  readonly mentions: readonly ReportedMention[];
  readonly note: string | undefined;
}

/** Canonical paths of the files that a listing mentions, the first ones, and how many there are of them in all. */
interface ListedFiles {
  readonly paths: readonly string[];
  /** As many as `paths` if left out. */
  readonly of?: number;
}

/**
 * Takes up what a listing of `folder` mentions [§5.6, Discovery]: existing regular files by their canonical paths. A file of the session's index is only
 * referred to, so that it is not looked at again.
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

/** A canonical path below a folder as the agent would write it, starting from the folder as it gave it. */
export function asGiven(folder: LocatedFile, path: string): string {
  return posix.join(folder.location.shown, posix.relative(folder.location.path, path)) || '.';
}
