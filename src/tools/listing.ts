import { defined } from '../values/defined.js';
import { defineTool, type Performed, type ToolDefinition, type ToolSettings, type Work } from './define-tool.js';
import { continuation, frame, headerLine, lineRange, room } from './framing.js';
import type { ArgumentShape } from './input-schema.js';
import { pageOf } from './page.js';
import { shownId } from './shown-id.js';
import type { Tool } from './tool.js';

/** What a tool that lists something found. */
export interface Listing extends Pick<Performed, 'mentions' | 'meta'> {
  /** Fields of the header, after the call's own id. */
  readonly fields: Readonly<Record<string, string | number | undefined>>;
  readonly lines: readonly string[];
  /** Said when there are no lines. */
  readonly none: string;
  /** What was left out, and why. */
  readonly notes: readonly (string | undefined)[];
}

/** The output of a listing tool: all lines are stored, as many as fit are shown, the rest is read by the call's own id. */
export function performedListing(tool: string, listing: Listing, work: Work): Performed {
  const { fields, lines, none, mentions, meta } = listing;
  const notes = listing.notes.filter((note) => note !== undefined);
  const content = lines.length === 0 ? none : lines.join('\n');
  const show = (callId: Parameters<Performed['show']>[0]): string => {
    const id = shownId(callId, work);
    const header = headerLine(tool, { id, ...fields });
    const taken = header.length + notes.reduce((sum, note) => sum + note.length + 1, 0) + id.length + 120;
    const page = pageOf(content, { offset: 1, column: 1 }, room(work.limits, taken, notes.length + 2));
    const shown = page.next === undefined ? header : headerLine(tool, { id, ...fields, lines: lineRange(page) });
    return frame(shown, page.text, [...notes, continuation(page, 'read', { id })]);
  };
  return {
    content: [content, ...notes].join('\n'),
    show,
    ...defined({ mentions, meta }),
  };
}

/** What a listing tool is made of. */
export interface ListingDefinition<Shape extends ArgumentShape> extends Pick<ToolDefinition<Shape>, 'name' | 'description' | 'shape'> {
  list(args: Parameters<ToolDefinition<Shape>['perform']>[0], work: Work): Promise<Listing>;
}

/** Makes a tool that only looks and lists. */
export function listingTool<Shape extends ArgumentShape>(definition: ListingDefinition<Shape>, settings: ToolSettings): Tool {
  const { name, description, shape } = definition;
  return defineTool(
    {
      name,
      description,
      shape,
      annotations: { readOnlyHint: true, openWorldHint: false },
      perform: async (args, work) => performedListing(name, await definition.list(args, work), work),
    },
    settings,
  );
}
