import type { StepPolicy } from '../../session/step-policy.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { Telemetry } from '../../telemetry/telemetry.js';
import type { Outbox } from '../delivery/outbox.js';
import type { FileAccess } from '../file-access.js';
import type { KnownVersions } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import type { RecordMask } from '../record-mask.js';
import type { Recovery } from '../recovery/recovery.js';
import type { SourceTracking } from '../tracking/tracking.js';

/** The environment that all sessions of one client share. */
export interface SessionEnvironment {
  readonly store: ObjectStore;
  readonly files: FileAccess;
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly outbox: Outbox;
  readonly recovery: Recovery;
  /** Undefined for a client without tracking. */
  readonly tracking?: SourceTracking;
  readonly policy: StepPolicy;
  /** Whether sessions that used other folders can be opened. */
  readonly shareSessions: boolean;
  /** Whether the specification is followed literally where docs/ssot.md allows it (decision E8). */
  readonly strict: boolean;
  /** Whether the shortest unique id prefixes replace full ids (decision D6). */
  readonly shortIds: boolean;
  /** Masks secrets before anything is recorded. */
  readonly mask: RecordMask;
  readonly telemetry: Telemetry;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Set if no other process writes to the database. */
  readonly isSole: boolean;
  /** Whether there is a database. Without one, sessions end with the client. */
  readonly isStored: boolean;
}
