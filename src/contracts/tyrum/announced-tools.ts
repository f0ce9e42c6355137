import * as z from 'zod';
import type { ContextRecord } from '../../objects/context-record.js';
import type { SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';

const name = z.string().min(1).max(400);
const chars = z.int().nonnegative();
const sized = z.strictObject({ id: name, chars });

const announcedTools = z.strictObject({ tools: z.array(sized), skills: z.array(name), mcp_servers: z.array(name) });

/**
 * The tools, skills and servers that a harness offers to a model. Each tool has the character count
 * of its schema.
 */
export type AnnouncedTools = z.output<typeof announcedTools>;

/** The type of the event that stores the offered tools. */
const TYPE = 'tyrum.tools';

/** The tools that a harness reported for a session. */
export interface ToolAnnouncement {
  /** The last step of the session when the harness reported. */
  readonly seq: number;
  readonly tools: AnnouncedTools;
}

/** Creates the record of the tools that a harness offers. */
export function announcementRecord(
  { session, turn, seq }: { readonly session: SessionId; readonly turn: number; readonly seq: number },
  tools: AnnouncedTools,
  at: number,
): ContextRecord {
  return { kind: 'event', owner: { session }, turn, seq, at, basis: null, body: { type: TYPE, data: tools } };
}

/** Reads a session's tool reports, oldest first. */
export async function readAnnouncements(
  snapshot: StoreSnapshot,
  session: SessionId,
): Promise<readonly ToolAnnouncement[]> {
  const events = await snapshot.records(session, { kinds: ['event'] });
  return events.flatMap(({ seq, body }) => {
    const read = body.type === TYPE ? announcedTools.safeParse(body.data) : undefined;
    return read?.success === true ? [{ seq, tools: read.data }] : [];
  });
}
