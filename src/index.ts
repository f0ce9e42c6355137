/**
 * The public surface of Palimpsest as a library: named exports only.
 *
 * `ContextClient` is the entry point: it opens sessions, records an agent's work, assembles its
 * context, and rebuilds any earlier one.
 */
export type { Assembly, AssemblySection } from './assembly/assemble.js';
export type { AssemblyRecord } from './assembly/assembly-record.js';
export type { DisplayPaths, ObjectMetadata } from './assembly/metadata.js';
export { metadataLine } from './assembly/metadata.js';
export type { RenderedMessage, RenderedPart } from './assembly/render-messages.js';
export type { FileAccess, FileAccessOptions, LocatedFile } from './client/file-access.js';
export type {
  CallReport,
  RecordedCall,
  ReportedMention,
  ReportedReading,
  VerbEntry,
  VerbFailure,
  VerbPlan,
} from './client/session/call-report.js';
export type { ContextClientOptions } from './client/session/client-options.js';
export { ContextClient } from './client/session/context-client.js';
export { ContextSession } from './client/session/context-session.js';
export type { LoadedObject, PoolEntry } from './client/session/find-object.js';
export type { OpenSessionOptions } from './client/session/open-session.js';
export type {
  AssembleOptions,
  SessionAssembly,
  SessionAssemblyRecord,
  SessionMessageAssembly,
} from './client/session/session-assembly.js';
export type { TrackingOptions, TrackingStatus } from './client/tracking/tracking.js';
export { SourceError, type SourceErrorCode } from './filesystem/access/errors.js';
export { localFilesystemId } from './filesystem/access/filesystem-id.js';
export { type MountSetting, parseMount } from './filesystem/access/mounts.js';
export type { SourceReading } from './filesystem/access/read-source.js';
export { type CreateClientOptions, createContextClient } from './harness/create-client.js';
export type { EpochChoice, EpochTurn } from './harness/epoch-contexts.js';
export type { LoopReference } from './harness/epoch-tail.js';
export { HarnessClient, type OpenOptions } from './harness/harness-client.js';
export { HarnessError, type HarnessErrorCode } from './harness/harness-error.js';
export { type ChangingCall, HarnessSession, type TurnContext, type TurnOptions } from './harness/harness-session.js';
export type { LoopEpoch, LoopInsert, LoopList } from './harness/loop-epochs.js';
export type { ReportedContent, ReportedFile, ReportedMessage, ToolCallReport } from './harness/message-schema.js';
export type { HistoryNotice } from './harness/reconcile.js';
export type { ReportedCall, VerbReport } from './harness/record-call.js';
export type { MessagesReport, RecordedEntry, ReportOptions } from './harness/reported-chat.js';
export { rebuildAssembly, type WantedAssembly } from './history/rebuild/find-assembly.js';
export { HistoryError, type HistoryErrorCode } from './history/rebuild/history-error.js';
export type { PastContext } from './history/rebuild/past-context.js';
export type { RebuiltAssembly } from './history/rebuild/rebuilt-assembly.js';
export { type Point, Timeline } from './history/rebuild/timeline.js';
export { type EnsureNodeOptions, ensureNode, type NodeHandle } from './node/ensure-node.js';
export { NodeError, type NodeErrorCode } from './node/errors.js';
export { nodeStatus } from './node/node-status.js';
export { stopNode } from './node/stop-node.js';
export type { AssemblyProof, Delivery, HandedList } from './objects/assembly-proof.js';
export { canonicalJson, type Json } from './objects/canonical-json.js';
export { DocumentError, type DocumentErrorCode } from './objects/errors.js';
export {
  type CanonicalPath,
  canonicalPath,
  type FilesystemId,
  filesystemId,
  type ObjectId,
  objectId,
  type SessionId,
  type Sha256,
  sessionId,
} from './objects/ids.js';
export type { FieldsByType, Message, ObjectType, Turn } from './objects/object-type.js';
export { type Envelope, type ObjectVersion, restoreVersion } from './objects/seal.js';
export type { SessionSets, SetChanges } from './objects/sets.js';
export type { FilesystemSource, Source } from './objects/source.js';
export type { Step } from './objects/step.js';
export {
  type AskedDiff,
  askContext,
  askDiff,
  askObject,
  askQuery,
  askTurns,
  askVersions,
  askWho,
  type Question,
} from './review/ask/ask.js';
export type { ObjectDiff, SessionDiff } from './review/ask/diff.js';
export type { LoggedCall, LoggedMessage, LoggedTurn } from './review/ask/logged-turn.js';
export type { LoggedVersion } from './review/ask/object-log.js';
export type { ObjectView } from './review/ask/object-view.js';
export type { QueryAnswer, QueryLimits } from './review/ask/run-query.js';
export type { Sighting } from './review/ask/sighting.js';
export type { AnswersReport } from './review/verify/verify-answers.js';
export type { AssemblyMismatch, MismatchCause } from './review/verify/verify-assembly.js';
export type { PartDamage, PartsReport } from './review/verify/verify-parts.js';
export type { VerifyOptions, VerifyProgress } from './review/verify/verify-session.js';
export { type ContextsReport, type SessionVerification, verifySession } from './review/verify/verify-session.js';
export { SessionError, type SessionErrorCode } from './session/errors.js';
export type { SessionState } from './session/session-state.js';
export { DEFAULT_POLICY, type StepPolicy } from './session/step-policy.js';
export { StoreError, type StoreErrorCode } from './store/errors.js';
export type { ObjectStore } from './store/object-store.js';
export type { FoundVersion } from './store/snapshot-rows.js';
export type { StoreSnapshot } from './store/store-snapshot.js';
export type { VersionText } from './store/texts.js';
export type { NodeAddress } from './xtdb/address.js';
export type { Basis } from './xtdb/db-snapshot.js';
export { XtdbError, type XtdbErrorCode } from './xtdb/errors.js';
