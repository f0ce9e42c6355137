import { sentParts } from '../../assembly/sent-body.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';

import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { namesOf } from '../../session/chat-places.js';
import { askOnce } from '../../values/promises.js';

/** A call of a session, with the step that recorded it. */
export interface PlacedCall {
  readonly id: ObjectId;
  readonly seq: number;
}

/**
 * The calls in requests that an agent built itself. Such a request may lack active objects of the
 * session, for example after the agent's own compaction. Each request is read once.
 */
export class RequestedCalls {
  readonly #timeline: Timeline;
  readonly #calls = new Map<Sha256, Promise<ReadonlySet<string>>>();
  readonly #planned = new Map<SessionId, Promise<ReadonlySet<number>>>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Returns the records of a session's requests that the agent built itself. */
  async own(session: SessionId, records: readonly AssemblyProof[]): Promise<readonly AssemblyProof[]> {
    const sent = records.filter((record) => record.sent !== undefined);
    if (sent.length === 0) return sent;
    const planned = await askOnce(this.#planned, session, async () => {
      const all = await this.#timeline.present.assemblies(session, { onDamaged: () => undefined });
      return new Set(all.flatMap((one) => (one.sent === undefined && one.delivered === 'gateway' ? [one.step] : [])));
    });
    return sent.filter(({ step }) => !planned.has(step));
  }

  /** Returns the turns of those requests that show one of the calls. */
  async turns(requests: readonly AssemblyProof[], calls: readonly PlacedCall[]): Promise<readonly number[]> {
    const found = new Set<number>();
    if (calls.length === 0) return [];
    // The last request of a turn usually shows all its calls, so earlier requests are rarely read.
    for (const { turn, step, sha256 } of requests.toReversed()) {
      if (found.has(turn)) continue;
      const before = calls.filter(({ seq }) => seq <= step);
      if (before.length === 0) break;
      const shown = await this.#shown(sha256);
      if (before.some(({ id }) => [...namesOf(id)].some((name) => shown.has(name)))) found.add(turn);
    }
    return [...found].reverse();
  }

  /** Returns the agent's ids of the calls in a request. Empty if the request's body was erased. */
  #shown(sha256: Sha256): Promise<ReadonlySet<string>> {
    return askOnce(this.#calls, sha256, async () => {
      const snapshot = await this.#timeline.contexts.latest();
      const body = (await snapshot.texts([sha256])).get(sha256);
      return new Set(
        body === undefined ? [] : sentParts(body).flatMap(({ call }) => (call === undefined ? [] : [call])),
      );
    });
  }
}
