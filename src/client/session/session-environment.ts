import type { StepPolicy } from '../../session/plan-step.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Outbox } from '../delivery/outbox.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import type { RecentVersions } from '../optimistic/recent-versions.js';
import type { SourceTracking } from '../tracking/tracking.js';
import type { FileAccess } from './file-access.js';

/** What the sessions of one client share. */
export interface SessionEnvironment {
  readonly store: ObjectStore;
  readonly files: FileAccess;
  readonly cache: MetadataCache;
  readonly outbox: Outbox;
  readonly recent: RecentVersions;
  /** Undefined for a client that tracks nothing. */
  readonly tracking?: SourceTracking;
  /** Nobody else writes what these sessions hold: what this process knows of them is all there is. */
  readonly alone?: boolean;
  readonly policy: StepPolicy;
  /** Literal behaviour of every divergence that has one (decision E8). */
  readonly strict: boolean;
  /** Renders the shortest unique prefixes instead of full ids (decision D6). */
  readonly shortIds: boolean;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}
