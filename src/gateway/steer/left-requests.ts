import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { PlacedRequest } from '../../client/session/session-contexts.js';
import type { WholeList } from '../../extensions/sidecar/sidecar-process.js';
import { ownId } from '../../host/own-id.js';
import { type SessionId, sessionId } from '../../objects/ids.js';
import { parseJson, replaceFile, textOf } from '../../process/owned-file.js';
import { unlessMissing } from '../../process/system-error.js';
import { gatewayFolder } from '../gateway-log.js';
import { requestsOfEnded, type SentRequest } from '../read-log.js';
import { bodyPieces, proofOf } from '../record-sent.js';
import { isSteerable, noneSeen, parsedText, readerOf } from './read-request.js';

/** A request that went out, and the history that the client sent with it. */
export interface MissedRequest {
  /** Undefined if the request's place in the session is already known. */
  readonly list: WholeList | undefined;
  readonly request: PlacedRequest;
}

const markSchema = z.object({ since: z.number() });
const ENDING = '.json';

const folderIn = (dataDir: string): string => join(gatewayFolder(dataDir), 'missed');
const fileOf = (dataDir: string, session: SessionId): string =>
  join(folderIn(dataDir), `${encodeURIComponent(session)}${ENDING}`);

/**
 * Marks a session that lacks requests in the gateway's log. `since` is the time of the first of
 * them, in milliseconds since 1970. The mark survives this process.
 */
export async function markMissed(dataDir: string, session: SessionId, since: number): Promise<void> {
  await mkdir(folderIn(dataDir), { recursive: true, mode: 0o700 });
  await replaceFile(fileOf(dataDir, session), `${JSON.stringify({ since })}\n`);
}

/** Removes a session's mark. */
export const unmarkMissed = (dataDir: string, session: SessionId): Promise<void> =>
  rm(fileOf(dataDir, session), { force: true });

/** Returns the marked sessions. Ignores damaged marks. */
async function missedSessions(dataDir: string): Promise<ReadonlyMap<SessionId, number>> {
  const names = (await unlessMissing(readdir(folderIn(dataDir)))) ?? [];
  const found = new Map<SessionId, number>();
  for (const name of names.filter((one) => one.endsWith(ENDING))) {
    const id = sessionId(decodeURIComponent(name.slice(0, -ENDING.length)));
    const text = await textOf(fileOf(dataDir, id));
    const mark = text === undefined ? undefined : parseJson(text, markSchema);
    if (mark !== undefined) found.set(id, mark.since);
  }
  return found;
}

/** The requests of one session that earlier gateways sent without recording them, oldest first. */
interface LeftRequests {
  readonly requests: readonly MissedRequest[];
  /** The history of the session's last request. Undefined if that one was recorded. */
  readonly newest: WholeList | undefined;
}

/** Returns the history that the client sent. Undefined if the body cannot be steered. */
function historyIn({ wire, own, spans }: SentRequest, session: SessionId): WholeList | undefined {
  if (!isSteerable(wire)) return undefined;
  const parsed = parsedText(own ?? Buffer.concat(spans));
  const request = parsed === undefined ? { why: '' } : readerOf(wire, parsed)({ session, seen: noneSeen() });
  return 'why' in request ? undefined : request.list.list;
}

/** Returns the request to record. Returns none if no answer shows that the provider accepted it. */
function missedOf(sent: SentRequest, list: WholeList): readonly MissedRequest[] {
  const { answer, spans, at } = sent;
  const body = answer === undefined || answer.status >= 400 ? undefined : bodyPieces(spans);
  return body === undefined ? [] : [{ list, request: { body, at, sent: proofOf(sent) } }];
}

/** Reads the marked sessions' requests from the logs of gateways that have ended. */
export async function leftRequests(dataDir: string): Promise<ReadonlyMap<SessionId, LeftRequests>> {
  const marks = await missedSessions(dataDir);
  const found = new Map<SessionId, SentRequest[]>([...marks.keys()].map((id) => [id, []]));
  const since = Math.min(...marks.values());
  if (marks.size > 0)
    for await (const request of requestsOfEnded(gatewayFolder(dataDir), since, ({ at, steer }) => {
      return at >= since && steer?.arm === 'steered';
    })) {
      const id = request.session === undefined ? undefined : ownId(request.session.native);
      if (id !== undefined && request.side === undefined && request.at >= (marks.get(id) ?? Number.POSITIVE_INFINITY))
        found.get(id)?.push(request);
    }
  return new Map(
    [...found].map(([id, requests]) => {
      const sent = requests.toSorted((a, b) => a.at - b.at);
      const lists = sent.map((request) => (request.steer?.how === 'steered' ? undefined : historyIn(request, id)));
      const missed = sent.flatMap((request, i) => (lists[i] === undefined ? [] : missedOf(request, lists[i])));
      return [id, { requests: missed, newest: lists.at(-1) }];
    }),
  );
}
