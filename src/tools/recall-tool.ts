import * as z from 'zod';
import type { ContextClient } from '../client/session/context-client.js';
import { Timeline } from '../history/rebuild/timeline.js';
import type { SearchedKind } from '../history/search/kinds.js';
import { askSearch, type SearchHit } from '../history/search/search.js';
import { INDEX_WAIT_MS } from '../history/search/search-index.js';
import type { SessionId } from '../objects/ids.js';
import { withinLimit } from '../process/within-limit.js';
import { SessionError } from '../session/errors.js';
import { defineTool, type Work } from './define-tool.js';
import { frame, headerLine, shownId } from './framing.js';

// Descriptions are short, because every request of an agent repeats the list of tools.
const SHAPE = {
  text: z.string().describe('Text or /regex/'),
  everywhere: z.boolean().optional().describe('All sessions (default false)'),
};

const LISTED = 10;
const AROUND = 1;
const LONGEST_WAIT_MS = 3_000;
const AWAY = 'Nothing was searched: the database is not ready yet. Call recall again in a minute.';
/** The name of the header field for each kind of text. */
const NAMED: Readonly<Record<SearchedKind, string>> = {
  message: 'role',
  toolcall: 'tool',
  file: 'path',
  system_prompt: 'name',
};

/** Returns the sessions that a client may open. */
async function openable(client: ContextClient, sessions: readonly SessionId[]): Promise<readonly SessionId[]> {
  const snapshot = await client.store.latest();
  const allowed = await Promise.all(
    sessions.map((session) =>
      client.requireRoots(session, snapshot).then(
        () => [session],
        (error: unknown) => {
          if (error instanceof SessionError) return [];
          throw error;
        },
      ),
    ),
  );
  return allowed.flat();
}

function hitLines(hit: SearchHit, work: Work): readonly string[] {
  const { kind, name, object, part, step, turn, session, version, count, lines } = hit;
  const header = headerLine(kind, {
    id: object === undefined || kind === 'system_prompt' ? undefined : shownId(object, work),
    [NAMED[kind]]: name,
    version: kind === 'file' ? version?.number : undefined,
    from: kind === 'file' ? version?.validTime.toISOString() : undefined,
    part,
    turn,
    step,
    session: session === work.session.id ? undefined : session,
    matches: count,
  });
  const shown = lines.flatMap(({ line, excerpt, before = [], after = [] }) => [
    ...before.map((text, i) => `${line - before.length + i}-${text}`),
    `${line}:${excerpt}`,
    ...after.map((text, i) => `${line + 1 + i}-${text}`),
  ]);
  return [header, ...shown.map((line) => `  ${line}`)];
}

/** The tool `recall`: searches everything that the session has seen. It changes no set. */
export const recallTool = defineTool({
  name: 'recall',
  description: 'Search all this session saw, also before a compaction.',
  shape: SHAPE,
  annotations: { readOnlyHint: true, openWorldHint: false },
  perform: async ({ text, everywhere = false }, work) => {
    const { client, session } = work;
    // The call does not wait for a node that is starting. It is answered and recorded like any
    // other call.
    const opening = client.delivered({ others: false }).then((store) => Timeline.open(store, client.files));
    const timeline = await withinLimit<Timeline | undefined>(opening, LONGEST_WAIT_MS, () => undefined);
    if (timeline === undefined) return { content: AWAY, show: () => AWAY };
    const visible = (sessions: readonly SessionId[]): Promise<readonly SessionId[]> => openable(client, sessions);
    const scope = everywhere ? { visible } : { session: session.id };
    const asked = { pattern: text, limit: LISTED, around: AROUND, exceptTool: 'recall', ...scope };
    const index = await client.searchIndex?.of(timeline, { limitMs: INDEX_WAIT_MS });
    const { hits, texts, isCut, isIndexed } = await askSearch(timeline, asked, index);
    const body = hits.flatMap((hit) => hitLines(hit, work));
    const none = isIndexed ? 'No match.' : `No match in ${texts} texts.`;
    const content = body.length === 0 ? none : body.join('\n');
    const header = headerLine('recall', { texts, found: hits.length });
    const more = isCut ? '[More texts match or were not searched. Narrow the search.]' : undefined;
    return {
      content,
      show: () => frame(header, content, [more]),
      meta: { found: hits.length, texts, cut: isCut },
    };
  },
});
